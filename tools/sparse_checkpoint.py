#!/usr/bin/env python3
"""Write a checkpoint of the true size of DeepSeek-V4.1-Flash that takes almost no disk.

Every tensor of the release is there, with its name, dtype and shape, in 48 shards of the official layout;
the data are holes in sparse files (zeros). It serves to test what depends on size and not on values: opening,
memory plans, 64-bit offsets, the Engram tables.

usage: sparse_checkpoint.py OUT_DIR [--tokenizer tokenizer.json] [--compressed-vocab N]

The configuration must state how many ids the Engram hash sees through its compressed vocabulary, and that number
belongs to the tokenizer: 99092 with the real one. Without --compressed-vocab the number is taken from a config.json
beside the tokenizer file, else it is the real one.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
REAL_COMPRESSED_VOCAB = 99092
NUM_SHARDS = 48
BLOCK = 32
ELEMENT_BYTES = {"F32": 4, "BF16": 2, "F8_E4M3": 1, "F8_E8M0": 1, "I8": 1}

CONFIG = {
    "architectures": ["DeepseekV41ForCausalLM"],
    "model_type": "deepseek_v41",
    "dtype": "bfloat16",
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "image_token_id": 129264,
    "quantization_config": {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "weight_block_size": [32, 32],
        "scale_fmt": "ue8m0",
        "expert_dtype": "fp4",
    },
    "text_config": {
        "model_type": "deepseek_v41_text",
        "vocab_size": 129280,
        "hidden_size": 5120,
        "num_hidden_layers": 40,
        "num_attention_heads": 64,
        "num_key_value_heads": 1,
        "head_dim": 512,
        "qk_rope_head_dim": 64,
        "q_lora_rank": 1280,
        "o_lora_rank": 1024,
        "o_groups": 8,
        "sliding_window": 128,
        "rope_theta": 10000,
        "compress_rope_theta": 160000,
        "rope_scaling": {
            "rope_type": "yarn",
            "type": "yarn",
            "factor": 16,
            "original_max_position_embeddings": 65536,
            "beta_fast": 32,
            "beta_slow": 1,
        },
        "max_position_embeddings": 1048576,
        "compress_ratios": [0, 0] + [2] * 18 + [1] * 20 + [0, 0, 0],
        "kv_source_layer_ids": [2, 8, 14, 20],
        "index_source_layer_ids": [2, 8, 14, 20, 24, 28, 32, 36],
        "index_n_heads": 32,
        "index_head_dim": 128,
        "index_topk": 512,
        "candidate_source_layer_id": 20,
        "candidate_topk_blocks": 2048,
        "candidate_block_size": 8,
        "n_routed_experts": 384,
        "n_shared_experts": 1,
        "num_experts_per_tok": 6,
        "moe_intermediate_size": 2304,
        "scoring_func": "sqrtsoftplus",
        "topk_method": "noaux_tc",
        "norm_topk_prob": True,
        "routed_scaling_factor": 1.5,
        "swiglu_limit": 10.0,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": False,
        "rms_norm_eps": 1e-20,
        "hc_mult": 4,
        "hc_sinkhorn_iters": 20,
        "hc_eps": 1e-6,
        "engram_layer_ids": [1, 14],
        "engram_num_embeddings": [384006168, 384016682],
        "engram_max_ngram_size": 4,
        "engram_vocab_size": 16000000,
        "engram_n_heads": 8,
        "engram_head_dim": 256,
        "engram_pad_token_id": 2,
        "engram_compressed_vocab_size": REAL_COMPRESSED_VOCAB,
        "num_nextn_predict_layers": 3,
        "dspark_block_size": 5,
        "dspark_noise_token_id": 128799,
        "dspark_target_layer_ids": [37, 38, 39],
        "dspark_markov_rank": 256,
        "dspark_n_routed_experts": 128,
        "dspark_num_experts_per_tok": 3,
    },
    "vision_config": {
        "model_type": "deepseek_v41_vision",
        "num_hidden_layers": 32,
        "hidden_size": 1024,
        "num_attention_heads": 16,
        "intermediate_size": 2816,
        "patch_size": 14,
        "downsample_ratio": 3,
        "rope_theta": 10000,
        "max_image_tokens": 1024,
        "min_pixels": 295936,
        "max_wh_ratio": None,
    },
}

# (name, dtype, shape); tensors of one group stay in one shard
Tensor = tuple[str, str, list[int]]
Group = list[Tensor]


def bf16(name: str, *shape: int) -> Group:
    return [(name, "BF16", list(shape))]


def f32(name: str, *shape: int) -> Group:
    return [(name, "F32", list(shape))]


def q8(name: str, rows: int, cols: int) -> Group:
    scale = [math.ceil(rows / BLOCK), math.ceil(cols / BLOCK)]
    return [(name + ".weight", "F8_E4M3", [rows, cols]), (name + ".scale", "F8_E8M0", scale)]


def q4(name: str, rows: int, cols: int) -> Group:
    return [(name + ".weight", "I8", [rows, cols // 2]), (name + ".scale", "F8_E8M0", [rows, cols // BLOCK])]


def table(name: str, rows: int, cols: int) -> Group:
    return [(name + ".weight", "F8_E4M3", [rows, cols]), (name + ".scale", "F8_E8M0", [rows, cols // BLOCK])]


def with_bias(name: str, rows: int, cols: int) -> Group:
    return bf16(name + ".weight", rows, cols) + bf16(name + ".bias", rows)


def attention_and_experts(p: str, t: dict, experts: int) -> Iterator[Group]:
    h, m, inter, low = t["hidden_size"], t["hc_mult"], t["moe_intermediate_size"], t["o_groups"] * t["o_lora_rank"]
    yield bf16(p + "attn_norm.weight", h)
    yield bf16(p + "ffn_norm.weight", h)
    for kind in ("attn", "ffn"):
        yield f32(f"{p}hc_{kind}_fn", (2 + m) * m, m * h)
        yield f32(f"{p}hc_{kind}_base", (2 + m) * m)
        yield f32(f"{p}hc_{kind}_scale", 3)
    yield f32(p + "attn.attn_sink", t["num_attention_heads"])
    yield q8(p + "attn.wq_a", t["q_lora_rank"], h)
    yield bf16(p + "attn.q_norm.weight", t["q_lora_rank"])
    yield q8(p + "attn.wq_b", t["num_attention_heads"] * t["head_dim"], t["q_lora_rank"])
    yield q8(p + "attn.wkv", t["head_dim"], h)
    yield bf16(p + "attn.kv_norm.weight", t["head_dim"])
    yield q8(p + "attn.wo_a", low, t["num_attention_heads"] // t["o_groups"] * t["head_dim"])
    yield q8(p + "attn.wo_b", h, low)
    yield bf16(p + "ffn.gate.weight", experts, h)
    yield f32(p + "ffn.gate.bias", experts)
    yield f32(p + "ffn.gate.bias_vl", experts)
    for e in range(experts):
        yield q4(f"{p}ffn.experts.{e}.w1", inter, h)
        yield q4(f"{p}ffn.experts.{e}.w2", h, inter)
        yield q4(f"{p}ffn.experts.{e}.w3", inter, h)
    wide = t["n_shared_experts"] * inter
    yield q8(p + "ffn.shared_experts.w1", wide, h)
    yield q8(p + "ffn.shared_experts.w2", h, wide)
    yield q8(p + "ffn.shared_experts.w3", wide, h)


def backbone_layer(i: int, t: dict) -> Iterator[Group]:
    p, h, m = f"layers.{i}.", t["hidden_size"], t["hc_mult"]
    yield from attention_and_experts(p, t, t["n_routed_experts"])
    if i in t["kv_source_layer_ids"]:
        yield bf16(p + "attn.compressor.wkv.weight", t["head_dim"], h)
        if t["compress_ratios"][i] > 1:
            yield bf16(p + "attn.compressor.wgate.weight", t["head_dim"], h)
        yield bf16(p + "attn.compressor.norm.weight", t["head_dim"])
    if i in t["index_source_layer_ids"]:
        yield q8(p + "attn.indexer.wq_b", t["index_n_heads"] * t["index_head_dim"], t["q_lora_rank"])
        yield bf16(p + "attn.indexer.weights_proj.weight", t["index_n_heads"], h)
    if i in t["kv_source_layer_ids"]:
        yield bf16(p + "attn.indexer.wk.weight", t["index_head_dim"], t["head_dim"])
        yield bf16(p + "attn.indexer.k_norm.weight", t["index_head_dim"])
    if i in t["engram_layer_ids"]:
        rows = t["engram_num_embeddings"][t["engram_layer_ids"].index(i)]
        cols = (t["engram_max_ngram_size"] - 1) * t["engram_n_heads"] * t["engram_head_dim"]
        yield table(p + "engram.embed", rows, t["engram_head_dim"])
        yield q8(p + "engram.wkv", (m + 1) * h, cols)
        yield bf16(p + "engram.q_weight", m, h)
        yield bf16(p + "engram.k_weight", m, h)


def draft_layer(i: int, t: dict) -> Iterator[Group]:
    p, h, rank = f"mtp.{i}.", t["hidden_size"], t["dspark_markov_rank"]
    yield from attention_and_experts(p, t, t["dspark_n_routed_experts"])
    if i == 0:
        yield q8(p + "main_proj", h, h * len(t["dspark_target_layer_ids"]))
        yield bf16(p + "main_norm.weight", h)
    if i == t["num_nextn_predict_layers"] - 1:
        yield bf16(p + "norm.weight", h)
        yield bf16(p + "markov_head.embed.weight", t["vocab_size"], rank)
        yield bf16(p + "markov_head.head.weight", t["vocab_size"], rank)
        yield bf16(p + "confidence_head.proj.weight", 1, h + rank)


def vision_tower(v: dict, h: int) -> Iterator[Group]:
    d, inter = v["hidden_size"], v["intermediate_size"]
    yield with_bias("vision.patch_embed.proj", d, 3 * v["patch_size"] ** 2)
    for i in range(v["num_hidden_layers"]):
        p = f"vision.blocks.{i}."
        yield bf16(p + "norm1.weight", d)
        yield with_bias(p + "attn.wqkv", 3 * d, d)
        yield with_bias(p + "attn.wo", d, d)
        yield bf16(p + "norm2.weight", d)
        yield bf16(p + "mlp.w1.weight", 2 * inter, d)
        yield bf16(p + "mlp.w2.weight", d, inter)
    yield bf16("vision.norm.weight", d)
    yield with_bias("aligner.w1", h, d * v["downsample_ratio"] ** 2)
    yield with_bias("aligner.w2", h, h)
    for name in ("image_start", "image_newline", "image_end"):
        yield bf16(name, h)


def all_groups(config: dict) -> Iterator[Group]:
    t = config["text_config"]
    yield bf16("embed.weight", t["vocab_size"], t["hidden_size"])
    for i in range(t["num_hidden_layers"]):
        yield from backbone_layer(i, t)
    yield bf16("norm.weight", t["hidden_size"])
    yield bf16("head.weight", t["vocab_size"], t["hidden_size"])
    for i in range(t["num_nextn_predict_layers"]):
        yield from draft_layer(i, t)
    yield from vision_tower(config["vision_config"], t["hidden_size"])


def num_bytes(tensor: Tensor) -> int:
    _, dtype, shape = tensor
    return ELEMENT_BYTES[dtype] * math.prod(shape)


def split_shards(groups: list[Group]) -> list[list[Tensor]]:
    """Cut the groups, in order, into NUM_SHARDS shards of about the same size. A table of 98 GB fills one alone."""
    sizes = [sum(map(num_bytes, group)) for group in groups]
    left = sum(sizes)
    shards: list[list[Tensor]] = [[]]
    filled = 0
    for group, size in zip(groups, sizes):
        target = (left + filled) / (NUM_SHARDS - len(shards) + 1)
        if shards[-1] and filled + size / 2 > target and len(shards) < NUM_SHARDS:
            shards.append([])
            filled = 0
        shards[-1].extend(group)
        filled += size
        left -= size
    return shards


def write_shard(path: Path, tensors: list[Tensor]) -> int:
    """Header as bytes, data as one hole. Wide elements come first, so that all are aligned."""
    header: dict[str, dict] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in sorted(tensors, key=lambda x: (-ELEMENT_BYTES[x[1]], x[0])):
        name, dtype, shape = tensor
        end = offset + num_bytes(tensor)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)
    return offset


def compressed_vocab_of(tokenizer: Path) -> int:
    config = tokenizer.parent / "config.json"
    if config.is_file():
        size = json.loads(config.read_text())["text_config"].get("engram_compressed_vocab_size")
        if size:
            return size
    return REAL_COMPRESSED_VOCAB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokenizer", type=Path, default=REPO / "models" / "tiny" / "tokenizer.json")
    parser.add_argument("--compressed-vocab", type=int, help="engram_compressed_vocab_size")
    args = parser.parse_args()
    if not args.tokenizer.is_file():
        sys.exit(f"{args.tokenizer}: no such file")

    args.out.mkdir(parents=True, exist_ok=True)
    config = json.loads(json.dumps(CONFIG))
    config["text_config"]["engram_compressed_vocab_size"] = args.compressed_vocab or compressed_vocab_of(args.tokenizer)
    (args.out / "config.json").write_text(json.dumps(config, indent=1))
    shutil.copyfile(args.tokenizer, args.out / "tokenizer.json")

    weight_map: dict[str, str] = {}
    total = 0
    shards = split_shards(list(all_groups(config)))
    for number, tensors in enumerate(shards, start=1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        total += write_shard(args.out / name, tensors)
        weight_map.update((tensor[0], name) for tensor in tensors)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    (args.out / "model.safetensors.index.json").write_text(json.dumps(index, indent=0))
    print(f"{len(weight_map)} tensors, {len(shards)} shards, {total} bytes")


if __name__ == "__main__":
    main()
