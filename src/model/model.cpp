#include "model/model.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "model/attention.h"
#include "model/draft_features.h"
#include "model/draft_layers.h"
#include "model/engram.h"
#include "model/hyper_connection.h"
#include "model/moe.h"
#include "model/vocabulary_map.h"

namespace hadal::model {
namespace {

using checkpoint::TextConfig;

CacheMap make_cache_map(const TextConfig& config, const Precision& precision) {
  CacheMap map;
  map.window_format = precision.window_format();
  map.entry_format = precision.entry_format(config.use_fp4_sparse_kv);
  map.index_format = precision.index_format();
  // Every KV source is an index-key source too, so the latter's order numbers the slots.
  const auto slot_of = [&](int64_t source) {
    const auto& sources = config.index_k_source_layer_ids;
    const auto found = std::find(sources.begin(), sources.end(), source);
    return found == sources.end() ? int64_t{-1} : static_cast<int64_t>(found - sources.begin());
  };
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    map.entry_slot.push_back(slot_of(config.kv_source_of[static_cast<size_t>(layer)]));
    map.index_slot.push_back(slot_of(config.index_k_source_of[static_cast<size_t>(layer)]));
  }
  return map;
}

cache::StateLayout make_state_layout(const TextConfig& config, const CacheMap& map,
                                     const ModelOptions& options) {
  cache::StateLayout layout;
  layout.num_layers =
      config.num_hidden_layers + (options.draft_length > 0 ? config.num_nextn_predict_layers : 0);
  layout.window = config.sliding_window;
  layout.window_row_bytes = static_cast<size_t>(kernels::row_bytes(map.window_format, config.head_dim));
  layout.max_rollback = options.max_rollback;
  if (options.replay != ReplayMode::kOff) {
    layout.first_replayed_layer = config.first_consumer_layer;
  }
  if (options.keeps_snapshots) {
    layout.snapshot_reach =
        cache::kBlockTokens + (options.replay == ReplayMode::kOff ? 0 : options.replay_keep);
  }
  for (const int64_t layer : config.index_k_source_layer_ids) {
    const auto& sources = config.kv_source_layer_ids;
    const bool owns_entries = std::find(sources.begin(), sources.end(), layer) != sources.end();
    const int64_t ratio = config.compress_ratios[static_cast<size_t>(layer)];
    layout.sources.push_back({
        .ratio = ratio,
        .entry_bytes =
            owns_entries ? static_cast<size_t>(kernels::row_bytes(map.entry_format, config.head_dim)) : 0,
        .index_key_bytes = static_cast<size_t>(kernels::row_bytes(map.index_format, config.index_head_dim)),
        .tail_bytes =
            owns_entries && ratio > 1 ? static_cast<size_t>(2 * config.head_dim) * sizeof(float) : 0,
    });
  }
  return layout;
}

Result<void> check_supported(const TextConfig& config, const ModelOptions& options) {
  if (config.hc_mult > 8) {
    return fail(ErrorCode::kUnsupported, "text_config.hc_mult: {}, expected at most 8", config.hc_mult);
  }
  for (const int64_t layer : config.kv_source_layer_ids) {
    if (layer > config.first_consumer_layer) {
      return fail(
          ErrorCode::kUnsupported,
          "text_config.kv_source_layer_ids: {} lies behind the first layer with ratio 1 ({}); no released "
          "model has that",
          layer, config.first_consumer_layer);
    }
  }
  if (options.draft_length > 0 && config.num_nextn_predict_layers == 0) {
    return fail(ErrorCode::kInvalidArgument, "draft-length: {}, but the checkpoint has no draft layers",
                options.draft_length);
  }
  if (options.draft_length < 0 || options.draft_length > options.max_rollback) {
    return fail(ErrorCode::kInvalidArgument, "draft-length: {}, expected 0 to the {} tokens of a rollback",
                options.draft_length, options.max_rollback);
  }
  if (options.replay != ReplayMode::kOff) {
    const int64_t least = config.sliding_window + options.max_rollback;
    if (options.replay_keep < least) {
      return fail(ErrorCode::kInvalidArgument,
                  "replay-keep: {}, expected at least {} (sliding window {} + rollback {})",
                  options.replay_keep, least, config.sliding_window, options.max_rollback);
    }
    for (const int64_t layer : config.engram_layer_ids) {
      if (layer >= config.first_consumer_layer) {
        return fail(ErrorCode::kUnsupported,
                    "replay: Engram layer {} lies in the decoder half; use replay off", layer);
      }
    }
  }
  return {};
}

class BackboneModel final : public Model {
 public:
  BackboneModel(std::shared_ptr<const checkpoint::Checkpoint> source, ModelWeights weights,
                std::optional<DraftWeights> draft_weights, std::optional<EngramHash> hash, ThreadPool& pool,
                const ModelOptions& options)
      : source_(std::move(source)),
        config_(source_->config()),
        options_(options),
        weights_(std::move(weights)),
        draft_weights_(std::move(draft_weights)),
        operators_(kernels::kernels_for(options.isa), pool, options.precision),
        cache_map_(make_cache_map(config_.text, options.precision)),
        layout_(make_state_layout(config_.text, cache_map_, options)),
        attention_(config_.text, cache_map_, operators_),
        moe_(config_.text, operators_) {
    if (hash) {
      engram_.emplace(config_.text, std::move(*hash), operators_);
    }
    if (draft_weights_) {
      draft_features_.emplace(config_.text, *draft_weights_, cache_map_.window_format, operators_);
      draft_layers_.emplace(config_.text, weights_, *draft_weights_, cache_map_.window_format,
                            options.draft_length, operators_);
    }
  }

