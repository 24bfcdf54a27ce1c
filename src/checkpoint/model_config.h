#pragma once
// config.json of a DeepSeek-V4.1 checkpoint, typed and validated.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hadal::checkpoint {

struct RopeScaling {  ///< YaRN; applies to layers with compress ratio > 0
  double factor = 1;
  double original_max_position_embeddings = 0;
  double beta_fast = 32;
  double beta_slow = 1;
};

/// text_config. Names are those of config.json; derived values are at the end.
struct TextConfig {
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t head_dim = 0;
  int64_t qk_rope_head_dim = 0;
  int64_t q_lora_rank = 0;
  int64_t o_lora_rank = 0;
  int64_t o_groups = 0;
  int64_t sliding_window = 0;
  double rope_theta = 0;
  double compress_rope_theta = 0;
  std::optional<RopeScaling> rope_scaling;
  int64_t max_position_embeddings = 0;
  std::vector<int64_t> compress_ratios;           ///< backbone layers, then draft layers
  std::vector<int64_t> kv_source_layer_ids;       ///< ascending
  std::vector<int64_t> index_source_layer_ids;    ///< ascending
  std::vector<int64_t> index_k_source_layer_ids;  ///< ascending; defaults to kv_source_layer_ids
  int64_t index_n_heads = 0;
  int64_t index_head_dim = 0;
  int64_t index_topk = 0;
  std::optional<int64_t> candidate_source_layer_id;
  int64_t candidate_topk_blocks = 0;
  int64_t candidate_block_size = 0;
  int64_t n_routed_experts = 0;
  int64_t n_shared_experts = 0;
  int64_t num_experts_per_tok = 0;
  int64_t moe_intermediate_size = 0;
  double routed_scaling_factor = 1;
  double swiglu_limit = 0;  ///< 0: no limit
  double rms_norm_eps = 0;
  int64_t hc_mult = 0;
  int64_t hc_sinkhorn_iters = 0;
  double hc_eps = 0;
  std::vector<int64_t> engram_layer_ids;       ///< empty: no Engram
  std::vector<int64_t> engram_num_embeddings;  ///< rows of each table, 64-bit
  int64_t engram_max_ngram_size = 0;
  int64_t engram_vocab_size = 0;
  int64_t engram_n_heads = 0;
  int64_t engram_head_dim = 0;
  int64_t engram_pad_token_id = 2;
  int64_t engram_compressed_vocab_size = 0;  ///< 0: ids are hashed as they are
  int64_t num_nextn_predict_layers = 0;
  int64_t dspark_block_size = 0;
  int64_t dspark_noise_token_id = 0;
  std::vector<int64_t> dspark_target_layer_ids;
  int64_t dspark_markov_rank = 0;
  int64_t dspark_n_routed_experts = 0;
  int64_t dspark_num_experts_per_tok = 0;
  bool use_fp4_sparse_kv = true;
  double gate_temp = 1.0;

  // Derived from the lists above (docs of the topology rules are in model_config.cpp).
  int64_t first_consumer_layer = 0;      ///< F: first backbone layer with ratio 1; num_hidden_layers if none
  std::vector<int64_t> kv_source_of;     ///< per backbone layer; -1 for ratio 0
  std::vector<int64_t> index_source_of;  ///< per backbone layer; -1 for ratio 0
  std::vector<int64_t> index_k_source_of;  ///< per backbone layer; -1 for ratio 0
};

struct VisionConfig {
  int64_t num_hidden_layers = 0;
  int64_t hidden_size = 0;
  int64_t num_attention_heads = 0;
  int64_t intermediate_size = 0;
  int64_t patch_size = 0;
  int64_t downsample_ratio = 0;
  double rope_theta = 0;
  int64_t max_image_tokens = 0;
  int64_t min_pixels = 0;
  std::optional<double> max_wh_ratio;
};

struct ModelConfig {
  int64_t bos_token_id = 0;
  int64_t eos_token_id = 1;
  int64_t pad_token_id = 2;
  int64_t image_token_id = 0;
  std::string tokenizer_compatibility = "release";  ///< "release" or "native"
  TextConfig text;
  std::optional<VisionConfig> vision;
};

/// Parses and validates config.json text. Every error names the field (dotted path), what was found and
/// what was expected. Another architecture (V3, V4, unknown) is kUnsupported and named.
Result<ModelConfig> parse_model_config(std::string_view json);

/// The same from `directory`/config.json.
Result<ModelConfig> load_model_config(const std::filesystem::path& directory);

}  // namespace hadal::checkpoint
