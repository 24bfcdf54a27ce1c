#!/usr/bin/env python3
"""Writes cases.jsonl: token ids of varied texts by Hugging Face `tokenizers` (0.23.3) over models/tiny/tokenizer.json.

usage: make_cases.py ../../../models/tiny/tokenizer.json > cases.jsonl

`ids` uses the whole vocabulary, `plain` a copy of the tokenizer without added tokens, `decoded` keeps special tokens.
"""
import json
import random
import sys

from tokenizers import Tokenizer

ALPHABETS = [
    [chr(c) for c in range(32, 127)],
    list("the quick brown fox's 'RE 'll 12345 67,890.5"),
    [chr(c) for c in range(0x4E00, 0x4E80)] + list("ひらがなカタカナ。、"),
    list("😀👩‍👩‍👧‍👦🇩🇪🏽❤️"),
    ["e\u0301", "a\u0300\u0323", "\u0e33", "\u0915\u094d\u0937"],
    list(" \t\n\r\u00a0\u2003\u3000") + ["a", "1", "."],
    [chr(c) for c in (0x00, 0x1F, 0x7F, 0x85, 0xAD, 0x200B, 0x2028, 0xFFFD, 0xFEFF, 0x10FFFF, 0xE000)] + ["x"],
    list("٠١٢٣४५Ⅷ½²㊄") + ["a"],
    list("!?,.;:()[]{}<>|/\\-_=+*&^%$#@~`\"'") + ["a", " "],
]


def main():
    path = sys.argv[1]
    whole = Tokenizer.from_file(path)
    data = json.load(open(path, encoding="utf-8"))
    special = [t["content"] for t in data["added_tokens"]]
    data["added_tokens"] = []
    plain = Tokenizer.from_str(json.dumps(data))
    rng = random.Random(7)
    texts = ["", " ", "Hello, world!", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "\n\n\n", "don't 'tis I'LL"]
    texts += special[:12] + ["a" + s + " b" for s in special[-12:]]
    for _ in range(400):
        parts = [rng.choice(rng.choice(ALPHABETS)) for _ in range(rng.randint(1, 40))]
        if rng.random() < 0.2:
            parts.insert(rng.randrange(len(parts)), rng.choice(special))
        texts.append("".join(parts))
    for number, text in enumerate(texts):
        ids = whole.encode(text, add_special_tokens=False).ids
        print(json.dumps({"id": number, "text": text, "ids": ids,
                          "plain": plain.encode(text, add_special_tokens=False).ids,
                          "decoded": whole.decode(ids, skip_special_tokens=False)}, ensure_ascii=False))


if __name__ == "__main__":
    main()