  int64_t vocab_size() const override { return config_.text.vocab_size; }
  int64_t max_positions() const override { return config_.text.max_position_embeddings; }
  void set_capture(Capture* capture) override { capture_ = capture; }
  const checkpoint::ModelConfig& config() const override { return config_; }
  const ModelOptions& options() const override { return options_; }

  std::unique_ptr<cache::SequenceState> new_state(int64_t prompt_length) const override {
    return std::make_unique<cache::SequenceState>(layout_, replay_from(prompt_length));
  }
  int64_t replay_from(int64_t prompt_length) const override {
    return options_.replay == ReplayMode::kOff ? 0
                                               : std::max<int64_t>(prompt_length - options_.replay_keep, 0);
  }

  Result<void> forward(std::span<const Segment> segments) override;
  DraftModel* draft_model() override { return draft_layers_ ? &*draft_layers_ : nullptr; }
  int64_t max_rollback() const override { return options_.max_rollback; }

 private:
  void begin_pass(std::span<const Segment> segments);
  void embed();
  void run_layer(int64_t layer);
  void drop_replayed_rows();
  void collapse_and_norm(const Mixes& mixes, const Bf16Vector& weight);
  void expand(const Mixes& mixes);
  void write_logits();
  void record_routing(int64_t layer);
  void record_streams(int64_t layer);

  int64_t hidden() const { return config_.text.hidden_size; }
  int64_t trunk_width() const { return config_.text.hc_mult * config_.text.hidden_size; }

  std::shared_ptr<const checkpoint::Checkpoint> source_;
  checkpoint::ModelConfig config_;
  ModelOptions options_;
  ModelWeights weights_;
  std::optional<DraftWeights> draft_weights_;  ///< with draft_length > 0
  Operators operators_;
  CacheMap cache_map_;
  cache::StateLayout layout_;
  Attention attention_;
  Moe moe_;
  std::optional<Engram> engram_;
  std::optional<DraftFeatures> draft_features_;
  std::optional<DraftLayers> draft_layers_;
  Capture* capture_ = nullptr;

  Pass pass_;
  Buffer<float> streams_, x_, y_, raw_mixes_;
  Mixes attention_mixes_;
  Mixes ffn_mixes_;  ///< its `pre` collapses the next layer's attention input
};

Result<void> BackboneModel::forward(std::span<const Segment> segments) {
  const FlushDenormals guard;
  begin_pass(segments);
  if (engram_) {
    engram_->begin(pass_, weights_, capture_);
  }
  attention_.set_rows(pass_);
  if (draft_features_) {
    draft_features_->begin(pass_);
  }
  embed();
  for (int64_t layer = 0; layer < config_.text.num_hidden_layers; ++layer) {
    run_layer(layer);
  }
  if (draft_features_) {
    draft_features_->store_keys(pass_);
  }
  write_logits();
  for (const auto& segment : segments) {
    segment.state->advance(static_cast<int64_t>(segment.token_ids.size()));
  }
  return {};
}

void BackboneModel::begin_pass(std::span<const Segment> segments) {
  pass_.segments = segments;
  pass_.places.clear();
  pass_.rows.clear();
  for (size_t s = 0; s < segments.size(); ++s) {
    const int64_t start = segments[s].state->length();
    const auto count = static_cast<int64_t>(segments[s].token_ids.size());
    pass_.places.push_back({start, start + count, segments[s].state->replay_from(), pass_.num_rows(), count});
    for (int64_t i = 0; i < count; ++i) {
      pass_.rows.push_back({static_cast<int32_t>(s), start + i});
    }
  }
}

void BackboneModel::embed() {
  const int64_t m = config_.text.hc_mult;
  float* streams = streams_.reserve(pass_.num_rows() * trunk_width());
  float* pre = ffn_mixes_.pre.reserve(pass_.num_rows() * m);
  operators_.each_row(pass_.num_rows(), trunk_width(), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto& at = pass_.rows[static_cast<size_t>(row)];
      const auto& place = pass_.places[static_cast<size_t>(at.segment)];
      const int64_t token = pass_.segments[static_cast<size_t>(at.segment)]
                                .token_ids[static_cast<size_t>(at.position - place.start)];
      start_trunk(operators_, config_.text, weights_.embedding.data + token * hidden() * 2,
                  streams + row * trunk_width(), pre + row * m);
    }
  });
}

