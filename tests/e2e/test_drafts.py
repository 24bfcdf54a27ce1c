"""Answers are the same with drafts of any length and without them; only the number of passes changes."""

import json
import threading

import pytest
from answers import complete
from hadal_server import TINY, Server, run_hadal

PROMPT = "The captain of Hadal Station"
SAMPLINGS = {
    "greedy": ["--temperature", 0],
    "sampled": ["--temperature", 1, "--seed", 11],
    "filtered": ["--temperature", 1.4, "--top-p", 0.9, "--top-k", 40, "--seed", 12],
}


def generate(length, *options):
    run = run_hadal("generate", "--model", TINY, "--json", "--stats", "--draft-length", length, *options)
    return json.loads(run.stdout)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_generate_gives_the_same_tokens_with_any_draft_length(sampling):
    options = ["--prompt", PROMPT, "--max-tokens", 60, "--ignore-eos", *SAMPLINGS[sampling]]
    plain = generate(0, *options)
    assert plain["drafts"]["drafted"] == 0
    assert plain["drafts"]["tokens_per_step"] == 1
    for length in (-1, 1, 3, 5):
        drafted = generate(length, *options, "--draft-schedule", "off")
        stats = drafted.pop("drafts")
        assert drafted == {name: value for name, value in plain.items() if name != "drafts"}, length
        assert 0 < stats["accepted"] <= stats["verified"] <= stats["drafted"]
        assert len(stats["positions"]) == (5 if length == -1 else length)
        assert stats["steps"] == plain["drafts"]["steps"] - stats["accepted"]
        assert 0 <= stats["calibration_error"] <= 1


def test_a_stop_string_inside_a_block_ends_the_answer_at_its_token():
    options = ["--prompt", PROMPT, "--max-tokens", 60, "--temperature", 0, "--ignore-eos"]
    text = generate(0, *options)["text"]
    for begin in range(0, min(len(text), 40) - 3, 3):
        stop = ["--stop", text[begin : begin + 3]]
        plain, drafted = generate(0, *options, *stop), generate(5, *options, *stop, "--draft-schedule", "off")
        del plain["drafts"], drafted["drafts"]
        assert drafted == plain


def test_a_draft_length_that_cannot_be_is_refused():
    run = run_hadal("generate", "--model", TINY, "--prompt", "a", "--draft-length", 17, check=False)
    assert run.returncode == 2
    assert "--draft-length" in run.stderr


def answers_of(server):
    """Several requests at a time, greedy and sampled, with log-probabilities."""
    client = server.client()
    results = {}

    def ask(number):
        results[number] = client.completions.create(
            model=server.model,
            prompt=[PROMPT, "The cook", "Deck 2"][number % 3],
            max_tokens=20 + 3 * number,
            temperature=[0, 1, 0.7][number // 3],
            seed=number,
            logprobs=3,
            stop=[None, "station"][number % 2],
        ).model_dump(exclude={"id", "created"})

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_the_server_gives_the_same_answers_and_log_probabilities():
    answers = {}
    for options in (["--draft-length", "0"], [], ["--draft-length", "3", "--draft-schedule", "off"]):
        server = Server(*options)
        try:
            answers[tuple(options)] = answers_of(server)
            if "off" in options:
                verified = sum(server.metric("hadal_draft_verified_total", position=str(i)) for i in (1, 2, 3))
                accepted = sum(server.metric("hadal_draft_accepted_total", position=str(i)) for i in (1, 2, 3))
                assert 0 < accepted <= verified <= server.metric("hadal_draft_tokens_total")
        finally:
            assert server.stop() == 0
    plain, *others = answers.values()
    assert len(plain) == 9
    for drafted in others:
        assert drafted == plain


def test_streams_give_the_same_text():
    pieces = []
    for options in (["--draft-length", "0"], ["--draft-schedule", "off"]):
        server = Server(*options)
        try:
            stream = server.client().completions.create(
                model=server.model, prompt=PROMPT, temperature=0, max_tokens=30, stream=True
            )
            pieces.append("".join(chunk.choices[0].text for chunk in stream if chunk.choices))
            whole = complete(server.client(), server.model, PROMPT, max_tokens=30)
            assert whole.content == pieces[-1]
        finally:
            server.stop()
    assert pieces[0] == pieces[1]


@pytest.mark.parametrize("length", [0, 5])
def test_a_thinking_budget_closes_the_thinking(length):
    server = Server("--draft-length", str(length), "--draft-schedule", "off")
    try:
        body = {
            "model": server.model,
            "messages": [{"role": "user", "content": "Who runs the kitchen?"}],
            "thinking": {"type": "enabled"},
            "temperature": 0,
            "max_tokens": 60,
        }
        counts = []
        for budget in (0, 3, None):
            answer = json.loads(
                server.request("POST", "/v1/chat/completions", body | {"thinking_budget": budget})[2]
            )
            counts.append(answer["usage"]["completion_tokens_details"]["reasoning_tokens"])
            assert answer["choices"][0]["message"]["content"]
        assert counts[0] == 0
        assert counts[1] == 3 < counts[2]
    finally:
        assert server.stop() == 0
