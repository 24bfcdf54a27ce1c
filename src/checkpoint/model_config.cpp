#include "checkpoint/model_config.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/log.h"
#include "base/mapped_file.h"
#include "checkpoint/engram_primes.h"
#include "checkpoint/model_files.h"
#include "checkpoint/object_reader.h"
#include "checkpoint/strict_json.h"
#include "checkpoint/topology.h"

namespace hadal::checkpoint {
namespace {

// Upper bounds leave an order of magnitude above every released model, and keep every product of sizes that
// is formed anywhere (tensor bytes, row offsets, work buffers) far below 2^63.
constexpr int64_t kMaxLayers = 512;
constexpr int64_t kMaxWidth = 65536;  // hidden size and low ranks
constexpr int64_t kMaxHeadDim = 4096;
constexpr int64_t kMaxHeads = 1024;
constexpr int64_t kMaxVocabulary = int64_t{1} << 24;
constexpr int64_t kMaxPositions = int64_t{1} << 24;  // float32 holds every integer up to here
constexpr int64_t kMaxSelection = int64_t{1} << 20;
constexpr int64_t kMaxExperts = 65536;
constexpr int64_t kMaxEngramVocabulary = int64_t{1} << 40;
constexpr int64_t kMaxEngramPrimes = 16384;  // each is searched for, so this bounds the time
constexpr int64_t kBlock = 32;  // one scale of FP8 and FP4 weights, activations and caches covers 32 channels
constexpr NumberRule kPositive = {1e-30, 1e30};
constexpr IntegerRule kAnyWidth = {kBlock, kMaxWidth, kBlock};
constexpr size_t kMaxConfigBytes = 1 << 20;

constexpr std::string_view kArchitecture = "DeepseekV41ForCausalLM";

Result<void> check_architecture(const ObjectReader& top, const nlohmann::json& document) {
  // Read by hand: whatever another model's file holds here should be named in the answer.
  if (!top.has("architectures")) {
    return fail(ErrorCode::kInvalidArgument, "architectures: missing, expected [\"{}\"]", kArchitecture);
  }
  const nlohmann::json& found = document["architectures"];
  if (!found.is_array() || found.size() != 1 || found[0] != std::string(kArchitecture)) {
    return fail(ErrorCode::kUnsupported, "architectures: found {}, expected exactly [\"{}\"] (DeepSeek-V4.1)",
                describe_json(found), kArchitecture);
  }
  return top.require("model_type", "deepseek_v41");
}

Result<void> check_quantization(const ObjectReader& quantization) {
  HADAL_CHECK(quantization.require("quant_method", "fp8"));
  HADAL_CHECK(quantization.require("expert_dtype", "fp4"));
  HADAL_CHECK(quantization.require("activation_scheme", "dynamic"));
  HADAL_CHECK(quantization.require("weight_block_size", nlohmann::json{kBlock, kBlock}, false));
  HADAL_CHECK(quantization.require("scale_fmt", "ue8m0"));
  return quantization.require("fmt", "e4m3", true);
}

/// A list of different layer ids in ascending order.
Result<std::vector<int64_t>> layer_list(const ObjectReader& reader, std::string_view field,
                                        int64_t num_layers) {
  HADAL_TRY(auto layers, reader.integers(field, {0, num_layers - 1}, static_cast<size_t>(num_layers)));
  for (size_t index = 1; index < layers.size(); ++index) {
    if (layers[index] <= layers[index - 1]) {
      return fail(ErrorCode::kInvalidArgument, "{}: found {} behind {}, expected ascending layer ids",
                  reader.dotted(fmt::format("{}[{}]", field, index)), layers[index], layers[index - 1]);
    }
  }
  return layers;
}

Result<std::optional<RopeScaling>> read_rope_scaling(const ObjectReader& text) {
  if (!text.has("rope_scaling")) {
    return std::optional<RopeScaling>();
  }
  HADAL_TRY(const auto scaling, text.object("rope_scaling"));
  HADAL_CHECK(scaling.require("rope_type", "yarn"));
  HADAL_CHECK(
      scaling.require("type", "yarn", true));  // the older spelling, which files carry beside the new one
  RopeScaling out;
  HADAL_TRY(out.factor, scaling.number("factor", {1, 1e6}));
  HADAL_TRY(out.original_max_position_embeddings,
            scaling.number("original_max_position_embeddings", {1, 1e9}));
  HADAL_TRY(out.beta_fast, scaling.number("beta_fast", kPositive));
  HADAL_TRY(out.beta_slow, scaling.number("beta_slow", kPositive));
  if (out.beta_slow > out.beta_fast) {
    return fail(ErrorCode::kInvalidArgument, "{}: found {}, expected at most beta_fast = {}",
                scaling.dotted("beta_slow"), out.beta_slow, out.beta_fast);
  }
  for (const std::string& field : scaling.unread()) {
    spdlog::warn("config.json: {} is not known and has no effect", printable(field, 100));
  }
  return std::optional(out);
}

Result<void> read_attention(const ObjectReader& text, TextConfig& out) {
  HADAL_TRY(out.num_attention_heads, text.integer("num_attention_heads", {1, kMaxHeads}));
  HADAL_CHECK(text.require("num_key_value_heads", 1, false));
  HADAL_TRY(out.head_dim, text.integer("head_dim", {kBlock, kMaxHeadDim, kBlock}));
  HADAL_TRY(out.qk_rope_head_dim, text.integer("qk_rope_head_dim", {2, out.head_dim, 2}));
  HADAL_TRY(out.q_lora_rank, text.integer("q_lora_rank", kAnyWidth));
  HADAL_TRY(out.o_lora_rank, text.integer("o_lora_rank", kAnyWidth));
  HADAL_TRY(out.o_groups, text.integer("o_groups", {1, out.num_attention_heads}));
  if (out.num_attention_heads % out.o_groups != 0) {
    return fail(ErrorCode::kInvalidArgument,
                "text_config.o_groups: found {}, expected a divisor of text_config.num_attention_heads = {}",
                out.o_groups, out.num_attention_heads);
  }
  HADAL_TRY(out.sliding_window, text.integer("sliding_window", {1, kMaxWidth}));
  HADAL_TRY(out.rope_theta, text.number("rope_theta", {1, 1e15}));
  HADAL_TRY(out.compress_rope_theta, text.number("compress_rope_theta", {1.001, 1e15}));
  HADAL_TRY(out.rope_scaling, read_rope_scaling(text));
  HADAL_TRY(out.max_position_embeddings, text.integer("max_position_embeddings", {1, kMaxPositions}));
  return {};
}

Result<void> read_compression(const ObjectReader& text, TextConfig& out) {
  const int64_t num_ratios = out.num_hidden_layers + out.num_nextn_predict_layers;
  HADAL_TRY(out.compress_ratios, text.integers("compress_ratios", {0, kMaxPositions}, 2 * kMaxLayers));
  if (std::ssize(out.compress_ratios) != num_ratios) {
    return fail(ErrorCode::kInvalidArgument,
                "text_config.compress_ratios: found {} entries, expected {} (num_hidden_layers {} plus "
                "num_nextn_predict_layers {})",
                out.compress_ratios.size(), num_ratios, out.num_hidden_layers, out.num_nextn_predict_layers);
  }
  for (int64_t layer = 0; layer < num_ratios; ++layer) {
    const int64_t ratio = out.compress_ratios[static_cast<size_t>(layer)];
    if (layer >= out.num_hidden_layers && ratio != 0) {
      return fail(ErrorCode::kInvalidArgument,
                  "text_config.compress_ratios[{}]: found {}, expected 0 for a draft layer", layer, ratio);
    }
    if (ratio > 2) {
      return fail(ErrorCode::kUnsupported, "text_config.compress_ratios[{}]: found {}, expected 0, 1 or 2",
                  layer, ratio);
    }
  }
  HADAL_TRY(out.kv_source_layer_ids, layer_list(text, "kv_source_layer_ids", out.num_hidden_layers));
  HADAL_TRY(out.index_source_layer_ids, layer_list(text, "index_source_layer_ids", out.num_hidden_layers));
  out.index_k_source_layer_ids = out.kv_source_layer_ids;
  if (text.has("index_k_source_layer_ids")) {
    HADAL_TRY(out.index_k_source_layer_ids,
              layer_list(text, "index_k_source_layer_ids", out.num_hidden_layers));
  }
  HADAL_TRY(out.index_n_heads, text.integer("index_n_heads", {1, kMaxHeads}));
  HADAL_TRY(out.index_head_dim, text.integer("index_head_dim", {kBlock, kMaxHeadDim, kBlock}));
  if (out.index_head_dim < out.qk_rope_head_dim) {
    return fail(ErrorCode::kInvalidArgument,
                "text_config.index_head_dim: found {}, expected at least text_config.qk_rope_head_dim = {}",
                out.index_head_dim, out.qk_rope_head_dim);
  }
  HADAL_TRY(out.index_topk, text.integer("index_topk", {1, kMaxSelection}));
  const bool has_candidates = text.has("candidate_source_layer_id");
  if (has_candidates) {
    HADAL_TRY(out.candidate_source_layer_id,
              text.integer("candidate_source_layer_id", {0, out.num_hidden_layers - 1}));
  }
  HADAL_TRY(out.candidate_topk_blocks,
            text.integer_if(has_candidates, "candidate_topk_blocks", {1, kMaxSelection}));
  HADAL_TRY(out.candidate_block_size,
            text.integer_if(has_candidates, "candidate_block_size", {1, kMaxSelection}));
  return resolve_topology(out);
}

Result<void> read_experts(const ObjectReader& text, TextConfig& out) {
  HADAL_TRY(out.n_routed_experts, text.integer("n_routed_experts", {1, kMaxExperts}));
  HADAL_TRY(out.n_shared_experts, text.integer("n_shared_experts", {1, 64}));
  HADAL_TRY(out.num_experts_per_tok, text.integer("num_experts_per_tok", {1, out.n_routed_experts}));
  HADAL_TRY(out.moe_intermediate_size,
            text.integer("moe_intermediate_size", {kBlock, 16 * kMaxWidth, kBlock}));
  HADAL_CHECK(text.require("scoring_func", "sqrtsoftplus"));
  HADAL_CHECK(text.require("topk_method", "noaux_tc"));
  HADAL_CHECK(text.require("norm_topk_prob", true, false));
  HADAL_TRY(out.routed_scaling_factor, text.number("routed_scaling_factor", kPositive));
  HADAL_CHECK(text.require("hidden_act", "silu"));
  if (text.has("swiglu_limit")) {
    HADAL_TRY(out.swiglu_limit, text.number("swiglu_limit", {0, 1e30}));
  }
  if (text.has("gate_temp")) {
    HADAL_TRY(out.gate_temp, text.number("gate_temp", kPositive));
  }
  return {};
}

Result<void> read_engram(const ObjectReader& text, TextConfig& out) {
  HADAL_TRY(out.engram_layer_ids, text.has("engram_layer_ids")
                                      ? layer_list(text, "engram_layer_ids", out.num_hidden_layers)
                                      : Result<std::vector<int64_t>>(std::vector<int64_t>{}));
  const bool used = !out.engram_layer_ids.empty();
  HADAL_TRY(out.engram_num_embeddings,
            text.integers_or_empty("engram_num_embeddings", {1, int64_t{1} << 50}, kMaxLayers));
  HADAL_TRY(out.engram_max_ngram_size, text.integer_if(used, "engram_max_ngram_size", {2, 8}));
  HADAL_TRY(out.engram_vocab_size, text.integer_if(used, "engram_vocab_size", {2, kMaxEngramVocabulary}));
  HADAL_TRY(out.engram_n_heads, text.integer_if(used, "engram_n_heads", {1, 64}));
  HADAL_TRY(out.engram_head_dim, text.integer_if(used, "engram_head_dim", {kBlock, kMaxHeadDim, kBlock}));
  if (text.has("engram_pad_token_id")) {
    HADAL_TRY(out.engram_pad_token_id, text.integer("engram_pad_token_id", {0, out.vocab_size - 1}));
  }
  HADAL_TRY(out.engram_compressed_vocab_size,
            text.integer_if(false, "engram_compressed_vocab_size", {0, kMaxVocabulary}));
  if (out.engram_num_embeddings.size() != out.engram_layer_ids.size()) {
    return fail(ErrorCode::kInvalidArgument,
                "text_config.engram_num_embeddings: found {} entries, expected {}, one for each of "
                "text_config.engram_layer_ids",
                out.engram_num_embeddings.size(), out.engram_layer_ids.size());
  }
  if (!used) {
    return {};
  }
  const int64_t num_primes =
      std::ssize(out.engram_layer_ids) * (out.engram_max_ngram_size - 1) * out.engram_n_heads;
  if (num_primes > kMaxEngramPrimes) {
    return fail(
        ErrorCode::kUnsupported,
        "text_config.engram_layer_ids: found {} layers of {} hash heads, expected at most {} heads in all",
        out.engram_layer_ids.size(), (out.engram_max_ngram_size - 1) * out.engram_n_heads, kMaxEngramPrimes);
  }
  const auto primes = engram_primes(std::ssize(out.engram_layer_ids), out.engram_max_ngram_size,
                                    out.engram_n_heads, out.engram_vocab_size);
  for (size_t slot = 0; slot < primes.size(); ++slot) {
    const int64_t rows = std::accumulate(primes[slot].begin(), primes[slot].end(), int64_t{0});
    if (out.engram_num_embeddings[slot] != rows) {
      return fail(
          ErrorCode::kInvalidArgument,
          "text_config.engram_num_embeddings[{}]: found {}, expected {}, the sum of the primes that follow "
          "from engram_vocab_size {}, engram_max_ngram_size {} and engram_n_heads {}",
          slot, out.engram_num_embeddings[slot], rows, out.engram_vocab_size, out.engram_max_ngram_size,
          out.engram_n_heads);
    }
  }
  return {};
}

Result<void> read_drafts(const ObjectReader& text, TextConfig& out) {
  const bool used = out.num_nextn_predict_layers > 0;
  HADAL_TRY(out.dspark_block_size, text.integer_if(used, "dspark_block_size", {1, 64}));
  HADAL_TRY(out.dspark_noise_token_id,
            text.integer_if(used, "dspark_noise_token_id", {0, out.vocab_size - 1}));
  HADAL_TRY(out.dspark_target_layer_ids,
            text.integers_or_empty("dspark_target_layer_ids", {0, out.num_hidden_layers - 1}, kMaxLayers));
  HADAL_TRY(out.dspark_markov_rank, text.integer_if(used, "dspark_markov_rank", {1, kMaxWidth}));
  HADAL_TRY(out.dspark_n_routed_experts, text.integer_if(used, "dspark_n_routed_experts", {1, kMaxExperts}));
  HADAL_TRY(out.dspark_num_experts_per_tok,
            text.integer_if(used, "dspark_num_experts_per_tok", {1, kMaxExperts}));
  if (!used) {
    return {};
  }
  if (out.dspark_num_experts_per_tok > out.dspark_n_routed_experts) {
    return fail(ErrorCode::kInvalidArgument,
                "text_config.dspark_num_experts_per_tok: found {}, expected at most "
                "text_config.dspark_n_routed_experts = {}",
                out.dspark_num_experts_per_tok, out.dspark_n_routed_experts);
  }
  std::vector<int64_t> sorted = out.dspark_target_layer_ids;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty() || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return fail(ErrorCode::kInvalidArgument,
                "text_config.dspark_target_layer_ids: found {}, expected at least one layer and none twice",
                fmt::format("[{}]", fmt::join(out.dspark_target_layer_ids, ", ")));
  }
  return {};
}

Result<TextConfig> read_text(const ObjectReader& text) {
  TextConfig out;
  HADAL_CHECK(text.require("model_type", "deepseek_v41_text"));
  HADAL_TRY(out.vocab_size, text.integer("vocab_size", {1, kMaxVocabulary}));
  HADAL_TRY(out.hidden_size, text.integer("hidden_size", kAnyWidth));
  HADAL_TRY(out.num_hidden_layers, text.integer("num_hidden_layers", {1, kMaxLayers}));
  HADAL_TRY(out.num_nextn_predict_layers, text.integer_if(false, "num_nextn_predict_layers", {0, 16}));
  HADAL_TRY(out.rms_norm_eps, text.number("rms_norm_eps", {1e-37, 1}));  // a positive float32
  HADAL_CHECK(text.require("attention_bias", false, true));
  HADAL_CHECK(text.require("attention_dropout", 0, true));
  HADAL_CHECK(text.require("tie_word_embeddings", false, true));
  HADAL_CHECK(read_attention(text, out));
  HADAL_CHECK(read_compression(text, out));
  HADAL_CHECK(read_experts(text, out));
  HADAL_TRY(out.hc_mult, text.integer("hc_mult", {1, 16}));
  HADAL_TRY(out.hc_sinkhorn_iters, text.integer("hc_sinkhorn_iters", {1, 1000}));
  HADAL_TRY(out.hc_eps, text.number("hc_eps", {1e-37, 1}));
  HADAL_CHECK(text.require("hc_shifted", true, true));
  HADAL_CHECK(read_engram(text, out));
  HADAL_CHECK(read_drafts(text, out));
  if (text.has("use_fp4_sparse_kv")) {
    HADAL_TRY(out.use_fp4_sparse_kv, text.boolean("use_fp4_sparse_kv"));
  }
  return out;
}

Result<VisionConfig> read_vision(const ObjectReader& vision) {
  VisionConfig out;
  HADAL_CHECK(vision.require("model_type", "deepseek_v41_vision"));
  HADAL_TRY(out.num_hidden_layers, vision.integer("num_hidden_layers", {1, kMaxLayers}));
  HADAL_TRY(out.hidden_size, vision.integer("hidden_size", {4, kMaxWidth, 4}));
  HADAL_TRY(out.num_attention_heads, vision.integer("num_attention_heads", {1, kMaxHeads}));
  // The two-dimensional RoPE splits a head into halves of pairs.
  if (out.hidden_size % (4 * out.num_attention_heads) != 0) {
    return fail(ErrorCode::kInvalidArgument,
                "vision_config.num_attention_heads: found {}, expected heads of a multiple of 4 channels "
                "(vision_config.hidden_size is {})",
                out.num_attention_heads, out.hidden_size);
  }
  HADAL_TRY(out.intermediate_size, vision.integer("intermediate_size", {1, 16 * kMaxWidth}));
  HADAL_TRY(out.patch_size, vision.integer("patch_size", {1, 256}));
  HADAL_TRY(out.downsample_ratio, vision.integer("downsample_ratio", {1, 32}));
  HADAL_TRY(out.rope_theta, vision.number("rope_theta", {1, 1e15}));
  HADAL_TRY(out.max_image_tokens, vision.integer("max_image_tokens", {4, kMaxSelection}));
  HADAL_TRY(out.min_pixels, vision.integer("min_pixels", {0, int64_t{1} << 32}));
  if (vision.has("max_wh_ratio")) {
    HADAL_TRY(out.max_wh_ratio, vision.number("max_wh_ratio", {1e-6, 1e6}));
  }
  return out;
}

void warn_of_unread(const ObjectReader& reader) {
  // Fields of the Hugging Face base class that say nothing of the forward pass.
  constexpr std::string_view kHarmless[] = {
      "initializer_range", "transformers_version", "use_cache",    "torch_dtype",  "auto_map",
      "_name_or_path",     "bos_token_id",         "eos_token_id", "pad_token_id", "dtype"};
  for (const std::string& field : reader.unread()) {
    const std::string_view name = std::string_view(field).substr(field.rfind('.') + 1);
    if (std::find(std::begin(kHarmless), std::end(kHarmless), name) == std::end(kHarmless)) {
      spdlog::warn("config.json: {} is not known and has no effect", printable(field, 100));
    }
  }
}

Result<ModelConfig> read_config(const nlohmann::json& document) {
  HADAL_TRY(const auto top, ObjectReader::create(document, ""));
  HADAL_CHECK(check_architecture(top, document));
  HADAL_CHECK(top.require("dtype", "bfloat16"));
  HADAL_CHECK(top.require("tie_word_embeddings", false, true));
  HADAL_TRY(const auto quantization, top.object("quantization_config"));
  HADAL_CHECK(check_quantization(quantization));

  ModelConfig out;
  HADAL_TRY(const auto text, top.object("text_config"));
  HADAL_TRY(out.text, read_text(text));
  const IntegerRule token = {0, out.text.vocab_size - 1};
  HADAL_TRY(out.bos_token_id, top.integer("bos_token_id", token));
  HADAL_TRY(out.eos_token_id, top.integer("eos_token_id", token));
  HADAL_TRY(out.pad_token_id, top.integer("pad_token_id", token));
  HADAL_TRY(out.image_token_id, top.integer("image_token_id", token));
  if (top.has("tokenizer_compatibility")) {
    HADAL_TRY(out.tokenizer_compatibility, top.string("tokenizer_compatibility"));
    if (out.tokenizer_compatibility != "release" && out.tokenizer_compatibility != "native") {
      return fail(ErrorCode::kUnsupported,
                  "tokenizer_compatibility: found \"{}\", expected \"release\" or \"native\"",
                  printable(out.tokenizer_compatibility, 80));
    }
  }
  if (top.has("vision_config")) {
    HADAL_TRY(const auto vision, top.object("vision_config"));
    HADAL_TRY(out.vision, read_vision(vision));
    warn_of_unread(vision);
  }
  warn_of_unread(top);
  warn_of_unread(quantization);
  warn_of_unread(text);
  return out;
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view json) {
  if (json.size() > kMaxConfigBytes) {
    return fail(ErrorCode::kInvalidArgument, "config.json: {} bytes, expected at most {}", json.size(),
                kMaxConfigBytes);
  }
  HADAL_TRY(const nlohmann::json document, parse_strict_json(json, "config.json"));
  auto config = read_config(document);
  if (!config) {
    return fail_within("config.json", std::move(config).error());
  }
  return config;
}

Result<ModelConfig> load_model_config(const std::filesystem::path& directory) {
  HADAL_TRY(const auto file, resolve_model_file(directory, "config.json"));
  HADAL_TRY(const std::string text, read_text_file(file, kMaxConfigBytes));
  auto config = parse_model_config(text);
  if (!config) {
    return fail_within(directory.string(), std::move(config).error());
  }
  return config;
}

}  // namespace hadal::checkpoint
