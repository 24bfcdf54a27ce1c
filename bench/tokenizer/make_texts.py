#!/usr/bin/env python3
"""Texts for the tokenizer benchmark, the same on every run of one Python version: no repetition, no downloads.

english: the language reference inside pydoc, news files and the docstrings of the standard library.
code:    sources of the standard library.
chinese: words drawn by the frequencies of the dictionary in `jieba`, in sentences.
hostile: one megabyte that is one single word, in several ways.
"""
import ast
import pathlib
import random
import re
import sysconfig

SIZE = 6_000_000


def library_files(suffix):
    root = pathlib.Path(sysconfig.get_paths()["stdlib"])
    return [p for p in sorted(root.rglob("*" + suffix)) if "site-packages" not in p.parts]


def english():
    from pydoc_data.topics import topics

    pieces = [text for _, text in sorted(topics.items())]
    for path in library_files(".txt"):
        text = path.read_text("utf-8", "ignore")
        if "NEWS" in path.name or "News" in path.name:
            pieces.append(text)
    for path in library_files(".py"):
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (SyntaxError, UnicodeDecodeError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                pieces.append(ast.get_docstring(node) or "")
    seen, out, size = set(), [], 0
    for piece in pieces:
        for paragraph in re.split(r"\n\s*\n", piece):
            paragraph = "\n".join(line.strip() for line in paragraph.strip().splitlines())
            letters = sum(c.isalpha() or c == " " for c in paragraph)
            # Prose only: long enough, mostly letters, no examples.
            if len(paragraph) < 80 or letters < 0.88 * len(paragraph) or paragraph in seen:
                continue
            seen.add(paragraph)
            out.append(paragraph + "\n\n")
            size += len(out[-1])
            if size >= SIZE:
                return "".join(out)
    return "".join(out)


def code():
    out, size = [], 0
    files = library_files(".py")
    random.Random(1).shuffle(files)
    for path in files:
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        # Tables of data are no code.
        if len(text) < 200_000:
            out.append(text)
            size += len(text)
            if size >= SIZE:
                break
    return "".join(out)


def chinese():
    import jieba

    words, cumulated, total = [], [], 0
    for line in jieba.get_dict_file():
        word, frequency, _ = line.decode("utf-8").split(" ")
        words.append(word)
        total += int(frequency)
        cumulated.append(total)
    dice = random.Random(2)
    out, size = [], 0
    while size < SIZE:
        clauses = []
        for _ in range(dice.randint(1, 4)):
            clause = "".join(dice.choices(words, cum_weights=cumulated, k=dice.randint(3, 12)))
            if dice.random() < 0.05:
                clause += str(dice.randint(1, 2026)) + dice.choice("年月日个")
            clauses.append(clause)
        sentence = "，".join(clauses) + dice.choice("。。。。！？；") + ("\n" if dice.random() < 0.2 else "")
        out.append(sentence)
        size += len(sentence.encode())
    return "".join(out)


def hostile():
    million = 1_000_000
    dice = random.Random(3)
    return {
        "hostile_one_letter": "a" * million,
        "hostile_one_mark": "e" + "\u0301" * (million // 2),
        "hostile_letters": "".join(dice.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(million)),
        "hostile_spaces": " " * million,
        "hostile_han": "".join(chr(dice.randint(0x4E00, 0x9FA5)) for _ in range(million // 3)),
        "hostile_punctuation": "".join(dice.choice("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") for _ in range(million)),
        "hostile_controls": "\x01" * million,
        "hostile_newlines": "\r\n" * (million // 2),
        "hostile_digits": "7" * million,
        "hostile_markers": "<｜" * (million // 4),
    }


def make_all():
    return {"english": english(), "chinese": chinese(), "code": code(), **hostile()}
