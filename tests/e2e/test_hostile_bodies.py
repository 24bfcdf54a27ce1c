"""Bodies that no client should send: each gets an answer of its protocol, in bounded memory, and the server goes on."""

import json

import pytest
from hadal_server import Server

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
MESSAGES = "/v1/messages"
RESPONSES = "/v1/responses"
PROTOCOLS = [CHAT, COMPLETIONS, MESSAGES, RESPONSES]
MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def hostile():
    """A server of its own, whose memory can be watched."""
    server = Server()
    yield server
    status, _, _ = server.request("POST", COMPLETIONS, {"model": server.model, "prompt": "x", "max_tokens": 1})
    assert status == 200
    assert server.stop() == 0


def body_of(path, **changes):
    body = {"model": "tiny"}
    if path == COMPLETIONS:
        body |= {"prompt": "Hello", "max_tokens": 2}
    elif path == RESPONSES:
        body |= {"input": "Hello", "max_output_tokens": 2}
    else:
        body |= {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}
    return body | changes


def text_of(path, member):
    """A body with one more member, given as JSON text that no encoder would write."""
    return json.dumps(body_of(path)).encode()[:-1] + b"," + member + b"}"


def refused(server, path, body, statuses=(400,)):
    """The message of a refusal in the shape of its protocol."""
    status, headers, answer = server.request("POST", path, body)
    assert status in statuses, (status, answer[:300])
    assert headers.get_content_type() == "application/json"
    document = json.loads(answer)
    assert ("type" in document) == (path == MESSAGES)
    assert len(answer) < 2000
    return document["error"]["message"]


@pytest.mark.parametrize("path", PROTOCOLS)
@pytest.mark.parametrize(
    "member",
    [
        b'"x":' + b"[" * 10_000 + b"]" * 10_000,
        b'"x":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b'"x":NaN',
        b'"x":Infinity',
        b'"x":-Infinity',
        b'"x":1e400',
        b'"x":01',
        b'"x":1.',
        b'"x":+1',
        b'"x":0x10',
        b'"x":"\\ud800"',
        b'"x":"\\udc00\\ud800"',
        b'"x":"\xff"',
        b'"x":"\xc0\x80"',
        b'"x":"\xed\xa0\x80"',
        b'"x":"\x00"',
        b'"x":"a\nb"',
        b'"x":1,',
        b'"x":1 // comment',
        b"x:1",
        b"'x':1",
    ],
    ids=lambda member: member[:16].decode("latin-1").encode("unicode_escape").decode(),
)
def test_text_that_is_not_json_is_refused(hostile, path, member):
    assert refused(hostile, path, text_of(path, member))


@pytest.mark.parametrize("path", PROTOCOLS)
def test_the_last_of_repeated_keys_counts_everywhere(hostile, path):
    # A filter in front may read the first or the last; here it is the last, for every field.
    assert "no-such-model" in refused(hostile, path, text_of(path, b'"model":"no-such-model"'), (400, 404))
    status, _, _ = hostile.request("POST", path, b'{"model":"no-such-model",' + json.dumps(body_of(path)).encode()[1:])
    assert status == 200


@pytest.mark.parametrize("path", PROTOCOLS)
def test_nul_and_huge_keys_are_harmless(hostile, path):
    for member in (b'"a\\u0000b":1', b'"' + b"k" * MEBIBYTE + b'":1', b'"\xf0\x9f\x98\x80":{}'):
        status, _, answer = hostile.request("POST", path, text_of(path, member))
        assert status == 200, answer[:300]
    many = b",".join(b'"key%d":%d' % (number, number) for number in range(100_000))
    status, _, answer = hostile.request("POST", path, text_of(path, many))
    assert status == 200, answer[:300]


@pytest.mark.parametrize("path", PROTOCOLS)
def test_a_body_of_100_mb_is_refused_unread(hostile, path):
    before = hostile.resident_bytes()
    status, _, answer = hostile.send_head(
        path, {"Content-Length": str(100_000_000), "Content-Type": "application/json"}, b'{"model":'
    )
    assert status == 413, answer
    assert "larger than" in json.loads(answer)["error"]["message"]
    assert hostile.resident_bytes() - before < 16 * MEBIBYTE


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_a_million_messages_are_refused(hostile, path):
    key = b'"input":' if path == RESPONSES else b'"messages":'
    messages = b",".join([b'{"role":"user","content":"x"}'] * 1_000_000)
    assert len(messages) < 64 * MEBIBYTE
    message = refused(hostile, path, b'{"model":"tiny","max_tokens":2,' + key + b"[" + messages + b"]}")
    assert "4096" in message or "too" in message
    assert hostile.peak_bytes() < 4096 * MEBIBYTE


