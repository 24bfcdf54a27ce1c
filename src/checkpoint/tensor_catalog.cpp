#include "checkpoint/tensor_catalog.h"

#include <algorithm>

namespace hadal::checkpoint {
namespace {

using Visit = std::function<Result<void>(const ExpectedTensor&)>;

constexpr int64_t kBlock = 32;

int64_t blocks(int64_t extent) {
  return (extent + kBlock - 1) / kBlock;
}

bool contains(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// Hands tensors to the visitor by their kind; names are prefix + name.
class Catalog {
 public:
  Catalog(const Visit& visit, std::string prefix) : visit_(visit), prefix_(std::move(prefix)) {}

  Catalog at(std::string_view name) const { return {visit_, fmt::format("{}{}.", prefix_, name)}; }

  Result<void> bf16(std::string_view name, std::vector<int64_t> shape) const {
    return add(name, DType::kBF16, std::move(shape));
  }
  Result<void> f32(std::string_view name, std::vector<int64_t> shape) const {
    return add(name, DType::kF32, std::move(shape));
  }
  /// NAME.weight in E4M3 with a scale for each block of 32 x 32.
  Result<void> q8(std::string_view name, int64_t rows, int64_t columns) const {
    HADAL_CHECK(at(name).add("weight", DType::kF8E4M3, {rows, columns}));
    return at(name).add("scale", DType::kF8E8M0, {blocks(rows), blocks(columns)});
  }
  /// NAME.weight in packed E2M1 with a scale for each row and 32 columns.
  Result<void> q4(std::string_view name, int64_t rows, int64_t columns) const {
    HADAL_CHECK(at(name).add("weight", DType::kI8, {rows, columns / 2}));
    return at(name).add("scale", DType::kF8E8M0, {rows, columns / kBlock});
  }
  /// NAME.weight in E4M3 with a scale for each row and 32 columns.
  Result<void> table(std::string_view name, int64_t rows, int64_t columns) const {
    HADAL_CHECK(at(name).add("weight", DType::kF8E4M3, {rows, columns}));
    return at(name).add("scale", DType::kF8E8M0, {rows, columns / kBlock});
  }
  /// NAME.weight and NAME.bias in BF16.
  Result<void> with_bias(std::string_view name, int64_t rows, int64_t columns) const {
    HADAL_CHECK(at(name).bf16("weight", {rows, columns}));
    return at(name).bf16("bias", {rows});
  }

 private:
  Result<void> add(std::string_view name, DType dtype, std::vector<int64_t> shape) const {
    return visit_(
        ExpectedTensor{.name = prefix_ + std::string(name), .dtype = dtype, .shape = std::move(shape)});
  }

  const Visit& visit_;
  std::string prefix_;
};

/// What backbone and draft layers have in common: norms, hyper-connections, attention, experts.
Result<void> common_layer(const Catalog& layer, const TextConfig& text, int64_t num_experts) {
  const int64_t hidden = text.hidden_size;
  const int64_t streams = text.hc_mult;
  HADAL_CHECK(layer.bf16("attn_norm.weight", {hidden}));
  HADAL_CHECK(layer.bf16("ffn_norm.weight", {hidden}));
  for (const std::string_view kind : {"attn", "ffn"}) {
    HADAL_CHECK(layer.f32(fmt::format("hc_{}_fn", kind), {(2 + streams) * streams, streams * hidden}));
    HADAL_CHECK(layer.f32(fmt::format("hc_{}_base", kind), {(2 + streams) * streams}));
    HADAL_CHECK(layer.f32(fmt::format("hc_{}_scale", kind), {3}));
  }

  const Catalog attention = layer.at("attn");
  const int64_t heads = text.num_attention_heads;
  const int64_t low = text.o_groups * text.o_lora_rank;
  HADAL_CHECK(attention.f32("attn_sink", {heads}));
  HADAL_CHECK(attention.q8("wq_a", text.q_lora_rank, hidden));
  HADAL_CHECK(attention.bf16("q_norm.weight", {text.q_lora_rank}));
  HADAL_CHECK(attention.q8("wq_b", heads * text.head_dim, text.q_lora_rank));
  HADAL_CHECK(attention.q8("wkv", text.head_dim, hidden));
  HADAL_CHECK(attention.bf16("kv_norm.weight", {text.head_dim}));
  HADAL_CHECK(attention.q8("wo_a", low, heads / text.o_groups * text.head_dim));
  HADAL_CHECK(attention.q8("wo_b", hidden, low));

  const Catalog ffn = layer.at("ffn");
  const int64_t inter = text.moe_intermediate_size;
  HADAL_CHECK(ffn.bf16("gate.weight", {num_experts, hidden}));
  HADAL_CHECK(ffn.f32("gate.bias", {num_experts}));
  HADAL_CHECK(ffn.f32("gate.bias_vl", {num_experts}));
  for (int64_t expert = 0; expert < num_experts; ++expert) {
    const Catalog weights = ffn.at(fmt::format("experts.{}", expert));
    HADAL_CHECK(weights.q4("w1", inter, hidden));
    HADAL_CHECK(weights.q4("w2", hidden, inter));
    HADAL_CHECK(weights.q4("w3", inter, hidden));
  }
  const Catalog shared = ffn.at("shared_experts");
  HADAL_CHECK(shared.q8("w1", text.n_shared_experts * inter, hidden));
  HADAL_CHECK(shared.q8("w2", hidden, text.n_shared_experts * inter));
  return shared.q8("w3", text.n_shared_experts * inter, hidden);
}

Result<void> compression(const Catalog& layer, const TextConfig& text, int64_t layer_id) {
  const Catalog attention = layer.at("attn");
  if (contains(text.kv_source_layer_ids, layer_id)) {
    const Catalog compressor = attention.at("compressor");
    HADAL_CHECK(compressor.bf16("wkv.weight", {text.head_dim, text.hidden_size}));
    if (text.compress_ratios[static_cast<size_t>(layer_id)] > 1) {
      HADAL_CHECK(compressor.bf16("wgate.weight", {text.head_dim, text.hidden_size}));
    }
    HADAL_CHECK(compressor.bf16("norm.weight", {text.head_dim}));
  }
  const Catalog indexer = attention.at("indexer");
  if (contains(text.index_source_layer_ids, layer_id)) {
    HADAL_CHECK(indexer.q8("wq_b", text.index_n_heads * text.index_head_dim, text.q_lora_rank));
    HADAL_CHECK(indexer.bf16("weights_proj.weight", {text.index_n_heads, text.hidden_size}));
  }
  if (contains(text.index_k_source_layer_ids, layer_id)) {
    HADAL_CHECK(indexer.bf16("wk.weight", {text.index_head_dim, text.head_dim}));
    HADAL_CHECK(indexer.bf16("k_norm.weight", {text.index_head_dim}));
  }
  return {};
}

Result<void> engram(const Catalog& layer, const TextConfig& text, int64_t layer_id) {
  const auto slot = std::find(text.engram_layer_ids.begin(), text.engram_layer_ids.end(), layer_id);
  if (slot == text.engram_layer_ids.end()) {
    return {};
  }
  const Catalog part = layer.at("engram");
  const int64_t rows = text.engram_num_embeddings[static_cast<size_t>(slot - text.engram_layer_ids.begin())];
  const int64_t columns = (text.engram_max_ngram_size - 1) * text.engram_n_heads * text.engram_head_dim;
  HADAL_CHECK(part.table("embed", rows, text.engram_head_dim));
  HADAL_CHECK(part.q8("wkv", (text.hc_mult + 1) * text.hidden_size, columns));
  HADAL_CHECK(part.bf16("q_weight", {text.hc_mult, text.hidden_size}));
  return part.bf16("k_weight", {text.hc_mult, text.hidden_size});
}

Result<void> draft_ends(const Catalog& layer, const TextConfig& text, int64_t layer_id) {
  const int64_t hidden = text.hidden_size;
  if (layer_id == 0) {
    HADAL_CHECK(layer.q8("main_proj", hidden, hidden * std::ssize(text.dspark_target_layer_ids)));
    HADAL_CHECK(layer.bf16("main_norm.weight", {hidden}));
  }
  if (layer_id == text.num_nextn_predict_layers - 1) {
    HADAL_CHECK(layer.bf16("norm.weight", {hidden}));
    HADAL_CHECK(layer.bf16("markov_head.embed.weight", {text.vocab_size, text.dspark_markov_rank}));
    HADAL_CHECK(layer.bf16("markov_head.head.weight", {text.vocab_size, text.dspark_markov_rank}));
    HADAL_CHECK(layer.bf16("confidence_head.proj.weight", {1, hidden + text.dspark_markov_rank}));
  }
  return {};
}

Result<void> vision_tower(const Catalog& top, const VisionConfig& vision, int64_t hidden) {
  const int64_t width = vision.hidden_size;
  const int64_t cell = vision.downsample_ratio * vision.downsample_ratio;
  const Catalog tower = top.at("vision");
  HADAL_CHECK(tower.with_bias("patch_embed.proj", width, 3 * vision.patch_size * vision.patch_size));
  for (int64_t block_id = 0; block_id < vision.num_hidden_layers; ++block_id) {
    const Catalog block = tower.at(fmt::format("blocks.{}", block_id));
    HADAL_CHECK(block.bf16("norm1.weight", {width}));
    HADAL_CHECK(block.with_bias("attn.wqkv", 3 * width, width));
    HADAL_CHECK(block.with_bias("attn.wo", width, width));
    HADAL_CHECK(block.bf16("norm2.weight", {width}));
    HADAL_CHECK(block.bf16("mlp.w1.weight", {2 * vision.intermediate_size, width}));
    HADAL_CHECK(block.bf16("mlp.w2.weight", {width, vision.intermediate_size}));
  }
  HADAL_CHECK(tower.bf16("norm.weight", {width}));
  HADAL_CHECK(top.with_bias("aligner.w1", hidden, width * cell));
  HADAL_CHECK(top.with_bias("aligner.w2", hidden, hidden));
  for (const std::string_view name : {"image_start", "image_newline", "image_end"}) {
    HADAL_CHECK(top.bf16(name, {hidden}));
  }
  return {};
}

}  // namespace

Result<void> for_each_expected_tensor(const ModelConfig& config, const Visit& visit) {
  const TextConfig& text = config.text;
  const Catalog top(visit, "");
  HADAL_CHECK(top.bf16("embed.weight", {text.vocab_size, text.hidden_size}));
  HADAL_CHECK(top.bf16("norm.weight", {text.hidden_size}));
  HADAL_CHECK(top.bf16("head.weight", {text.vocab_size, text.hidden_size}));
  for (int64_t layer_id = 0; layer_id < text.num_hidden_layers; ++layer_id) {
    const Catalog layer = top.at(fmt::format("layers.{}", layer_id));
    HADAL_CHECK(common_layer(layer, text, text.n_routed_experts));
    HADAL_CHECK(compression(layer, text, layer_id));
    HADAL_CHECK(engram(layer, text, layer_id));
  }
  for (int64_t layer_id = 0; layer_id < text.num_nextn_predict_layers; ++layer_id) {
    const Catalog layer = top.at(fmt::format("mtp.{}", layer_id));
    HADAL_CHECK(common_layer(layer, text, text.dspark_n_routed_experts));
    HADAL_CHECK(draft_ends(layer, text, layer_id));
  }
  if (config.vision) {
    HADAL_CHECK(vision_tower(top, *config.vision, text.hidden_size));
  }
  return {};
}

std::string_view part_name(PartKind kind) {
  constexpr std::string_view kNames[kNumPartKinds] = {"embedding and head",
                                                      "attention",
                                                      "routed experts",
                                                      "shared experts",
                                                      "engram tables",
                                                      "engram projections",
                                                      "compressors and indexers",
                                                      "draft layers",
                                                      "vision",
                                                      "other"};
  return kNames[static_cast<size_t>(kind)];
}

PartKind part_of(std::string_view name) {
  if (name.starts_with("embed.") || name.starts_with("head.")) {
    return PartKind::kEmbeddingAndHead;
  }
  if (name.starts_with("mtp.")) {
    return PartKind::kDraftLayers;
  }
  if (name.starts_with("vision.") || name.starts_with("aligner.") || name.starts_with("image_")) {
    return PartKind::kVision;
  }
  if (!name.starts_with("layers.")) {
    return PartKind::kOther;
  }
  // layers.N.REST
  const size_t number_end = name.find('.', std::string_view("layers.").size());
  const std::string_view rest = number_end == name.npos ? std::string_view() : name.substr(number_end + 1);
  if (rest.starts_with("attn.compressor.") || rest.starts_with("attn.indexer.")) {
    return PartKind::kCompressorsAndIndexers;
  }
  if (rest.starts_with("attn.")) {
    return PartKind::kAttention;
  }
  if (rest.starts_with("ffn.experts.")) {
    return PartKind::kRoutedExperts;
  }
  if (rest.starts_with("ffn.shared_experts.")) {
    return PartKind::kSharedExperts;
  }
  if (rest.starts_with("engram.embed.")) {
    return PartKind::kEngramTables;
  }
  return rest.starts_with("engram.") ? PartKind::kEngramProjections : PartKind::kOther;
}

}  // namespace hadal::checkpoint
