"""The prefix cache: what is reused is reported, separated by tenant and salt, and changes no answer."""

import os
import random
import signal

import anthropic
import pytest
from answers import NO_THINKING
from hadal_server import REQUEST_SECONDS, Server, wait_until

LONG = " ".join(f"The diver {n} went to deck {n % 7} and looked at pump {n * 37 % 101}." for n in range(60))


def ask(server, text, **extra):
    """A greedy chat answer: its text, prompt tokens and cached tokens."""
    response = server.client().chat.completions.create(
        model=server.model,
        messages=[{"role": "user", "content": text}],
        temperature=0,
        max_tokens=24,
        extra_body=NO_THINKING | extra,
    )
    return response.choices[0].message.content, response.usage.prompt_tokens, response.usage.prompt_tokens_details.cached_tokens


@pytest.fixture(scope="module", params=["off", "compact"])
def warm_server(request):
    server = Server("--replay", request.param)
    server.keep = 140 if request.param == "compact" else 1
    yield server
    assert server.stop() == 0


def most(server, prompt_tokens):
    return (prompt_tokens - server.keep) // 128 * 128


def test_an_answer_is_the_same_warm_and_cold(warm_server):
    cold = Server("--prefix-cache", "off", "--replay", "off" if warm_server.keep == 1 else "compact")
    try:
        for number in range(3):
            text = f"{LONG} Which rooms are on deck {number}?"
            want, prompt, cached = ask(cold, text)
            assert cached == 0
            first = ask(warm_server, text)
            again = ask(warm_server, text)
            assert first[:2] == again[:2] == (want, prompt)
            assert again[2] == most(warm_server, prompt) > 0
        assert cold.metric("hadal_cache_used_bytes") == 0
    finally:
        assert cold.stop() == 0


def test_all_protocols_report_what_was_cached(warm_server):
    client = warm_server.client()
    text = "Protocols. " + LONG

    def chat():
        usage = client.chat.completions.create(
            model=warm_server.model, messages=[{"role": "user", "content": text}], max_tokens=2
        ).usage
        return usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens

    def completions():
        usage = client.completions.create(model=warm_server.model, prompt=text, max_tokens=2).usage
        return usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens

    def responses():
        usage = client.responses.create(model=warm_server.model, input="R " + text, max_output_tokens=16).usage
        return usage.input_tokens, usage.input_tokens_details.cached_tokens

    def messages():
        usage = (
            anthropic.Anthropic(base_url=warm_server.url, api_key="unused", timeout=REQUEST_SECONDS, max_retries=0)
            .messages.create(
                model=warm_server.model, max_tokens=2, messages=[{"role": "user", "content": "M " + text}]
            )
            .usage
        )
        return usage.input_tokens + usage.cache_read_input_tokens, usage.cache_read_input_tokens

    for protocol in (chat, completions, responses, messages):
        prompt, cached = protocol()
        assert cached < 128 or protocol in (responses, messages), protocol
        assert protocol() == (prompt, most(warm_server, prompt)), protocol


def test_metrics_count_hits(warm_server):
    names = ["lookups", "lookup_tokens", "hits", "hit_tokens"]

    def counts():
        return [warm_server.metric(f"hadal_cache_{name}_total") for name in names]

    before = counts()
    text = "Metrics. " + LONG
    _, prompt, _ = ask(warm_server, text)
    _, _, cached = ask(warm_server, text)
    assert [b - a for a, b in zip(before, counts(), strict=True)] == [2, 2 * prompt, 1, cached]
    assert 0 < warm_server.metric("hadal_cache_used_bytes") <= warm_server.metric("hadal_cache_limit_bytes")
    assert warm_server.metric("hadal_cache_snapshots") > 0
    assert warm_server.metric("hadal_cache_blocks") > 0


def test_a_salt_separates(warm_server):
    text = "Salt. " + LONG
    ask(warm_server, text)
    assert ask(warm_server, text)[2] > 0
    assert ask(warm_server, text, cache_salt="mine")[2] == 0
    assert ask(warm_server, text, cache_salt="mine")[2] > 0
    status, _, body = warm_server.request(
        "POST",
        "/v1/completions",
        {"model": warm_server.model, "prompt": text, "max_tokens": 1, "cache_salt": 7},
    )
    assert status == 400
    assert b"cache_salt" in body


def test_conversations_that_alternate_stay_warm(warm_server):
    conversations = [[{"role": "user", "content": f"{name}. {LONG}"}] for name in "AB"]
    for turn in range(3):
        for messages in conversations:
            response = warm_server.client().chat.completions.create(
                model=warm_server.model, messages=messages, max_tokens=20, extra_body=NO_THINKING
            )
            cached = response.usage.prompt_tokens_details.cached_tokens
            if turn > 0:
                assert cached >= most(warm_server, response.usage.prompt_tokens) - 384
            messages.append({"role": "assistant", "content": response.choices[0].message.content})
            messages.append({"role": "user", "content": f"And {turn}?"})


def test_a_restart_finds_what_the_disk_has(tmp_path):
    text = "Disk. " + LONG
    options = ("--cache-dir", str(tmp_path), "--cache-disk", "100MiB")
    server = Server(*options)
    want = ask(server, text)
    assert server.stop() == 0
    server = Server(*options)
    try:
        content, prompt, cached = ask(server, text)
        assert (content, prompt) == want[:2]
        assert cached == (prompt - 140) // 128 * 128
        assert server.metric("hadal_cache_disk_hits_total") == 1
        second = Server(*options)
        try:
            assert ask(second, text)[::2] == (content, 0)
            assert "in use by another process" in second.log()
        finally:
            assert second.stop() == 0
    finally:
        assert server.stop() == 0
    other = Server(*options, "--precision", "qat")
    try:
        assert ask(other, text)[2] == 0
        assert other.metric("hadal_cache_disk_bad_files_total") == 0
    finally:
        assert other.stop() == 0


def test_a_killed_server_leaves_nothing_wrong(tmp_path):
    options = ("--cache-dir", str(tmp_path), "--cache-disk", "100MiB")
    generator = random.Random(5)
    texts = [f"Kill {number}. {LONG}" for number in range(3)]
    wants = {}
    for _ in range(3):
        server = Server(*options)
        for text in texts:
            content, _, _ = ask(server, text)
            assert wants.setdefault(text, content) == content
        if generator.random() < 0.5:
            assert wait_until(lambda: server.metric("hadal_cache_disk_queued") == 0)
        os.kill(server._process.pid, signal.SIGKILL)
        server._process.wait()
    for path in tmp_path.glob("*.segment"):
        damaged = bytearray(path.read_bytes())
        damaged[generator.randrange(len(damaged))] ^= 1
        path.write_bytes(damaged)
    server = Server(*options)
    try:
        for text in texts:
            assert ask(server, text)[0] == wants[text]
    finally:
        assert server.stop() == 0


def test_a_prompt_that_memory_does_not_hold_is_refused_with_both_numbers():
    server = Server("--cache-memory", "1MiB")
    try:
        limit = server.client().models.list().data[0].max_model_len
        assert limit % 128 == 0
        assert limit > 0
        ids = [5] * (limit - 4)
        for extra, status in ((4, 200), (5, 400)):
            found, _, body = server.request(
                "POST", "/v1/completions", {"model": server.model, "prompt": ids, "max_tokens": extra}
            )
            assert found == status, body
        assert b"context_length_exceeded" in body
        assert str(limit).encode() in body
        assert str(limit + 1).encode() in body
    finally:
        assert server.stop() == 0
