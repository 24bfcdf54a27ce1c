"""hadal serve --script: what the file may hold, and that answers come as it says."""

import json
import threading

import openai
import pytest
from answers import NO_THINKING, chat
from hadal_server import TINY, run_hadal, wait_until
from scripted import MODEL, answer, calls, serving


def count(server, text):
    status, _, body = server.request("POST", "/tokenize", {"prompt": text, "add_special_tokens": False})
    assert status == 200
    return json.loads(body)["count"]


def test_answers_come_in_order_and_from_the_first_again():
    with serving(answer("one"), answer("two"), {"token_ids": [[5, 6], [7]]}) as server:
        client = server.client()
        _, _, body = server.request("POST", "/detokenize", {"tokens": [5, 6, 7]})
        third = json.loads(body)["prompt"]
        texts = [chat(client, MODEL, "Hi").content for _ in range(5)]
        assert texts == ["one", "two", third, "one", "two"]


def test_a_refused_request_takes_no_answer():
    with serving(answer("one"), answer("two")) as server:
        client = server.client()
        assert chat(client, MODEL, "Hi").content == "one"
        with pytest.raises(openai.BadRequestError):
            chat(client, MODEL, "Hi", temperature=9)
        server.request("POST", "/v1/messages/count_tokens", {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]})
        assert chat(client, MODEL, "Hi").content == "two"


def test_pieces_are_deltas():
    pieces = ["He", "llo", " ", "wörld", " 🙂"]
    with serving({"pieces": pieces}) as server:
        stream = server.client().chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "Hi"}], stream=True, extra_body=NO_THINKING
        )
        deltas = [chunk.choices[0].delta.content for chunk in stream]
        assert [delta for delta in deltas if delta] == pieces


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_marker_is_one_wherever_the_script_cuts_it(size):
    """B01: special tokens come whole, as from a model, and the arguments are the same for every cut."""
    text = "Let me look." + calls(("weather", {"city": "Paris", "days": [1, 2]}))
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]
    with serving({"pieces": pieces}) as server:
        response = server.client().chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "Hi"}], tools=tools, extra_body=NO_THINKING
        )
        (choice,) = response.choices
        (call,) = choice.message.tool_calls
        assert json.loads(call.function.arguments) == {"city": "Paris", "days": [1, 2]}
        assert choice.message.content == "Let me look."


def test_usage_counts_the_tokens_of_the_rendering_and_of_the_pieces():
    with serving(answer("Some text to count."), answer("x", prompt_tokens=1234)) as server:
        client = server.client()
        _, _, body = server.request(
            "POST", "/tokenize", {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]} | NO_THINKING
        )
        prompt, completion, _ = chat(client, MODEL, "Hi").usage
        assert prompt == json.loads(body)["count"]
        assert completion == sum(count(server, piece) for piece in answer("Some text to count.")["pieces"])
        assert chat(client, MODEL, "Hi").usage == (1234, 1, 1235)
        assert server.metric("hadal_prompt_tokens_total") == prompt + 1234


def test_prompt_tokens_are_those_of_the_script_in_every_protocol():
    with serving(answer("x", prompt_tokens=77)) as server:
        question = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        for path, body, key in (
            ("/v1/messages", question, "input_tokens"),
            ("/v1/responses", {"model": MODEL, "input": "Hi"}, "input_tokens"),
            ("/v1/completions", {"model": MODEL, "prompt": "Hi"}, "prompt_tokens"),
        ):
            status, _, text = server.request("POST", path, body)
            assert (status, json.loads(text)["usage"][key]) == (200, 77)


def test_the_end_is_the_scripts_unless_the_request_ends_it_before():
    with serving(answer("abcdefghijklmnop", finish="length")) as server:
        client = server.client()
        assert chat(client, MODEL, "Hi").finish_reason == "length"
        stopped = chat(client, MODEL, "Hi", stop="hij")
        assert (stopped.content, stopped.finish_reason) == ("abcdefg", "stop")
        short = chat(client, MODEL, "Hi", max_tokens=2)
        assert short.finish_reason == "length"
        assert short.usage[1] == 2
        assert "abcdefghijklmnop".startswith(short.content)


def test_eos_in_the_script_ends_the_answer():
    with serving({"pieces": ["one<｜end▁of▁sentence｜>", " two"], "finish": "length"}) as server:
        reply = chat(server.client(), MODEL, "Hi")
        assert (reply.content, reply.finish_reason) == ("one", "stop")


