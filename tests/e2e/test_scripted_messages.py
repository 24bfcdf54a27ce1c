"""The anthropic client's Messages against scripted output."""

import json

import anthropic
import pydantic
import pytest
from hadal_server import REQUEST_SECONDS
from scripted import MODEL, Sent, answer, calls, cut, render, serving

EOS = "<｜end▁of▁sentence｜>"
USER = {"role": "user", "content": "What is the weather in Paris and Rome?"}
OFF = {"type": "disabled"}
TOOLS = [
    {
        "name": "weather",
        "description": "Weather of a city",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
]
TWO_CALLS = calls(("weather", {"city": "Paris", "days": [1, 2]}), ("weather", {"city": 'Ro"me\n🙂'}))
INPUTS = [{"city": "Paris", "days": [1, 2]}, {"city": 'Ro"me\n🙂'}]


def client_of(server, **options):
    return anthropic.Anthropic(base_url=server.url, api_key="unused", timeout=REQUEST_SECONDS, max_retries=0, **options)


def ask(client, **options):
    return client.messages.create(**{"model": MODEL, "max_tokens": 4000, "messages": [USER]} | options)


def test_the_stream_helper_gives_text_thinking_and_the_message():
    with serving(answer("I think.</think>", "It is sunny.")) as server:
        client = client_of(server)
        with client.messages.stream(model=MODEL, max_tokens=400, messages=[USER]) as stream:
            kinds = {"thinking": "", "text": "", "signature": ""}
            for event in stream:
                if event.type == "thinking":
                    kinds["thinking"] += event.thinking
                elif event.type == "text":
                    kinds["text"] += event.text
                elif event.type == "signature":
                    kinds["signature"] += event.signature
            message = stream.get_final_message()
        thinking, text = message.content
        assert kinds == {"thinking": "I think.", "text": "It is sunny.", "signature": thinking.signature}
        assert (thinking.thinking, text.text, message.stop_reason) == ("I think.", "It is sunny.", "end_turn")
        assert thinking.signature


@pytest.mark.parametrize("signature", ["own", "foreign", "empty"])
def test_parallel_tools_and_the_turn_with_their_results(signature):
    """B08, B52: the second prompt holds the first output to the byte, whoever signed the thinking."""
    first = "I need both.</think>" + "One moment." + TWO_CALLS
    sent = Sent()
    with serving({"pieces": cut(first)}, answer("Good.</think>", "Sunny.")) as server:
        client = client_of(server, http_client=sent.http_client(anthropic))
        with client.messages.stream(model=MODEL, max_tokens=400, messages=[USER], tools=TOOLS) as stream:
            message = stream.get_final_message()
        assert message.stop_reason == "tool_use"
        uses = [block for block in message.content if block.type == "tool_use"]
        assert [use.input for use in uses] == INPUTS
        blocks = [block.model_dump(exclude_none=True) for block in message.content]
        if signature != "own":
            blocks[0]["signature"] = "EqQBCkYIBxgCKkA" if signature == "foreign" else ""
        results = [{"type": "tool_result", "tool_use_id": use.id, "content": "sun"} for use in uses]
        history = [USER, {"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
        second = ask(client, messages=history, tools=TOOLS)
        assert second.content[-1].text == "Sunny."
        counted = client.messages.count_tokens(model=MODEL, messages=history, tools=TOOLS)
        assert counted.input_tokens == second.usage.input_tokens
    assert "<think>" + first + EOS in render("messages", sent.bodies[1])


def test_no_thinking_means_no_thinking_events():
    """B52, and every block that starts stops."""
    with serving(answer("Sunny.", TWO_CALLS)) as server:
        for thinking in (OFF, {"type": "adaptive"}):
            events = list(ask(client_of(server), tools=TOOLS, thinking=thinking, stream=True))
            starts = [event.index for event in events if event.type == "content_block_start"]
            stops = [event.index for event in events if event.type == "content_block_stop"]
            assert starts == stops == list(range(len(starts)))
            kinds = {event.content_block.type for event in events if event.type == "content_block_start"}
            assert ("thinking" in kinds) == (thinking != OFF)


def test_redacted_thinking_is_skipped():
    history = [
        USER,
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "abc"}, {"type": "text", "text": "Sunny."}]},
        {"role": "user", "content": "And now?"},
    ]
    with serving(answer("</think>Rain.")) as server:
        assert ask(client_of(server), messages=history).content[-1].text == "Rain."


