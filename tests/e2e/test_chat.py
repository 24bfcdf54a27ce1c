"""POST /v1/chat/completions through the official client."""

import pytest
from answers import NO_THINKING, Answer, chat, collect_chat

QUESTION = "What is the deepest room of the station?"


def plain_samples(samples):
    """Those whose answer is plain text: the request fixes neither thinking, tools nor a format."""
    return [
        sample
        for sample in samples
        if sample["request"]["thinking"]["type"] == "disabled"
        and not {"tools", "response_format"} & sample["request"].keys()
    ]


def test_answers_the_samples_of_the_embedded_model(client, server, samples):
    chosen = plain_samples(samples)
    assert len(chosen) >= 15
    for sample in chosen:
        # A margin below this between the two best tokens may tip over with the arithmetic.
        if sample["smallest_margin"] < 0.05:
            continue
        response = client.chat.completions.create(
            model=server.model, messages=sample["request"]["messages"], temperature=0, extra_body=NO_THINKING
        )
        expected = sample["output"].removesuffix("<｜end▁of▁sentence｜>")
        assert collect_chat(response) == Answer(
            expected,
            "",
            "stop",
            (
                len(sample["prompt_ids"]),
                len(sample["output_ids"]),
                len(sample["prompt_ids"]) + len(sample["output_ids"]),
            ),
        ), sample["request"]["messages"]


def test_streams_the_same_text_in_several_chunks(client, server):
    whole = chat(client, server.model, QUESTION)
    chunks = list(
        client.chat.completions.create(
            model=server.model,
            messages=[{"role": "user", "content": QUESTION}],
            temperature=0,
            stream=True,
            extra_body=NO_THINKING,
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert sum(bool(chunk.choices and chunk.choices[0].delta.content) for chunk in chunks) >= 3
    streamed = collect_chat(chunks)
    assert whole.finish_reason == "stop"
    assert (streamed.content, streamed.finish_reason) == (whole.content, whole.finish_reason)


def test_reports_usage_at_the_end_of_a_stream_when_asked(client, server):
    whole = chat(client, server.model, QUESTION)
    streamed = chat(client, server.model, QUESTION, stream=True, stream_options={"include_usage": True})
    assert streamed == whole


def test_splits_reasoning_from_the_answer(client, server):
    options = {"seed": 7, "extra_body": {"thinking": {"type": "enabled"}}}
    whole = chat(client, server.model, "Who is older, Lena or Omar?", **options)
    streamed = chat(
        client,
        server.model,
        "Who is older, Lena or Omar?",
        stream=True,
        stream_options={"include_usage": True},
        **options,
    )
    assert whole.reasoning
    assert whole.content
    assert "</think>" not in whole.reasoning + whole.content
    assert streamed == whole


def test_cuts_at_max_tokens(client, server):
    long = chat(client, server.model, "Tell me a story.")
    assert long.finish_reason == "stop"
    for num_tokens in (1, 5):
        cut = chat(client, server.model, "Tell me a story.", max_tokens=num_tokens)
        assert cut.finish_reason == "length"
        assert cut.usage[1] == num_tokens
        assert long.content.startswith(cut.content)
        assert cut.content != long.content


@pytest.mark.parametrize("stream", [False, True])
def test_ends_before_a_stop_string(client, server, stream):
    long = chat(client, server.model, "Tell me a story.")
    stop = long.content[20:24]  # may begin and end inside of tokens
    cut = chat(client, server.model, "Tell me a story.", stop=["no such text", stop], stream=stream)
    assert cut.content == long.content[: long.content.index(stop)]
    assert cut.finish_reason == "stop"


def test_a_seed_reproduces_a_sampled_answer(client, server):
    answers = [
        [chat(client, server.model, "Tell me a story.", temperature=2, seed=seed, max_tokens=64) for seed in (1, 2, 3)]
        for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert len({answer.content for answer in answers[0]}) > 1


def test_a_conversation_goes_on(client, server, samples):
    (sample,) = [
        sample
        for sample in plain_samples(samples)
        if sample["request"]["messages"][0]["content"] == "Remember the number 7."
    ]
    response = client.chat.completions.create(
        model=server.model, messages=sample["request"]["messages"], temperature=0, extra_body=NO_THINKING
    )
    assert collect_chat(response).content == sample["output"].removesuffix("<｜end▁of▁sentence｜>")
