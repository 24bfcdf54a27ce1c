#!/usr/bin/env python3
"""Copies the model goldens that the tests use, without the arrays that they do not.

usage: thin_goldens.py GOLDENS_DIR OUTPUT_DIR

GOLDENS_DIR holds <checkpoint>/<case>.json and .safetensors; the same names are written below OUTPUT_DIR. Needs no
packages. What stays of a case:

* ids, kind, replay_keep, full_logits_positions, and of each mode the margins, continuation, draft and verification trace
* the best TOP of top_ids and top_values at every position, whole rows of logits at LOGIT_ROWS positions at most
* experts, topk.L and candidates; engram_ids.L once, since no mode changes them
* expert_weights and streams for the cases of DETAILED
* draft_hidden whole, draft_logits of the first and the last guess, target_features of the last position
"""
import json
import pathlib
import struct
import sys

TOP = 8
LOGIT_ROWS = 4
KINDS = {"logits", "greedy", "replay", "dspark"}
DETAILED = {"tiny-mini/short", "tiny-mini/two", "tiny/short"}
MODE_FIELDS = ("margins", "continuation", "smallest_gap", "valid_from", "draft", "speculative")


class Array:
    """Bytes of a row-major array of 4-byte elements."""

    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, shape, data

    def rows(self, indices):
        size = len(self.data) // self.shape[0]
        data = b"".join(self.data[i * size : (i + 1) * size] for i in indices)
        return Array(self.dtype, [len(indices), *self.shape[1:]], data)

    def last_of_second_axis(self):
        first, second, width = self.shape
        data = b"".join(self.data[4 * width * ((i + 1) * second - 1) : 4 * width * (i + 1) * second] for i in range(first))
        return Array(self.dtype, [first, width], data)

    def first_columns(self, count):
        rows, width = self.shape
        data = b"".join(self.data[4 * i * width : 4 * (i * width + count)] for i in range(rows))
        return Array(self.dtype, [rows, count], data)


def read_arrays(path):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    arrays = {}
    for name, info in header.items():
        begin, end = (8 + length + offset for offset in info["data_offsets"])
        arrays[name] = Array(info["dtype"], info["shape"], content[begin:end])
    return arrays


def write_arrays(path, arrays):
    header, offset = {}, 0
    for name, array in sorted(arrays.items()):
        header[name] = {
            "dtype": array.dtype,
            "shape": array.shape,
            "data_offsets": [offset, offset + len(array.data)],
        }
        offset += len(array.data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(array.data for _, array in sorted(arrays.items()))
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def spread_positions(positions):
    """Indices of at most LOGIT_ROWS of the positions, first and last among them."""
    if len(positions) <= LOGIT_ROWS:
        return list(range(len(positions)))
    return sorted({round(i * (len(positions) - 1) / (LOGIT_ROWS - 1)) for i in range(LOGIT_ROWS)})


def thin_arrays(name, case, arrays):
    kept = {}
    rows = spread_positions(case["full_logits_positions"])
    for mode in case["modes"]:
        for key, array in arrays.items():
            if not key.startswith(mode + "."):
                continue
            part = key[len(mode) + 1 :]
            if part in ("top_ids", "top_values"):
                kept[key] = array.first_columns(TOP)
            elif part == "logits":
                kept[key] = array.rows(rows)
            elif part in ("experts", "candidates") or part.startswith("topk."):
                kept[key] = array
            elif part.startswith("engram_ids."):
                kept[part] = array
            elif part in ("expert_weights", "streams") and name in DETAILED:
                kept[key] = array
            elif part == "draft_hidden":
                kept[key] = array
            elif part == "draft_logits":
                kept[key] = array.rows([0, array.shape[0] - 1])
            elif part == "target_features":
                kept[key] = array.last_of_second_axis()
    return kept


def thin_case(case):
    out = {key: case[key] for key in ("name", "kind", "text", "replay_keep", "ids") if key in case}
    positions = case["full_logits_positions"]
    out["full_logits_positions"] = [positions[i] for i in spread_positions(positions)]
    out["modes"] = {
        mode: {key: info[key] for key in MODE_FIELDS if key in info} for mode, info in case["modes"].items()
    }
    return out


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    for path in sorted(source.glob("*/*.json")):
        case = json.loads(path.read_text())
        if not isinstance(case, dict) or case.get("kind") not in KINDS:
            continue
        name = f"{path.parent.name}/{path.stem}"
        out = target / path.parent.name
        out.mkdir(parents=True, exist_ok=True)
        (out / path.name).write_text(json.dumps(thin_case(case), ensure_ascii=False, separators=(",", ":")) + "\n")
        arrays = thin_arrays(name, case, read_arrays(path.with_suffix(".safetensors")))
        write_arrays(out / path.with_suffix(".safetensors").name, arrays)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main()