def test_completions_and_logprobs():
    with serving(answer("some text")) as server:
        response = server.client().completions.create(model=MODEL, prompt="Hi", logprobs=2)
        (choice,) = response.choices
        assert choice.text == "some text"
        assert "".join(choice.logprobs.tokens) == "some text"
        assert set(choice.logprobs.token_logprobs) == {0.0}
        assert response.usage.completion_tokens == len(choice.logprobs.tokens)


def test_a_client_that_leaves_cancels_its_answer():
    with serving({"pieces": ["x"] * 1000, "delay_ms": 50}) as server:
        stream = server.client().chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "Hi"}], stream=True, extra_body=NO_THINKING
        )
        next(iter(stream))
        assert server.metric("hadal_running") == 1
        stream.close()
        assert wait_until(lambda: server.metric("hadal_running") == 0)


def test_requests_beyond_max_num_seqs_wait():
    with serving({"pieces": ["x"] * 400, "delay_ms": 50}, options=("--max-num-seqs", "1")) as server:
        streams = []

        def ask():
            stream = server.client().chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": "Hi"}], stream=True, extra_body=NO_THINKING
            )
            streams.append(stream)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        assert wait_until(lambda: server.metric("hadal_waiting") == 2)
        assert server.metric("hadal_running") == 1
        for thread in threads:
            thread.join()
        for stream in streams:
            stream.close()
        assert wait_until(lambda: server.metric("hadal_running") == 0)


def test_a_long_silence_is_filled():
    """B31: the head comes at once, and keep-alives while nothing else does."""
    options = ("--keep-alive-interval", "50ms")
    with serving({"pieces": ["late"], "delay_ms": 600}, options=options) as server:
        body = {"model": MODEL, "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
        for path, mark in (("/v1/chat/completions", b": keep-alive"), ("/v1/messages", b"event: ping")):
            _, _, text = server.request("POST", path, body | NO_THINKING)
            assert text.count(mark) >= 3
            assert text.index(mark) < text.index(b"late")


def test_the_tokenizer_is_that_of_the_model(tmp_path):
    """Of the directory only tokenizer.json is needed; the name is the directory's."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/tokenizer.json").write_bytes((TINY / "tokenizer.json").read_bytes())
    with serving(answer("one"), model=tmp_path / "mine") as server:
        assert server.model == "mine"
        assert chat(server.client(), "mine", "Hi").content == "one"


def refusal(tmp_path, text, *options):
    script = tmp_path / "script.jsonl"
    script.write_text(text, encoding="utf-8")
    run = run_hadal("serve", "--port", "0", "--script", script, *options, check=False)
    assert run.returncode == 2
    return run.stderr


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('{"pieces": [1]}', "pieces[0]: found 1, expected a string"),
        ('{"pieces": "text"}', 'pieces: found "text", expected an array of strings'),
        ('{"token_ids": [5]}', "token_ids[0]: found 5, expected an array of token ids"),
        ('{"token_ids": [[5, 99999999]]}', "token_ids[0][1]: found 99999999"),
        ('{"token_ids": [[-1]]}', "token_ids[0][0]: found -1"),
        ("{}", "pieces: expected this or token_ids"),
        ('{"pieces": [], "token_ids": []}', "not both"),
        ('{"pieces": [], "finish": "tool_calls"}', 'finish: found "tool_calls", expected "stop" or "length"'),
        ('{"pieces": [], "delay_ms": 1.5}', "delay_ms: found 1.5"),
        ('{"pieces": [], "delay_ms": -1}', "delay_ms: found -1"),
        ('{"pieces": [], "prompt_tokens": "7"}', 'prompt_tokens: found "7"'),
        ('{"pieces": [], "delay": 1}', "delay: unknown field"),
        ('{"pieces": [], "pieces": []}', "pieces"),
        ("[]", "found [], expected an object"),
        ('{"pieces": [', "not valid JSON"),
    ],
)
def test_a_bad_line_is_refused_by_number_and_field(tmp_path, line, field):
    error = refusal(tmp_path, '{"pieces": ["fine"]}\n\n' + line + "\n")
    assert "script.jsonl:3: " in error
    assert field in error


def test_other_reasons_not_to_start(tmp_path):
    assert "no answers" in refusal(tmp_path, "\n\n")
    assert "tokenizer.json" in refusal(tmp_path, '{"pieces": []}', "--model", tmp_path)
    run = run_hadal("serve", "--script", tmp_path / "none.jsonl", check=False)
    assert (run.returncode, "none.jsonl" in run.stderr) == (2, True)
