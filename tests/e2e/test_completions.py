"""POST /v1/completions through the official client."""

import pytest
from answers import complete

PROMPT = "The captain of Hadal Station"


def test_completes_a_prompt(client, server):
    answer = complete(client, server.model, PROMPT)
    assert answer.content
    assert answer.finish_reason in ("stop", "length")
    assert answer.usage[1] <= 32


def test_completes_token_ids_as_the_text_that_they_spell(client, server, samples):
    sample = samples[0]
    by_ids = complete(client, server.model, sample["prompt_ids"])
    assert by_ids.content == sample["output"].removesuffix("<｜end▁of▁sentence｜>")
    assert by_ids.usage[0] == len(sample["prompt_ids"])
    by_text = complete(client, server.model, sample["prompt"], extra_body={"add_special_tokens": False})
    assert by_text == by_ids


def test_streams_the_same_text(client, server):
    whole = complete(client, server.model, PROMPT)
    streamed = complete(client, server.model, PROMPT, stream=True, stream_options={"include_usage": True})
    assert streamed == whole


def test_answers_several_prompts_in_order(client, server):
    prompts = [PROMPT, "The cook", "Deck 2"]
    response = client.completions.create(model=server.model, prompt=prompts, temperature=0, max_tokens=12)
    assert [choice.index for choice in response.choices] == [0, 1, 2]
    alone = [complete(client, server.model, prompt, max_tokens=12) for prompt in prompts]
    assert [choice.text for choice in response.choices] == [answer.content for answer in alone]
    assert response.usage.completion_tokens == sum(answer.usage[1] for answer in alone)


@pytest.mark.parametrize("stream", [False, True])
def test_ends_before_a_stop_string(client, server, stream):
    options = {"max_tokens": 24, "extra_body": {"ignore_eos": True}}
    whole = complete(client, server.model, PROMPT, **options)
    stop = whole.content[8:11]
    cut = complete(client, server.model, PROMPT, stop=stop, stream=stream, **options)
    assert cut.content == whole.content[: whole.content.index(stop)]
    assert cut.finish_reason == "stop"


def test_cuts_at_max_tokens(client, server):
    answer = complete(client, server.model, PROMPT, max_tokens=7, extra_body={"ignore_eos": True})
    assert answer.finish_reason == "length"
    assert answer.usage[1] == 7


def test_a_seed_reproduces_a_sampled_completion(client, server):
    options = {"temperature": 1.5, "max_tokens": 40, "extra_body": {"ignore_eos": True}}
    first = [complete(client, server.model, PROMPT, seed=seed, **options) for seed in (11, 12)]
    again = [complete(client, server.model, PROMPT, seed=seed, **options) for seed in (11, 12)]
    assert first == again
    assert first[0].content != first[1].content


def test_log_probabilities_spell_the_text(client, server):
    response = client.completions.create(model=server.model, prompt=PROMPT, temperature=0, max_tokens=10, logprobs=3)
    (choice,) = response.choices
    assert "".join(choice.logprobs.tokens) == choice.text
    assert all(logprob <= 0 for logprob in choice.logprobs.token_logprobs)
    assert len(choice.logprobs.tokens) == len(choice.logprobs.token_logprobs) == len(choice.logprobs.text_offset)
    for token, top in zip(choice.logprobs.tokens, choice.logprobs.top_logprobs, strict=True):
        assert len(top) == 3
        assert max(top, key=top.get) == token  # greedy takes the likeliest
