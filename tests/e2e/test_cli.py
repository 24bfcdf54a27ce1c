"""The command line: what the commands print, and that a wrong call fails with a message."""

import json

import pytest
from hadal_server import TINY, run_hadal
from safetensors_file import floats, read

TOKENIZER = TINY / "tokenizer.json"


def generate(*arguments):
    lines = run_hadal("generate", "--model", TINY, *arguments, "--json").stdout.splitlines()
    assert len(lines) == 1
    return json.loads(lines[0])


def test_generate_answers_a_chat(samples):
    sample = samples[4]
    answer = generate("--chat", sample["request"]["messages"][0]["content"], "--temperature", 0, "--max-tokens", 200)
    assert answer["token_ids"] == sample["output_ids"]
    assert answer["text"] == sample["output"].removesuffix("<｜end▁of▁sentence｜>")
    assert answer["finish_reason"] == "stop"
    assert answer["usage"]["prompt_tokens"] == len(sample["prompt_ids"])
    assert answer["usage"]["completion_tokens"] == len(sample["output_ids"])


def test_generate_prints_only_the_text_without_json(samples):
    sample = samples[4]
    text = sample["request"]["messages"][0]["content"]
    run = run_hadal("generate", "--model", TINY, "--chat", text, "--temperature", 0, "--max-tokens", 200)
    assert run.stdout == sample["output"].removesuffix("<｜end▁of▁sentence｜>") + "\n"


def test_generate_takes_token_ids(samples):
    sample = samples[4]
    ids = ",".join(map(str, sample["prompt_ids"]))
    answer = generate("--token-ids", ids, "--temperature", 0, "--max-tokens", 200)
    assert answer["token_ids"] == sample["output_ids"]


def test_generate_stops_at_max_tokens_and_may_ignore_the_end():
    answer = generate("--prompt", "Deck 2", "--temperature", 0, "--max-tokens", 5, "--ignore-eos")
    assert len(answer["token_ids"]) == 5
    assert answer["finish_reason"] == "length"


def test_generate_is_reproduced_by_its_seed_for_any_thread_count_and_instruction_set():
    options = ["--prompt", "One evening", "--temperature", 1.3, "--top-k", 50, "--top-p", 0.95, "--max-tokens", 40]
    first = generate(*options, "--seed", 3)
    assert generate(*options, "--seed", 3, "--threads", 1) == first
    assert generate(*options, "--seed", 3, "--isa", "scalar") == first
    assert generate(*options, "--seed", 4) != first


def test_tokenize_and_detokenize_are_inverse(samples):
    texts = ["Hello", "", "  two  spaces\n", "深海 🐙 é", samples[0]["prompt"]]
    lines = "".join(json.dumps({"id": number, "text": text}) + "\n" for number, text in enumerate(texts))
    for options in ([], ["--special"]):
        encoded = run_hadal("tokenize", "--tokenizer", TOKENIZER, *options, stdin=lines).stdout.splitlines()
        encoded = [json.loads(line) for line in encoded]
        assert [(line["id"], line["text"]) for line in encoded] == list(enumerate(texts))
        assert encoded[1]["ids"] == []
        back = "".join(json.dumps({"id": line["id"], "ids": line["ids"]}) + "\n" for line in encoded)
        decoded = run_hadal("detokenize", "--tokenizer", TOKENIZER, stdin=back).stdout.splitlines()
        assert [json.loads(line)["text"] for line in decoded] == texts
    assert encoded[4]["ids"] == samples[0]["prompt_ids"]  # the special tokens are recognised when asked for


def test_logits_agree_with_what_generate_picks(samples, tmp_path):
    sample = samples[4]
    ids = sample["prompt_ids"] + sample["output_ids"][:-1]
    path = tmp_path / "logits.safetensors"
    run_hadal("logits", "--model", TINY, "--token-ids", ",".join(map(str, ids)), "--out", path)
    dtype, shape, raw = read(path)["logits"]
    assert (dtype, shape) == ("F32", [len(ids), 2048])
    logits = floats(raw)
    first = len(sample["prompt_ids"]) - 1
    for step, expected in enumerate(sample["output_ids"]):
        row = logits[(first + step) * 2048 : (first + step + 1) * 2048]
        assert max(range(2048), key=row.__getitem__) == expected


