#pragma once
// The checkpoint's tensors, bound by role. Nothing is copied: all of these point into the mapped files.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "kernels/kernels.h"

namespace hadal::model {

/// A bfloat16 vector of the checkpoint.
struct Bf16Vector {
  const uint8_t* data = nullptr;
  int64_t size = 0;
};

/// The hyper-connection of one sub-layer (model.md section 5).
struct HyperConnectionWeights {
  kernels::Weight fn;        ///< [(2+m)m, mH] float32
  std::vector<float> base;   ///< [(2+m)m]
  std::vector<float> scale;  ///< pre, post, comb
};

struct CompressorWeights {
  kernels::Weight wkv;
  std::optional<kernels::Weight> wgate;  ///< ratio > 1
  Bf16Vector norm;
};

struct IndexerWeights {
  kernels::Weight wq_b;
  kernels::Weight weights_proj;
};

struct IndexKeyWeights {
  kernels::Weight wk;
  Bf16Vector norm;
};

struct AttentionWeights {
  std::vector<float> sinks;
  kernels::Weight wq_a;
  Bf16Vector q_norm;
  kernels::Weight wq_b;
  kernels::Weight wkv;
  Bf16Vector kv_norm;
  kernels::Weight wo_a;  ///< [groups * o_lora, heads / groups * head_dim]
  kernels::Weight wo_b;
  std::optional<CompressorWeights> compressor;
  std::optional<IndexerWeights> indexer;
  std::optional<IndexKeyWeights> index_key;
};

struct EngramWeights {
  const uint8_t* table = nullptr;   ///< e4m3 [rows, head_dim]
  const uint8_t* scales = nullptr;  ///< e8m0 [rows, head_dim / 32]
  int64_t rows = 0;
  kernels::Weight wkv;
  Bf16Vector q_weight;  ///< [m, H]
  Bf16Vector k_weight;
};

struct ExpertWeights {
  kernels::Weight w1;
  kernels::Weight w2;
  kernels::Weight w3;
};

struct MoeWeights {
  kernels::Weight gate;
  std::vector<float> bias;
  std::vector<ExpertWeights> experts;
  std::optional<ExpertWeights> shared;
};

struct LayerWeights {
  Bf16Vector attn_norm;
  Bf16Vector ffn_norm;
  HyperConnectionWeights hc_attn;
  HyperConnectionWeights hc_ffn;
  AttentionWeights attention;
  std::optional<EngramWeights> engram;
  MoeWeights moe;
};

struct ModelWeights {
  kernels::Weight embedding;  ///< [V, H] bfloat16
  Bf16Vector norm;
  kernels::Weight head;
  std::vector<LayerWeights> layers;
};

/// The draft layers (DSpark, model.md section 15); embedding and head are the backbone's.
struct DraftWeights {
  std::vector<LayerWeights> layers;
  kernels::Weight main_proj;  ///< [H, H * target layers]
  Bf16Vector main_norm;
  Bf16Vector norm;
  kernels::Weight markov_embedding;  ///< [V, rank] bfloat16
  kernels::Weight markov_head;       ///< [V, rank]
  kernels::Weight confidence;        ///< [1, H + rank]
};

/// The view of `count` consecutive rows of a matrix.
kernels::Weight rows_of(const kernels::Weight& weight, int64_t first, int64_t count);

/// Binds the backbone's tensors. The views stay valid as long as `checkpoint` lives.
Result<ModelWeights> bind_weights(const checkpoint::Checkpoint& checkpoint);

/// Binds the draft layers, of which the checkpoint must have some.
Result<DraftWeights> bind_draft_weights(const checkpoint::Checkpoint& checkpoint);

}  // namespace hadal::model
