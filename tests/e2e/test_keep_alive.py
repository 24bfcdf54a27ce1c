"""A stream that has nothing to say yet, because its prompt is long, says so in the way of its protocol."""

import pytest
from hadal_server import Server

COMMENT = b": keep-alive\n\n"
PING = b'event: ping\ndata: {"type":"ping"}\n\n'
PATHS = ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"]


def stream_of(server, path, text):
    body = {"model": server.model, "stream": True}
    if path == "/v1/completions":
        body |= {"prompt": text, "max_tokens": 2}
    elif path == "/v1/responses":
        body |= {"input": text, "max_output_tokens": 2}
    else:
        body |= {"messages": [{"role": "user", "content": text}], "max_tokens": 2}
    status, headers, stream = server.request("POST", path, body)
    assert status == 200, stream
    assert headers.get_content_type() == "text/event-stream"
    return stream


@pytest.fixture(scope="module")
def slow():
    """Small steps make the long prompt take many times the interval."""
    server = Server("--keep-alive-interval", "5ms", "--max-num-batched-tokens", "64")
    yield server
    assert server.stop() == 0


@pytest.mark.parametrize("path", PATHS)
def test_a_long_prompt_is_not_silent(slow, path):
    stream = stream_of(slow, path, "deep sea " * 900)
    filler = PING if path == "/v1/messages" else COMMENT
    assert stream.count(filler) > 1
    # What fills the silence stands between events.
    events = stream.replace(filler, b"")
    assert events.endswith(b"\n\n")
    assert all(event.startswith((b"event: ", b"data: ")) for event in events.split(b"\n\n")[:-1])


@pytest.mark.parametrize("path", PATHS)
def test_it_can_be_switched_off(path):
    server = Server("--keep-alive-interval", "0", "--max-num-batched-tokens", "64")
    try:
        stream = stream_of(server, path, "deep sea " * 900)
        assert COMMENT not in stream
        assert stream.count(PING) <= 1  # the one that always follows the first content_block_start
    finally:
        assert server.stop() == 0


def test_the_official_clients_read_over_it(slow):
    import anthropic

    client = slow.client()
    request = {"model": slow.model, "stream": True}
    messages = [{"role": "user", "content": "deep sea " * 900}]
    assert list(client.chat.completions.create(**request, messages=messages, max_tokens=2))
    assert list(client.completions.create(**request, prompt="deep sea " * 900, max_tokens=2))
    *_, last = client.responses.create(**request, input=messages, max_output_tokens=2)
    assert last.type == "response.incomplete"
    *_, last = anthropic.Anthropic(base_url=slow.url, api_key="unused", max_retries=0).messages.create(
        **request, messages=messages, max_tokens=2
    )
    assert last.type == "message_stop"