def test_logits_are_the_same_bits_for_any_chunks_threads_and_instruction_set(samples, tmp_path):
    ids = ",".join(map(str, samples[8]["prompt_ids"] + samples[8]["output_ids"]))

    def logits(name, *options):
        path = tmp_path / name
        run_hadal("logits", "--model", TINY, "--token-ids", ids, "--out", path, *options)
        return read(path)["logits"]

    whole = logits("whole")
    assert logits("chunks", "--chunk", 7, "--threads", 1) == whole
    assert logits("scalar", "--isa", "scalar") == whole


def test_logits_captures_what_is_asked_for(samples, tmp_path):
    ids = samples[0]["prompt_ids"]
    path = tmp_path / "capture.safetensors"
    run_hadal(
        "logits", "--model", TINY, "--token-ids", ",".join(map(str, ids)), "--out", path,
        "--capture", "hidden,router,index,engram", "--precision", "f32",
    )  # fmt: skip
    tensors = read(path)
    assert {"logits", "streams", "experts", "expert_weights"} <= tensors.keys()
    assert any(name.startswith("topk.") for name in tensors)
    assert any(name.startswith("engram_ids.") for name in tensors)
    assert tensors["experts"][1][-1] == tensors["expert_weights"][1][-1] == 2  # of 8 experts two are chosen


def test_inspect_says_what_the_checkpoint_is():
    printed = run_hadal("inspect", TINY).stdout
    for word in ("DeepSeek-V4.1", "vocabulary 2048", "hidden size 192", "memory in all", "kernels"):
        assert word in printed


def test_help_and_version():
    for command in ("serve", "chat", "generate", "logits", "tokenize", "detokenize", "inspect"):
        assert command in run_hadal("--help").stdout
        assert run_hadal(command, "--help").stdout
    assert "0.1.0" in run_hadal("--version").stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "subcommand"),
        (["fly"], "fly"),
        (["generate", "--model", TINY, "--fly"], "--fly"),
        (["generate", "--model", TINY], "--chat"),
        (["generate", "--model", TINY, "--chat", "Hi", "--prompt", "Hi"], "--prompt"),
        (["generate", "--model", TINY, "--prompt", "Hi", "--temperature", "-1"], "temperature"),
        (["generate", "--model", TINY, "--prompt", "Hi", "--isa", "abacus"], "abacus"),
        (["generate", "--model", TINY, "--token-ids", "5,x"], "x"),
        (["generate", "--model", TINY, "--token-ids", "5,2048", "--max-tokens", "1"], "2048"),
        (["generate", "--model", "/no/such/folder", "--prompt", "Hi"], "/no/such/folder"),
        (["serve", "--model", TINY, "--port", "70000"], "70000"),
        (["logits", "--model", TINY, "--token-ids", "5"], "--out"),
        (["logits", "--model", TINY, "--token-ids", "5", "--out", "/no/such/folder/f"], "/no/such/folder/f"),
        (["tokenize", "--tokenizer", "/no/such/file"], "/no/such/file"),
        (["inspect", "/no/such/folder"], "/no/such/folder"),
    ],
    ids=lambda value: " ".join(map(str, value))[:60] if isinstance(value, list) else None,
)
def test_a_wrong_call_fails_and_says_why(arguments, named):
    run = run_hadal(*arguments, check=False)
    assert run.returncode not in (0, None) and run.returncode > 0  # not killed by a signal
    assert run.stdout == "" or "usage" in run.stdout.lower()
    assert named in run.stderr
    assert "terminate called" not in run.stderr


def test_a_line_that_cannot_be_read_gets_an_error_and_the_others_their_answer():
    lines = '{"id": 1, "text": "a"}\nnonsense\n{"id": 2}\n{"id": 3, "text": "a"}\n'
    printed = run_hadal("tokenize", "--tokenizer", TOKENIZER, stdin=lines, check=False).stdout.splitlines()
    first, no_json, no_text, last = map(json.loads, printed)
    assert first["ids"] == last["ids"] != []
    assert no_json["error"] and no_text["error"]
    assert no_text["id"] == 2


def test_a_model_that_is_not_in_the_hub_cache_gives_the_command_that_fetches_it(tmp_path):
    run = run_hadal(
        "generate", "--model", "deepseek-ai/Some-Model", "--prompt", "Hi",
        check=False, environment={"HF_HOME": str(tmp_path)},
    )  # fmt: skip
    assert run.returncode > 0
    assert "hf download deepseek-ai/Some-Model" in run.stderr
