"""POST /v1/responses and /v1/messages through the official clients, and tool calls in all three protocols."""

import json

import anthropic
import pytest
from answers import NO_THINKING
from hadal_server import REQUEST_SECONDS

QUESTION = "Who is the captain?"
ANSWER = "The captain is Mara Voss."


@pytest.fixture(scope="module")
def messages_client(server):
    return anthropic.Anthropic(base_url=server.url, api_key="unused", timeout=REQUEST_SECONDS, max_retries=0)


@pytest.fixture(scope="module")
def tool_sample(samples):
    """A dialogue in which the model calls a tool at once."""
    return next(
        sample
        for sample in samples
        if "tools" in sample["request"] and sample["request"]["thinking"]["type"] == "disabled"
    )


def test_responses_answer(client, server):
    response = client.responses.create(
        model=server.model, input=QUESTION, temperature=0, reasoning={"effort": "none"}, max_output_tokens=64
    )
    assert response.status == "completed"
    assert response.output_text == ANSWER
    assert response.usage.output_tokens > 0


def test_responses_stream_the_same_text(client, server):
    text, types = "", []
    with client.responses.create(
        model=server.model, input=QUESTION, temperature=0, reasoning={"effort": "none"}, stream=True
    ) as stream:
        for event in stream:
            types.append(event.type)
            if event.type == "response.output_text.delta":
                text += event.delta
    assert text == ANSWER
    assert types[0] == "response.created"
    assert types[-1] == "response.completed"


def test_messages_answer(messages_client, server):
    message = messages_client.messages.create(
        model=server.model,
        max_tokens=64,
        messages=[{"role": "user", "content": QUESTION}],
        thinking={"type": "disabled"},
        extra_body={"temperature": 0},
    )
    (block,) = message.content
    assert (block.type, block.text, message.stop_reason) == ("text", ANSWER, "end_turn")
    assert message.usage.output_tokens > 0


def test_messages_stream_the_same_text(messages_client, server):
    with messages_client.messages.stream(
        model=server.model,
        max_tokens=64,
        messages=[{"role": "user", "content": QUESTION}],
        thinking={"type": "disabled"},
        extra_body={"temperature": 0},
    ) as stream:
        assert "".join(stream.text_stream) == ANSWER
        assert stream.get_final_message().stop_reason == "end_turn"


def test_messages_errors_have_that_protocols_shape(messages_client):
    with pytest.raises(anthropic.NotFoundError) as caught:
        messages_client.messages.create(
            model="no-such-model", max_tokens=4, messages=[{"role": "user", "content": "Hi"}]
        )
    assert caught.value.body["type"] == "error"
    assert "no-such-model" in caught.value.body["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_chat_calls_a_tool(client, server, tool_sample, stream):
    request = tool_sample["request"]
    response = client.chat.completions.create(
        model=server.model,
        messages=request["messages"],
        tools=request["tools"],
        temperature=0,
        stream=stream,
        extra_body=NO_THINKING,
    )
    if stream:
        name, arguments, finish = "", "", None
        for chunk in response:
            for choice in chunk.choices:
                for call in choice.delta.tool_calls or []:
                    name += call.function.name or ""
                    arguments += call.function.arguments or ""
                finish = choice.finish_reason or finish
    else:
        (choice,) = response.choices
        (call,) = choice.message.tool_calls
        name, arguments, finish = call.function.name, call.function.arguments, choice.finish_reason
    assert (name, json.loads(arguments), finish) == ("get_weather", {"city": "Lisbon"}, "tool_calls")


def test_messages_call_a_tool(messages_client, server, tool_sample):
    tools = [
        {"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]}
        | {key: tool["function"][key] for key in ("description",) if key in tool["function"]}
        for tool in tool_sample["request"]["tools"]
    ]
    message = messages_client.messages.create(
        model=server.model,
        max_tokens=200,
        messages=tool_sample["request"]["messages"],
        tools=tools,
        thinking={"type": "disabled"},
        extra_body={"temperature": 0},
    )
    (call,) = [block for block in message.content if block.type == "tool_use"]
    assert (call.name, call.input, message.stop_reason) == ("get_weather", {"city": "Lisbon"}, "tool_use")
