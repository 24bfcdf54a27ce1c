#!/usr/bin/env python3
"""Compares `hadal tokenize` and `hadal detokenize` with the PyPI package `tokenizers` (0.23.3) on random texts.

usage: compare_tokenizer.py HADAL tokenizer.json [--count 100000] [--seed 1]

Texts mix ASCII, CJK, emoji with joiners, combining marks, every assigned and unassigned code point, white space, digits and
spellings of added tokens. Invalid UTF-8 cannot stand in JSON lines: unit tests hold those cases. Prints the first
differences; exit status 0 only if there is none.
"""
import argparse
import json
import random
import subprocess
import sys

from tokenizers import Tokenizer

SETS = [
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    " \t\n\r\u00a0\u2003\u3000\u0085\u2028",
    "0123456789٠١٢३४Ⅷ½²",
    "!?,.;:()[]{}<>|/\\-_=+*&^%$#@~`\"'’",
    "".join(map(chr, range(0x4E00, 0x4F00))) + "ひらがなカタカナ龥゠ヿ、。",
    "😀👩👨👧🇩🇪🏽❤\ufe0f\u200d🚀",
    "\u0301\u0300\u0323\u0e33\u094d\u0915\u20dd\u0483",
    "éàüñßœøÅİıſ",
]


def random_text(rng, special):
    parts = []
    for _ in range(rng.randint(1, 12)):
        kind = rng.random()
        if kind < 0.08:
            code = rng.randrange(0x110000)
            parts.append(chr(code) if not 0xD800 <= code < 0xE000 else "x")
        elif kind < 0.11:
            parts.append(rng.choice(special))
        else:
            letters = rng.choice(SETS)
            parts.append("".join(rng.choice(letters) for _ in range(rng.randint(1, 8))))
    return "".join(parts)


def filter_lines(command, rows):
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    done = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hadal")
    parser.add_argument("tokenizer")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    data = json.load(open(args.tokenizer, encoding="utf-8"))
    special = [token["content"] for token in data["added_tokens"]]
    whole = Tokenizer.from_file(args.tokenizer)
    plain = Tokenizer.from_str(json.dumps({**data, "added_tokens": []}))
    texts = [random_text(rng, special) for _ in range(args.count)]
    rows = [{"id": i, "text": text} for i, text in enumerate(texts)]
    bad = 0
    for name, reference, flags in (("special", whole, ["--special"]), ("plain", plain, [])):
        mine = filter_lines([args.hadal, "tokenize", "--tokenizer", args.tokenizer, *flags], rows)
        want = [e.ids for e in reference.encode_batch(texts, add_special_tokens=False)]
        for row, ids in zip(mine, want):
            if row.get("ids") != ids:
                bad += 1
                if bad <= 5:
                    print(f"{name} {json.dumps(row['text'])}: want {ids} got {row.get('ids', row.get('error'))}")
        if name == "special":
            back = filter_lines([args.hadal, "detokenize", "--tokenizer", args.tokenizer],
                                [{"id": i, "ids": ids} for i, ids in enumerate(want)])
            for row, ids in zip(back, want):
                if row.get("text") != whole.decode(ids, skip_special_tokens=False):
                    bad += 1
                    if bad <= 5:
                        print(f"decode {ids}: got {row.get('text', row.get('error'))!r}")
    print(f"{args.count} texts, {bad} differences")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
