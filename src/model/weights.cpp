#include "model/weights.h"

#include <algorithm>
#include <cstring>

namespace hadal::model {
namespace {

using checkpoint::DType;
using kernels::Weight;
using kernels::WeightFormat;

const uint8_t* bytes_of(const checkpoint::TensorView& view) {
  return reinterpret_cast<const uint8_t*>(view.data);
}

/// Looks tensors up below a name prefix and checks them against what the kernels rely on.
class Binder {
 public:
  explicit Binder(const checkpoint::Checkpoint& source) : source_(source) {}

  Result<Weight> matrix(const std::string& name, int64_t rows, int64_t cols) const {
    HADAL_TRY(const auto view, source_.tensor(name));
    Weight weight{.data = bytes_of(view), .rows = rows, .cols = cols};
    int64_t stored_cols = cols;
    switch (view.dtype) {
      case DType::kF8E4M3:
        weight.format = WeightFormat::kFp8;
        break;
      case DType::kI8:
        weight.format = WeightFormat::kFp4;
        stored_cols = cols / 2;
        break;
      case DType::kBF16:
        weight.format = WeightFormat::kBf16;
        break;
      case DType::kF32:
        weight.format = WeightFormat::kF32;
        break;
      default:
        return fail(ErrorCode::kUnsupported, "tensor {}: dtype {}, expected F8_E4M3, I8, BF16 or F32", name,
                    checkpoint::dtype_name(view.dtype));
    }
    if (view.shape != std::vector<int64_t>{rows, stored_cols}) {
      return fail(ErrorCode::kCorrupt, "tensor {}: shape [{}], expected [{}, {}]", name,
                  fmt::join(view.shape, ", "), rows, stored_cols);
    }
    if (cols % 32 != 0) {
      return fail(ErrorCode::kUnsupported, "tensor {}: {} columns, expected a multiple of 32", name, cols);
    }
    if (weight.format == WeightFormat::kFp8 || weight.format == WeightFormat::kFp4) {
      HADAL_TRY(weight.scales,
                scales(name, weight.format == WeightFormat::kFp8 ? (rows + 31) / 32 : rows, cols / 32));
    }
    return weight;
  }

  Result<Bf16Vector> bf16(const std::string& name, int64_t size) const {
    HADAL_TRY(const auto view, source_.tensor(name));
    if (view.dtype != DType::kBF16 || view.bytes != static_cast<size_t>(size) * 2) {
      return fail(ErrorCode::kCorrupt, "tensor {}: {} of {} bytes, expected BF16 of {} values", name,
                  checkpoint::dtype_name(view.dtype), view.bytes, size);
    }
    if (size % 16 != 0) {
      return fail(ErrorCode::kUnsupported, "tensor {}: {} values, expected a multiple of 16", name, size);
    }
    return Bf16Vector{bytes_of(view), size};
  }

  Result<std::vector<float>> floats(const std::string& name, int64_t size) const {
    HADAL_TRY(const auto view, source_.tensor(name));
    if (view.dtype != DType::kF32 || view.bytes != static_cast<size_t>(size) * 4) {
      return fail(ErrorCode::kCorrupt, "tensor {}: {} of {} bytes, expected F32 of {} values", name,
                  checkpoint::dtype_name(view.dtype), view.bytes, size);
    }
    std::vector<float> values(static_cast<size_t>(size));
    std::memcpy(values.data(), view.data, view.bytes);
    return values;
  }

  Result<const uint8_t*> scales(const std::string& weight_name, int64_t rows, int64_t cols) const {
    const std::string name = weight_name.substr(0, weight_name.size() - std::strlen("weight")) + "scale";
    HADAL_TRY(const auto view, source_.tensor(name));
    if (view.dtype != DType::kF8E8M0 || view.shape != std::vector<int64_t>{rows, cols}) {
      return fail(ErrorCode::kCorrupt, "tensor {}: {} [{}], expected F8_E8M0 [{}, {}]", name,
                  checkpoint::dtype_name(view.dtype), fmt::join(view.shape, ", "), rows, cols);
    }
    return bytes_of(view);
  }