/// x = norm of the trunk collapsed with mixes.pre
void BackboneModel::collapse_and_norm(const Mixes& mixes, const Bf16Vector& weight) {
  const int64_t rows = pass_.num_rows();
  float* x = x_.reserve(rows * hidden());
  collapse_trunk(operators_, config_.text, streams_.data(), mixes.pre.data(), rows, x);
  operators_.norm(x, weight, rows, static_cast<float>(config_.text.rms_norm_eps), x);
}

/// The trunk takes in the sub-layer's output y.
void BackboneModel::expand(const Mixes& mixes) {
  expand_trunk(operators_, config_.text, y_.data(), mixes, pass_.num_rows(), streams_.data());
}

void BackboneModel::run_layer(int64_t layer) {
  const auto& weights = weights_.layers[static_cast<size_t>(layer)];
  if (weights.engram) {
    const auto& ids = config_.text.engram_layer_ids;
    const auto slot = static_cast<size_t>(std::find(ids.begin(), ids.end(), layer) - ids.begin());
    engram_->forward(slot, *weights.engram, pass_, streams_.data());
  }
  // The input of the attention is collapsed with the previous sub-layer's `pre`.
  collapse_and_norm(ffn_mixes_, weights.attn_norm);
  attention_.extend_sources(layer, weights.attention, pass_, x_.data());
  if (layer == config_.text.first_consumer_layer && options_.replay == ReplayMode::kCompact) {
    drop_replayed_rows();
  }
  const int64_t rows = pass_.num_rows();
  if (rows == 0) {
    return;
  }
  if (draft_features_) {
    draft_features_->record(layer, pass_, streams_.data(), capture_);
  }
  hyper_connection_mixes(operators_, weights.hc_attn, config_.text, streams_.data(), rows, raw_mixes_,
                         attention_mixes_);
  float* y = y_.reserve(rows * hidden());
  attention_.forward(layer, weights.attention, pass_, x_.data(), y, capture_);
  expand(attention_mixes_);

  hyper_connection_mixes(operators_, weights.hc_ffn, config_.text, streams_.data(), rows, raw_mixes_,
                         ffn_mixes_);
  collapse_and_norm(attention_mixes_, weights.ffn_norm);
  moe_.forward(weights.moe, x_.data(), rows, config_.text.num_experts_per_tok, y);
  expand(ffn_mixes_);
  if (capture_ != nullptr) {
    record_routing(layer);
    record_streams(layer);
  }
}

/// Bounded replay, compact form: from here on only the last prompt tokens, later ones, and rows whose logits
/// are wanted go on.
void BackboneModel::drop_replayed_rows() {
  std::vector<int64_t> kept;
  for (size_t s = 0; s < pass_.places.size(); ++s) {
    const auto& place = pass_.places[s];
    const auto wanted = static_cast<int64_t>(pass_.segments[s].logits.size()) / vocab_size();
    const int64_t replayed = place.end - std::clamp(place.replay_from, place.start, place.end);
    kept.push_back(std::max(wanted, replayed));
  }
  pass_.keep_last(kept, [&](int64_t from, int64_t to) {
    std::memmove(streams_.data() + to * trunk_width(), streams_.data() + from * trunk_width(),
                 static_cast<size_t>(trunk_width()) * sizeof(float));
    std::memmove(x_.data() + to * hidden(), x_.data() + from * hidden(),
                 static_cast<size_t>(hidden()) * sizeof(float));
  });
  attention_.set_rows(pass_);
}

