"""Reads a safetensors file without NumPy: enough to check what `hadal logits` writes."""

import array
import json
import struct


def read(path):
    """{name: (dtype, shape, bytes)}"""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    start = 8 + length
    return {
        name: (entry["dtype"], entry["shape"], data[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def floats(raw):
    return array.array("f", raw)