def test_a_million_prompts_are_refused(hostile):
    for prompt in ([5] * 1_000_000, ["x"] * 1_000_000, [[5]] * 1_000_000, "x " * 10_000_000):
        refused(hostile, COMPLETIONS, body_of(COMPLETIONS, prompt=prompt))


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_ten_thousand_tools_are_refused_or_answered(hostile, path):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    names = [f"tool{number}" for number in range(10_000)]
    if path == CHAT:
        tools = [{"type": "function", "function": {"name": name, "parameters": schema}} for name in names]
    elif path == MESSAGES:
        tools = [{"name": name, "input_schema": schema} for name in names]
    else:
        tools = [{"type": "function", "name": name, "parameters": schema} for name in names]
    assert "4096" in refused(hostile, path, body_of(path, tools=tools))


NUMBERS = [-1, 0, 2**63, 2**64, 10**30, 1.5, -0.5, 1e308, "1", "", True, [], {}]
LIMIT_FIELD = {CHAT: "max_tokens", COMPLETIONS: "max_tokens", MESSAGES: "max_tokens", RESPONSES: "max_output_tokens"}


@pytest.mark.parametrize("path", PROTOCOLS)
@pytest.mark.parametrize("value", NUMBERS, ids=str)
def test_a_wrong_token_limit_names_its_field(hostile, path, value):
    field = LIMIT_FIELD[path]
    message = refused(hostile, path, body_of(path, **{field: value}))
    assert field in message or "max_tokens" in message  # Responses has the words of DeepSeek's API for 0


# Field, protocols that have it, and values that are allowed although they look odd.
FIELDS = [
    ("n", [CHAT, COMPLETIONS], []),
    ("seed", [CHAT, COMPLETIONS], [-1, 0, 2**63]),
    ("top_k", PROTOCOLS, [-1, 0, 2**63]),
    ("top_p", PROTOCOLS, []),
    ("temperature", PROTOCOLS, [0, 1.5]),
    ("logit_bias", [CHAT, COMPLETIONS], [[], {}]),
    ("presence_penalty", [CHAT, COMPLETIONS], [-1, -0.5, 0, 1.5]),
    ("frequency_penalty", [CHAT, COMPLETIONS], [-1, -0.5, 0, 1.5]),
    ("stream", PROTOCOLS, [True]),
]


@pytest.mark.parametrize(("field", "path"), [(field, path) for field, paths, _ in FIELDS for path in paths])
def test_wrong_numbers_name_their_field(hostile, field, path):
    allowed = next(values for name, _, values in FIELDS if name == field)
    for value in NUMBERS:
        status, _, answer = hostile.request("POST", path, body_of(path, **{field: value}))
        if status != 200:
            assert status == 400, (value, answer)
            message = json.loads(answer)["error"]["message"]
            assert field in message, (value, message)
        else:
            # What was obeyed must be a value that the field can have.
            assert any(value is good or (value == good and type(value) is type(good)) for good in allowed), value


def test_top_logprobs_are_bounded(hostile):
    for value in [-1, 21, 2**63, 1.5, "5", True]:
        assert "top_logprobs" in refused(hostile, CHAT, body_of(CHAT, logprobs=True, top_logprobs=value))
        assert "top_logprobs" in refused(hostile, RESPONSES, body_of(RESPONSES, top_logprobs=value))
        assert "logprobs" in refused(hostile, COMPLETIONS, body_of(COMPLETIONS, logprobs=value))


def test_a_wrong_logit_bias_is_named(hostile):
    for ids in ({"-1": 1}, {str(2**63): 1}, {"x": 1}, {"5": "much"}):
        for path in (CHAT, COMPLETIONS):
            assert "logit_bias" in refused(hostile, path, body_of(path, logit_bias=ids))


def test_the_memory_comes_back(hostile):
    """After all of the above the server is not much larger than its peak would explain."""
    assert hostile.resident_bytes() < 2048 * MEBIBYTE