@pytest.mark.parametrize("beta", [False, True])
def test_counted_tokens_are_those_of_usage(beta):
    """B28: with system, tools and images left out, and with the query string of the beta client."""
    bodies = [
        {"messages": [USER]},
        {"messages": [USER], "system": "Be brief."},
        {"messages": [USER], "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}], "tools": TOOLS},
        {"messages": [USER], "tools": TOOLS, "tool_choice": {"type": "none"}},
        {"messages": [USER], "thinking": OFF, "tools": TOOLS},
        {"messages": [USER, {"role": "assistant", "content": "It is"}], "thinking": OFF},
    ]
    with serving(answer("x")) as server:
        client = client_of(server)
        api = client.beta.messages if beta else client.messages
        counts = []
        for body in bodies:
            counted = api.count_tokens(model=MODEL, **body).input_tokens
            assert counted == api.create(model=MODEL, max_tokens=5, **body).usage.input_tokens
            counts.append(counted)
        assert len(set(counts[:3])) == 3
        assert counts[2] > counts[1] > counts[0]


def test_stop_sequences_are_named():
    """B27"""
    with serving({"pieces": ["one ST", "OP two"]}) as server:
        client = client_of(server)
        for stream in (False, True):
            options = {"model": MODEL, "max_tokens": 50, "messages": [USER], "thinking": OFF, "stop_sequences": ["XX", "STOP"]}
            if stream:
                with client.messages.stream(**options) as events:
                    message = events.get_final_message()
            else:
                message = client.messages.create(**options)
            assert (message.content[0].text, message.stop_reason, message.stop_sequence) == ("one ", "stop_sequence", "STOP")


def test_a_final_assistant_turn_is_continued():
    with serving(answer(" 21 degrees.")) as server:
        message = ask(client_of(server), messages=[USER, {"role": "assistant", "content": "It is"}], thinking=OFF)
        assert message.content[0].text == " 21 degrees."
    prompt = render("messages", {"model": MODEL, "max_tokens": 9, "thinking": OFF, "messages": [USER, {"role": "assistant", "content": "It is"}]})
    assert prompt.endswith("<｜Assistant｜></think>It is")


def test_parse_gives_an_object():
    class Forecast(pydantic.BaseModel):
        city: str
        degrees: list[int]

    with serving(answer("Hm.</think>", '{"city": "Paris", "degrees": [19]}')) as server:
        message = client_of(server).messages.parse(model=MODEL, max_tokens=400, messages=[USER], output_format=Forecast)
        assert message.parsed_output == Forecast(city="Paris", degrees=[19])


def test_what_agents_send_is_taken():
    """Fields, betas and blocks of a real session (Claude Code), with a system turn in the middle."""
    body = {
        "model": MODEL,
        "max_tokens": 32000,
        "stream": False,
        "system": [{"type": "text", "text": "x-header: a=b;"}, {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "messages": [USER, {"role": "system", "content": [{"type": "text", "text": "# Environment"}]}],
        "tools": [*TOOLS, {"name": "Later", "description": "d", "input_schema": {"type": "object", "properties": {}}, "defer_loading": True}, dict(TOOLS[0], name="mine", type="custom")],
        "metadata": {"user_id": '{"device_id":"x"}'},
        "thinking": {"type": "adaptive", "display": "omitted"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "output_config": {"effort": "high"},
    }
    with serving(answer("Hm.</think>Fine.")) as server:
        headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "a-2025-01-01,b-2026-01-01", "x-api-key": "unused"}
        status, _, text = server.request("POST", "/v1/messages?beta=true", body, headers)
        assert status == 200, text
        assert json.loads(text)["content"][-1]["text"] == "Fine."


def test_models_are_listed_for_both_clients():
    with serving(answer("x")) as server:
        client = client_of(server)
        models = list(client.models.list())
        assert [model.id for model in models] == [model.id for model in server.client().models.list()]
        assert {(model.type, model.lifecycle) for model in models} == {("model", "active")}
        one = client.models.retrieve(MODEL)
        assert (one.id, one.display_name) == (MODEL, MODEL)
        assert one.created_at.timestamp() == server.client().models.retrieve(MODEL).created
        assert one.max_input_tokens > 0


def test_overflow_names_both_numbers():
    """B32: in the words by which clients tell the two kinds."""
    with serving(answer("x"), options=("--max-model-len", "100")) as server:
        with pytest.raises(anthropic.BadRequestError) as caught:
            ask(client_of(server), messages=[{"role": "user", "content": "word " * 400}], max_tokens=10)
        error = caught.value.body["error"]
        assert error["type"] == "invalid_request_error"
        assert "100 tokens" in error["message"]
        counted = client_of(server).messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "word " * 400}])
        assert f"prompt is too long: {counted.input_tokens} tokens > 100 maximum" in error["message"]
        with pytest.raises(anthropic.BadRequestError, match=r"exceed context limit: \d+ \+ 99 > 100"):
            ask(client_of(server), max_tokens=99)
