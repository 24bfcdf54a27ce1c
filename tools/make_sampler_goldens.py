#!/usr/bin/env python3
"""Writes tests/data/engine/sampler_goldens.json: what the sampler must give, computed without it.

Needs numpy. Rows of logits are made from Philox words, so the file holds recipes and results only. Filters
use a full sort and draws score every token. A case whose top-p border or whose two best scores lie closer than
1e-7 is left out, so that rounding decides nothing (sampler_test.cpp and token_order_test.cpp have exact ties),
and so is a row in which every token is masked.
"""

import argparse
import json
import math
import struct

import numpy as np

MASK = 0xFFFFFFFF


def philox(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK, (p0 >> 32) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


def philox_row(first_counters, rest, key):
    """The same for many values of the first counter word at once: an array [n, 4]."""
    c0 = np.asarray(first_counters, dtype=np.uint64)
    c1, c2, c3 = (np.full_like(c0, word) for word in rest)
    k0, k1 = (np.uint64(word) for word in key)
    low, shift = np.uint64(MASK), np.uint64(32)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (p1 >> shift) ^ c1 ^ k0, p1 & low, (p0 >> shift) ^ c3 ^ k1, p0 & low
        k0 = np.uint64((int(k0) + 0x9E3779B9) & MASK)
        k1 = np.uint64((int(k1) + 0xBB67AE85) & MASK)
    return np.stack([c0, c1, c2, c3], axis=1)


def noise_words(seed, position, num_tokens):
    groups = np.arange((num_tokens + 3) // 4)
    words = philox_row(groups, (0, position & MASK, position >> 32), (seed & MASK, seed >> 32))
    return words.reshape(-1)[:num_tokens]


def fixed_log(x):
    """The order of operations that src/engine/fixed_math.h promises, in Python's doubles."""
    bits = struct.unpack("<Q", struct.pack("<d", x))[0]
    exponent = (bits >> 52) - 1023
    mantissa = struct.unpack("<d", struct.pack("<Q", (bits & ((1 << 52) - 1)) | (1023 << 52)))[0]
    if mantissa >= float.fromhex("0x1.6a09e667f3bcdp+0"):
        mantissa, exponent = mantissa * 0.5, exponent + 1
    f = mantissa - 1.0
    s = f / (2.0 + f)
    z = s * s
    series = 1.0 / 21.0
    for odd in (19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        series = series * z + 1.0 / odd
    twice_s = s + s
    log_mantissa = twice_s + twice_s * (series * z)
    high, low = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
    return exponent * high + (log_mantissa + exponent * low)


def row_logits(kind, row_seed, num_tokens):
    words = philox_row(np.arange(num_tokens), (0, 0, 7), (row_seed, 0))[:, 0].astype(np.int64)
    if kind == "flat":  # uniform in [-8, 8)
        logits = (words >> 8) * 2.0**-20 - 8
    elif kind == "coarse":  # nine values: ties everywhere
        logits = (words % 9 - 4) * 0.5
    elif kind == "peaked":  # falls fast from a few favourites
        logits = 24 - np.sqrt((words >> 8) * 2.0**-10)
    elif kind == "masked":  # two thirds cannot be drawn
        logits = np.where(words % 3 == 0, (words >> 8) * 2.0**-21 - 4, -np.inf)
    else:
        raise ValueError(kind)
    return logits.astype(np.float32)


def gumbel_row(seed, position, num_tokens):
    u = (noise_words(seed, position, num_tokens).astype(np.float64) + 0.5) * 2.0**-32
    return -np.log(-np.log(u))


class Unusable(Exception):
    pass


def case_result(case):
    logits = row_logits(case["row"], case["row_seed"], case["vocab"])
    if logits.max() == -np.inf:
        raise Unusable
    greedy = case["temperature"] < 1e-5
    scores = logits.astype(np.float64) * (1.0 if greedy else 1.0 / case["temperature"])
    weights = np.exp(scores - scores.max())
    order = np.lexsort((np.arange(len(logits)), -logits))  # by logit descending, then id
    kept = len(order)
    if not greedy and case["top_p"] < 1:
        mass = np.cumsum(weights[order]) / weights.sum()
        exclusive = np.concatenate([[0.0], mass[:-1]])
        if np.abs(exclusive - case["top_p"]).min() < 1e-7:
            raise Unusable
        kept = min(kept, int((exclusive <= case["top_p"]).sum()))
    if not greedy and case["top_k"] > 0:
        kept = min(kept, case["top_k"])
    allowed = order[:kept]
    if greedy:
        token = int(order[0])
    else:
        noisy = scores[allowed] + gumbel_row(case["seed"], case["position"], len(logits))[allowed]
        best = np.argsort(-noisy, kind="stable")
        if len(best) > 1 and noisy[best[0]] - noisy[best[1]] < 1e-7:
            raise Unusable
        token = int(allowed[best[0]])
    log_sum = math.log(math.fsum(weights[allowed]))
    logprobs = np.full(len(logits), -9999.0)
    logprobs[allowed] = np.maximum(scores[allowed] - scores.max() - log_sum, -9999.0)  # masked ones: -inf
    top = [int(t) for t in order[: case["top_logprobs"]]]
    return {
        "token": token,
        "logprob": float(logprobs[token]),
        "top": [[t, float(logprobs[t])] for t in top],
    }


def cases():
    settings = [
        (0.0, 1.0, -1), (1.0, 1.0, -1), (0.6, 0.95, -1), (1.0, 0.5, -1), (1.0, 1.0, 5), (0.7, 0.9, 20),
        (2.5, 0.99, 40), (0.05, 0.3, -1), (1.3, 0.001, -1), (1.0, 0.8, 1), (30.0, 0.7, 100000),
    ]
    number = 0
    for vocab in (1, 5, 63, 64, 65, 1000, 129280):
        for kind in ("flat", "coarse", "peaked", "masked"):
            for temperature, top_p, top_k in settings:
                number += 1
                if vocab == 129280 and number % 3:
                    continue
                yield {
                    "row": kind, "row_seed": 1000 + number, "vocab": vocab, "temperature": temperature,
                    "top_p": top_p, "top_k": top_k, "seed": (0x9E3779B97F4A7C15 * number) % 2**64,
                    "position": number * 37 + (2**32 if number % 5 == 0 else 0), "top_logprobs": number % 6,
                }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output")
    arguments = parser.parse_args()
    rng = np.random.default_rng(5)
    words = [0, 1, 2, 0x7FFFFFFF, 0x80000000, MASK - 1, MASK]
    words += [int(w) for w in rng.integers(0, 2**32, 200)]
    noise = []
    for word in words:
        u = (word + 0.5) * 2.0**-32
        value = -fixed_log(-fixed_log(u))
        if abs(value + math.log(-math.log1p(-(MASK - word + 0.5) * 2.0**-32))) > 1e-13:
            raise ValueError(f"noise of word {word} is inaccurate")
        noise.append([word, value.hex()])
    results = []
    left_out = 0
    for case in cases():
        try:
            results.append({**case, **case_result(case)})
        except Unusable:
            left_out += 1
    with open(arguments.output, "w") as file:
        file.write('{"noise": ' + json.dumps(noise) + ',\n"cases": [\n')
        file.write(",\n".join(json.dumps(result) for result in results) + "\n]}\n")
    print(f"{len(results)} cases, {left_out} left out")


if __name__ == "__main__":
    main()