  Result<checkpoint::TensorView> raw(const std::string& name) const { return source_.tensor(name); }

 private:
  const checkpoint::Checkpoint& source_;
};

bool contains(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

Result<HyperConnectionWeights> bind_hyper_connection(const Binder& binder, const std::string& prefix,
                                                     const checkpoint::TextConfig& config) {
  const int64_t mixes = (2 + config.hc_mult) * config.hc_mult;
  HyperConnectionWeights weights;
  HADAL_TRY(weights.fn, binder.matrix(prefix + "_fn", mixes, config.hc_mult * config.hidden_size));
  HADAL_TRY(weights.base, binder.floats(prefix + "_base", mixes));
  HADAL_TRY(weights.scale, binder.floats(prefix + "_scale", 3));
  return weights;
}

/// What the attention of backbone and draft layers has in common.
Result<AttentionWeights> bind_attention(const Binder& binder, const std::string& prefix,
                                        const checkpoint::TextConfig& config) {
  const int64_t heads_dim = config.num_attention_heads * config.head_dim;
  const int64_t low = config.o_groups * config.o_lora_rank;
  AttentionWeights weights;
  HADAL_TRY(weights.sinks, binder.floats(prefix + "attn_sink", config.num_attention_heads));
  HADAL_TRY(weights.wq_a, binder.matrix(prefix + "wq_a.weight", config.q_lora_rank, config.hidden_size));
  HADAL_TRY(weights.q_norm, binder.bf16(prefix + "q_norm.weight", config.q_lora_rank));
  HADAL_TRY(weights.wq_b, binder.matrix(prefix + "wq_b.weight", heads_dim, config.q_lora_rank));
  HADAL_TRY(weights.wkv, binder.matrix(prefix + "wkv.weight", config.head_dim, config.hidden_size));
  HADAL_TRY(weights.kv_norm, binder.bf16(prefix + "kv_norm.weight", config.head_dim));
  HADAL_TRY(weights.wo_a, binder.matrix(prefix + "wo_a.weight", low, heads_dim / config.o_groups));
  HADAL_TRY(weights.wo_b, binder.matrix(prefix + "wo_b.weight", config.hidden_size, low));
  return weights;
}

/// The compressor and the indexer of a backbone layer, as far as it owns them.
Result<void> bind_sources(const Binder& binder, int64_t layer, const checkpoint::TextConfig& config,
                          AttentionWeights& weights) {
  const std::string prefix = fmt::format("layers.{}.attn.", layer);
  if (contains(config.kv_source_layer_ids, layer)) {
    CompressorWeights compressor;
    HADAL_TRY(compressor.wkv,
              binder.matrix(prefix + "compressor.wkv.weight", config.head_dim, config.hidden_size));
    if (config.compress_ratios[static_cast<size_t>(layer)] > 1) {
      HADAL_TRY(compressor.wgate,
                binder.matrix(prefix + "compressor.wgate.weight", config.head_dim, config.hidden_size));
    }
    HADAL_TRY(compressor.norm, binder.bf16(prefix + "compressor.norm.weight", config.head_dim));
    weights.compressor = std::move(compressor);
  }
  if (contains(config.index_source_layer_ids, layer)) {
    IndexerWeights indexer;
    HADAL_TRY(indexer.wq_b, binder.matrix(prefix + "indexer.wq_b.weight",
                                          config.index_n_heads * config.index_head_dim, config.q_lora_rank));
    HADAL_TRY(indexer.weights_proj, binder.matrix(prefix + "indexer.weights_proj.weight",
                                                  config.index_n_heads, config.hidden_size));
    weights.indexer = std::move(indexer);
  }
  if (contains(config.index_k_source_layer_ids, layer)) {
    IndexKeyWeights key;
    HADAL_TRY(key.wk, binder.matrix(prefix + "indexer.wk.weight", config.index_head_dim, config.head_dim));
    HADAL_TRY(key.norm, binder.bf16(prefix + "indexer.k_norm.weight", config.index_head_dim));
    weights.index_key = std::move(key);
  }
  return {};
}

Result<EngramWeights> bind_engram(const Binder& binder, int64_t layer, int64_t rows,
                                  const checkpoint::TextConfig& config) {
  const std::string prefix = fmt::format("layers.{}.engram.", layer);
  const int64_t row_values =
      (config.engram_max_ngram_size - 1) * config.engram_n_heads * config.engram_head_dim;
  EngramWeights weights;
  HADAL_TRY(const auto table, binder.raw(prefix + "embed.weight"));
  if (table.dtype != DType::kF8E4M3 || table.shape != std::vector<int64_t>{rows, config.engram_head_dim}) {
    return fail(ErrorCode::kCorrupt, "tensor {}embed.weight: {} [{}], expected F8_E4M3 [{}, {}]", prefix,
                checkpoint::dtype_name(table.dtype), fmt::join(table.shape, ", "), rows,
                config.engram_head_dim);
  }
  weights.table = bytes_of(table);
  weights.rows = rows;
  HADAL_TRY(weights.scales, binder.scales(prefix + "embed.weight", rows, config.engram_head_dim / 32));
  HADAL_TRY(weights.wkv,
            binder.matrix(prefix + "wkv.weight", (config.hc_mult + 1) * config.hidden_size, row_values));
  HADAL_TRY(weights.q_weight, binder.bf16(prefix + "q_weight", config.hc_mult * config.hidden_size));
  HADAL_TRY(weights.k_weight, binder.bf16(prefix + "k_weight", config.hc_mult * config.hidden_size));
  return weights;
}

Result<ExpertWeights> bind_expert(const Binder& binder, const std::string& prefix, int64_t inner,
                                  int64_t hidden) {
  ExpertWeights weights;
  HADAL_TRY(weights.w1, binder.matrix(prefix + "w1.weight", inner, hidden));
  HADAL_TRY(weights.w3, binder.matrix(prefix + "w3.weight", inner, hidden));
  HADAL_TRY(weights.w2, binder.matrix(prefix + "w2.weight", hidden, inner));
  return weights;
}

Result<MoeWeights> bind_moe(const Binder& binder, const std::string& prefix, int64_t num_experts,
                            const checkpoint::TextConfig& config) {
  MoeWeights weights;
  HADAL_TRY(weights.gate, binder.matrix(prefix + "gate.weight", num_experts, config.hidden_size));
  HADAL_TRY(weights.bias, binder.floats(prefix + "gate.bias", num_experts));
  for (int64_t e = 0; e < num_experts; ++e) {
    HADAL_TRY(auto expert, bind_expert(binder, fmt::format("{}experts.{}.", prefix, e),
                                       config.moe_intermediate_size, config.hidden_size));
    weights.experts.push_back(expert);
  }
  if (config.n_shared_experts > 0) {
    HADAL_TRY(weights.shared,
              bind_expert(binder, prefix + "shared_experts.",
                          config.n_shared_experts * config.moe_intermediate_size, config.hidden_size));
  }
  return weights;
}

/// A layer below `prefix` ("layers.3."), without what only backbone layers have.
Result<LayerWeights> bind_layer(const Binder& binder, const std::string& prefix, int64_t num_experts,
                                const checkpoint::TextConfig& config) {
  LayerWeights layer;
  HADAL_TRY(layer.attn_norm, binder.bf16(prefix + "attn_norm.weight", config.hidden_size));
  HADAL_TRY(layer.ffn_norm, binder.bf16(prefix + "ffn_norm.weight", config.hidden_size));
  HADAL_TRY(layer.hc_attn, bind_hyper_connection(binder, prefix + "hc_attn", config));
  HADAL_TRY(layer.hc_ffn, bind_hyper_connection(binder, prefix + "hc_ffn", config));
  HADAL_TRY(layer.attention, bind_attention(binder, prefix + "attn.", config));
  HADAL_TRY(layer.moe, bind_moe(binder, prefix + "ffn.", num_experts, config));
  return layer;
}

}  // namespace

kernels::Weight rows_of(const kernels::Weight& weight, int64_t first, int64_t count) {
  kernels::Weight part = weight;
  part.rows = count;
  switch (weight.format) {
    case WeightFormat::kFp8: {
      const int64_t scale_row = weight.scale_row_offset + first;
      part.data += first * weight.cols;
      part.scales += scale_row / 32 * (weight.cols / 32);
      part.scale_row_offset = scale_row % 32;
      break;
    }
    case WeightFormat::kFp4:
      part.data += first * (weight.cols / 2);
      part.scales += first * (weight.cols / 32);
      break;
    case WeightFormat::kBf16:
      part.data += first * weight.cols * 2;
      break;
    case WeightFormat::kF32:
      part.data += first * weight.cols * 4;
      break;
  }
  return part;
}

Result<ModelWeights> bind_weights(const checkpoint::Checkpoint& checkpoint) {
  const auto& config = checkpoint.config().text;
  const Binder binder(checkpoint);
  ModelWeights weights;
  HADAL_TRY(weights.embedding, binder.matrix("embed.weight", config.vocab_size, config.hidden_size));
  HADAL_TRY(weights.norm, binder.bf16("norm.weight", config.hidden_size));
  HADAL_TRY(weights.head, binder.matrix("head.weight", config.vocab_size, config.hidden_size));
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    HADAL_TRY(LayerWeights bound,
              bind_layer(binder, fmt::format("layers.{}.", layer), config.n_routed_experts, config));
    HADAL_CHECK(bind_sources(binder, layer, config, bound.attention));
    const auto slot = std::find(config.engram_layer_ids.begin(), config.engram_layer_ids.end(), layer);
    if (slot != config.engram_layer_ids.end()) {
      const int64_t rows =
          config.engram_num_embeddings[static_cast<size_t>(slot - config.engram_layer_ids.begin())];
      HADAL_TRY(bound.engram, bind_engram(binder, layer, rows, config));
    }
    weights.layers.push_back(std::move(bound));
  }
  return weights;
}

Result<DraftWeights> bind_draft_weights(const checkpoint::Checkpoint& checkpoint) {
  const auto& config = checkpoint.config().text;
  const Binder binder(checkpoint);
  DraftWeights weights;
  for (int64_t layer = 0; layer < config.num_nextn_predict_layers; ++layer) {
    HADAL_TRY(LayerWeights bound,
              bind_layer(binder, fmt::format("mtp.{}.", layer), config.dspark_n_routed_experts, config));
    weights.layers.push_back(std::move(bound));
  }
  const auto num_targets = static_cast<int64_t>(config.dspark_target_layer_ids.size());
  const int64_t hidden = config.hidden_size;
  const int64_t rank = config.dspark_markov_rank;
  HADAL_TRY(weights.main_proj, binder.matrix("mtp.0.main_proj.weight", hidden, hidden * num_targets));
  HADAL_TRY(weights.main_norm, binder.bf16("mtp.0.main_norm.weight", hidden));
  const std::string last = fmt::format("mtp.{}.", config.num_nextn_predict_layers - 1);
  HADAL_TRY(weights.norm, binder.bf16(last + "norm.weight", hidden));
  HADAL_TRY(weights.markov_embedding,
            binder.matrix(last + "markov_head.embed.weight", config.vocab_size, rank));
  HADAL_TRY(weights.markov_head, binder.matrix(last + "markov_head.head.weight", config.vocab_size, rank));
  HADAL_TRY(weights.confidence, binder.matrix(last + "confidence_head.proj.weight", 1, hidden + rank));
  return weights;
}

}  // namespace hadal::model