void BackboneModel::write_logits() {
  if (pass_.num_rows() == 0) {
    return;
  }
  // Collapse only what is asked for: the logits' rows are a suffix of each segment's rows.
  std::vector<int64_t> kept;
  for (const auto& segment : pass_.segments) {
    kept.push_back(static_cast<int64_t>(segment.logits.size()) / vocab_size());
  }
  auto& pre = ffn_mixes_.pre;
  const int64_t m = config_.text.hc_mult;
  pass_.keep_last(kept, [&](int64_t from, int64_t to) {
    std::memmove(streams_.data() + to * trunk_width(), streams_.data() + from * trunk_width(),
                 static_cast<size_t>(trunk_width()) * sizeof(float));
    std::memmove(pre.data() + to * m, pre.data() + from * m, static_cast<size_t>(m) * sizeof(float));
  });
  if (pass_.num_rows() == 0) {
    return;
  }
  collapse_and_norm(ffn_mixes_, weights_.norm);
  if (pass_.segments.size() == 1) {
    operators_.linear(weights_.head, x_.data(), pass_.num_rows(), pass_.segments[0].logits.data(),
                      OutputKind::kWide);
    return;
  }
  float* all = y_.reserve(pass_.num_rows() * vocab_size());
  operators_.linear(weights_.head, x_.data(), pass_.num_rows(), all, OutputKind::kWide);
  for (size_t s = 0; s < pass_.places.size(); ++s) {
    const auto& logits = pass_.segments[s].logits;
    std::copy_n(all + pass_.places[s].first_row * vocab_size(), logits.size(), logits.data());
  }
}

void BackboneModel::record_routing(int64_t layer) {
  if (!capture_->router) {
    return;
  }
  const int64_t k = config_.text.num_experts_per_tok;
  const int64_t layers = config_.text.num_hidden_layers;
  int64_t* experts = capture_->id_array("experts", {layers, capture_->num_positions, k});
  float* weights = capture_->float_array("expert_weights", {layers, capture_->num_positions, k});
  for (int64_t row = 0; row < pass_.num_rows(); ++row) {
    const int64_t at = (layer * capture_->num_positions + pass_.rows[static_cast<size_t>(row)].position) * k;
    std::copy_n(moe_.routing().experts.data() + row * k, k, experts + at);
    std::copy_n(moe_.routing().weights.data() + row * k, k, weights + at);
  }
}

void BackboneModel::record_streams(int64_t layer) {
  if (!capture_->hidden) {
    return;
  }
  float* streams = capture_->float_array(
      "streams", {config_.text.num_hidden_layers, capture_->num_positions, config_.text.hc_mult, hidden()});
  for (int64_t row = 0; row < pass_.num_rows(); ++row) {
    const int64_t at = layer * capture_->num_positions + pass_.rows[static_cast<size_t>(row)].position;
    std::copy_n(streams_.data() + row * trunk_width(), trunk_width(), streams + at * trunk_width());
  }
}

}  // namespace

Result<ReplayMode> parse_replay_mode(std::string_view name) {
  if (name == "off") {
    return ReplayMode::kOff;
  }
  if (name == "mask") {
    return ReplayMode::kMask;
  }
  if (name == "compact") {
    return ReplayMode::kCompact;
  }
  return fail(ErrorCode::kInvalidArgument, "replay '{}' is unknown; expected off, mask or compact", name);
}

Result<std::unique_ptr<Model>> Model::load(std::shared_ptr<const checkpoint::Checkpoint> checkpoint,
                                           const tokenizer::Tokenizer* tokenizer, ThreadPool& pool,
                                           const ModelOptions& options) {
  const auto& config = checkpoint->config().text;
  HADAL_CHECK(check_supported(config, options));
  HADAL_TRY(auto weights, bind_weights(*checkpoint));
  std::optional<DraftWeights> draft_weights;
  if (options.draft_length > 0) {
    HADAL_TRY(draft_weights, bind_draft_weights(*checkpoint));
  }
  std::optional<EngramHash> hash;
  if (!config.engram_layer_ids.empty()) {
    std::vector<int32_t> map;
    if (config.engram_compressed_vocab_size > 0) {
      if (tokenizer == nullptr) {
        return fail(ErrorCode::kInvalidArgument, "the Engram layers need the checkpoint's tokenizer.json");
      }
      HADAL_TRY(map, build_vocabulary_map(*tokenizer));
    }
    HADAL_TRY(hash, EngramHash::create(config, map));
  }
  return std::make_unique<BackboneModel>(std::move(checkpoint), std::move(weights), std::move(draft_weights),
                                         std::move(hash), pool, options);
}

}  // namespace hadal::model
