"""The openai client's Responses against scripted output."""

import json

import openai
import pydantic
import pytest
from scripted import MODEL, Sent, answer, calls, cut, render, serving

EOS = "<｜end▁of▁sentence｜>"
QUESTION = "What is the weather?"
WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
    "strict": False,
}
PATCH = {"type": "custom", "name": "apply_patch", "description": "Edits files", "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'}}
NOTES = {"type": "custom", "name": "notes", "description": "Takes notes"}
FILES = {"type": "namespace", "name": "files", "description": "Files", "tools": [dict(WEATHER, name="read", description="Reads a file")]}
PATCH_TEXT = '*** Begin Patch\n*** Add File: "a".txt\n+{}\\\n*** End Patch'


def ask(client, **options):
    return client.responses.create(**{"model": MODEL, "input": QUESTION} | options)


class Forecast(pydantic.BaseModel):
    city: str
    degrees: list[int]


FORECAST = '{"city": "Paris", "degrees": [19, 23]}'


def test_events_agree_with_the_object_at_the_end():
    """B30: for a stream with reasoning, text and calls, whatever a client keeps of it."""
    text = "I look.</think>" + "One moment." + calls(("weather", {"city": "Paris"}), ("weather", {"city": "Rome"}))
    with serving({"pieces": cut(text, 5)}) as server:
        events = list(ask(server.client(), tools=[WEATHER], stream=True))
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
        assert events[-1].type == "response.completed"
        final = events[-1].response
        assert events[0].response.id == final.id

        built = {}
        for event in events:
            if event.type == "response.output_item.added":
                built[event.output_index] = {"item": event.item, "text": "", "done": []}
            elif event.type.endswith(".delta"):
                assert event.item_id == built[event.output_index]["item"].id
                built[event.output_index]["text"] += event.delta
            elif event.type.endswith(".done"):
                built[event.output_index]["done"].append(event.type)
                if event.type == "response.output_item.done":
                    assert event.item.id == built[event.output_index]["item"].id
                    assert event.item == final.output[event.output_index]
        assert [item.type for item in final.output] == ["reasoning", "message", "function_call", "function_call"]
        for index, item in enumerate(final.output):
            whole = item.arguments if item.type == "function_call" else item.content[0].text
            assert built[index]["text"] == whole
            assert built[index]["done"][-1] == "response.output_item.done"
            assert len(built[index]["done"]) == (2 if item.type == "function_call" else 3)
            if item.type == "function_call":
                assert item.call_id == built[index]["item"].call_id
        assert final.usage.output_tokens_details.reasoning_tokens > 0


def test_the_stream_helper_ends_with_the_same_response():
    with serving(answer("Hm.</think>", "Fine.")) as server:
        client = server.client()
        with client.responses.stream(model=MODEL, input=QUESTION) as stream:
            text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
            final = stream.get_final_response()
        assert text == final.output_text == ask(client).output_text == "Fine."


@pytest.mark.parametrize("drops", [set(), {"encrypted_content"}])
def test_a_turn_goes_on_with_what_was_answered(drops):
    """B09: the reasoning item is the thinking of that turn, and calls of every kind come back to the byte."""
    first = "I look.</think>" + "One moment." + calls(("weather", {"city": 'P"aris\n'}), ("files::read", {"city": "x"}), ("apply_patch", {"input": PATCH_TEXT}), ("notes", {"input": "n 🙂"}))
    tools = [WEATHER, FILES, PATCH, NOTES, {"type": "web_search"}, {"type": "local_shell"}]
    sent = Sent()
    with serving({"pieces": cut(first, 9)}, answer("Good.</think>", "Done.")) as server:
        client = server.client(http_client=sent.http_client(openai))
        response = ask(client, tools=tools, include=["reasoning.encrypted_content"], store=False, prompt_cache_key="k")
        by_name = {item.name: item for item in response.output if hasattr(item, "call_id")}
        assert json.loads(by_name["weather"].arguments) == {"city": 'P"aris\n'}
        assert (by_name["read"].type, by_name["read"].namespace) == ("function_call", "files")
        assert (by_name["apply_patch"].type, by_name["apply_patch"].input) == ("custom_tool_call", PATCH_TEXT)
        assert (by_name["notes"].type, by_name["notes"].input) == ("custom_tool_call", "n 🙂")
        outputs = [
            {"type": item.type + "_output", "call_id": item.call_id, "output": name} for name, item in by_name.items()
        ]
        history = [item.model_dump(exclude_none=True, exclude=drops) for item in response.output]
        second = ask(client, input=[{"role": "user", "content": QUESTION}, *history, *outputs], tools=tools)
        assert second.output_text == "Done."
    prompt = render("responses", sent.bodies[1])
    assert "<think>" + first + EOS in prompt
    assert "<tool_result>apply_patch</tool_result>" in prompt


def test_custom_tool_input_streams():
    with serving(answer(calls(("apply_patch", {"input": PATCH_TEXT * 20})))) as server:
        stream = ask(server.client(), tools=[PATCH], stream=True, reasoning={"effort": "none"})
        deltas = [event.delta for event in stream if event.type == "response.custom_tool_call_input.delta"]
        assert len(deltas) > 20
        assert "".join(deltas) == PATCH_TEXT * 20


@pytest.mark.parametrize("effort", ["none", "high"])
def test_parse_gives_an_object(effort):
    with serving(answer("Hm.</think>" if effort == "high" else "", FORECAST)) as server:
        client = server.client()
        parsed = client.responses.parse(model=MODEL, input=QUESTION, text_format=Forecast, reasoning={"effort": effort})
        assert parsed.output_parsed == Forecast.model_validate_json(FORECAST)
        with client.responses.stream(model=MODEL, input=QUESTION, text_format=Forecast, reasoning={"effort": effort}) as stream:
            assert stream.get_final_response().output_parsed == parsed.output_parsed


def test_parse_gives_arguments():
    tool = openai.pydantic_function_tool(Forecast)["function"] | {"type": "function"}
    with serving(answer(calls(("Forecast", {"city": "Paris", "degrees": [1]})))) as server:
        response = server.client().responses.parse(model=MODEL, input=QUESTION, tools=[tool], reasoning={"effort": "none"})
        (call,) = response.output
        assert json.loads(call.arguments) == {"city": "Paris", "degrees": [1]}


def test_an_answer_that_is_cut_off_is_incomplete():
    with serving(answer("word " * 100)) as server:
        response = ask(server.client(), max_output_tokens=20)
        assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
        assert response.usage.output_tokens == response.usage.output_tokens_details.reasoning_tokens == 20
        events = list(ask(server.client(), max_output_tokens=20, stream=True))
        assert events[-1].type == "response.incomplete"


def test_agents_fields_and_unknown_tools_are_no_reason_to_refuse():
    """B29: nothing of what agents send is refused for the lot, and what is left out is said nowhere in the prompt."""
    tools = [WEATHER, {"type": "web_search", "external_web_access": True}, {"type": "image_generation"}, {"type": "tomorrow"}]
    extra = {"client_metadata": {"a": "b"}, "service_tier": "auto", "truncation": "disabled", "text": {"verbosity": "low"}}
    with serving(answer("Hm.</think>Fine.")) as server:
        response = ask(
            server.client(), tools=tools, tool_choice="auto", parallel_tool_calls=True, store=False, include=[], extra_body=extra
        )
        assert response.output_text == "Fine."


def test_errors_have_a_code_that_clients_know():
    """B32"""
    with serving(answer("x"), options=("--max-model-len", "100")) as server:
        with pytest.raises(openai.BadRequestError) as caught:
            ask(server.client(), input="word " * 400)
        assert caught.value.code == "context_length_exceeded"
        assert "100 tokens" in caught.value.message
        with pytest.raises(openai.NotFoundError):
            ask(server.client(), model="gpt-9")


@pytest.mark.parametrize("options", [{"top_logprobs": 2}, {"include": ["message.output_text.logprobs"]}])
def test_logprobs_are_those_of_the_text(options):
    with serving(answer("Hm.</think>", "Sunny 🙂")) as server:
        response = ask(server.client(), **options)
        part = response.output[-1].content[0]
        assert b"".join(bytes(entry.bytes) for entry in part.logprobs).decode() == part.text == "Sunny 🙂"
        assert not ask(server.client()).output[-1].content[0].logprobs
