"""Errors have the shape that OpenAI clients read, the right status, and name the field."""

import json

import openai
import pytest

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"


def error_of(status_headers_body, status):
    found, headers, body = status_headers_body
    assert found == status, body
    assert headers.get_content_type() == "application/json"
    document = json.loads(body)
    assert document.keys() == {"error"}
    error = document["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert isinstance(error["message"], str) and error["message"]
    assert isinstance(error["type"], str) and error["type"]
    assert error["param"] is None or isinstance(error["param"], str)
    assert error["code"] is None or isinstance(error["code"], str)
    return error


def chat_body(server, **changes):
    body = {"model": server.model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2} | changes
    return {name: value for name, value in body.items() if value is not ...}


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"model": "x"', b"[" * 100_000, b'{"a":' * 100_000],
    ids=["empty", "open", "list", "null", "not-utf8", "cut", "deep-list", "deep-object"],
)
def test_a_body_that_is_no_request_is_refused(server, path, body):
    error_of(server.request("POST", path, body), 400)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"messages": ...}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "Hello"}, "messages"),
        ({"messages": [{"role": "king", "content": "Hello"}]}, "role"),
        ({"temperature": 9}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"stop": [""]}, "stop"),
        ({"logit_bias": {"five": 1}}, "logit_bias"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"guided_regex": "a+"}, "guided_regex"),
    ],
)
def test_a_wrong_chat_field_is_named(server, changes, named):
    assert named in error_of(server.request("POST", CHAT, chat_body(server, **changes)), 400)["message"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [5, -1]}, "prompt"),
        ({"prompt": [5, 2_000_000]}, "prompt"),
        ({"prompt": "x", "max_tokens": 0}, "max_tokens"),
        ({"prompt": "x", "max_tokens": 10**9}, "maximum context length"),
        ({"prompt": "x", "n": 0}, "n"),
        ({"prompt": "x", "top_k": 1.5}, "top_k"),
        ({"prompt": "x", "min_p": 2}, "min_p"),
    ],
)
def test_a_wrong_completion_field_is_named(server, changes, named):
    body = {"model": server.model} | changes
    assert named in error_of(server.request("POST", COMPLETIONS, body), 400)["message"]


def test_an_unknown_model_is_named(server):
    body = {"model": "no-such-model", "prompt": "x"}
    assert "no-such-model" in error_of(server.request("POST", COMPLETIONS, body), 404)["message"]
    found = server.request("POST", CHAT, chat_body(server, model="no-such-model"))
    assert "no-such-model" in error_of(found, found[0])["message"]
    assert found[0] in (400, 404)


def test_a_prompt_that_is_too_long_says_by_how_much(server):
    found = server.request("POST", CHAT, chat_body(server, messages=[{"role": "user", "content": "deep sea " * 5000}]))
    assert "4096" in error_of(found, 400)["message"]


def test_an_unknown_path_and_a_wrong_method(server):
    error_of(server.request("GET", "/v1/nothing"), 404)
    error_of(server.request("GET", CHAT), 405)
    error_of(server.request("POST", "/v1/models", {}), 405)


def test_the_official_client_raises_its_own_errors(client, server):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=server.model, messages=[], max_tokens=2)
    assert caught.value.body["message"]
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="no-such-model", prompt="x")


def test_the_server_answers_on_after_all_this(client, server):
    assert client.completions.create(model=server.model, prompt="x", max_tokens=1).choices
