#include "model/draft_features.h"

#include <algorithm>
#include <cstring>

namespace hadal::model {

DraftFeatures::DraftFeatures(const checkpoint::TextConfig& config, const DraftWeights& weights,
                             kernels::RowFormat window_format, Operators& operators)
    : config_(config),
      weights_(weights),
      format_(window_format),
      operators_(operators),
      num_targets_(static_cast<int64_t>(config.dspark_target_layer_ids.size())),
      projections_(config, operators),
      inverse_(plain_inverse_frequencies(config.qk_rope_head_dim, config.rope_theta)),
      equal_shares_(static_cast<size_t>(config.hc_mult), 1.0F / static_cast<float>(config.hc_mult)) {}

void DraftFeatures::begin(const Pass& pass) {
  kept_.clear();
  int64_t num_rows = 0;
  const auto first_draft = static_cast<size_t>(config_.num_hidden_layers);
  for (size_t s = 0; s < pass.places.size(); ++s) {
    const auto& place = pass.places[s];
    // A long chunk would overwrite its own first keys: only what fits the ring is made.
    const int64_t room = pass.segments[s].state->windows()[first_draft].capacity();
    const int64_t first = std::max(place.start, place.end - room);
    kept_.push_back({first, num_rows});
    num_rows += place.end - first;
  }
  features_.reserve(num_rows * num_targets_ * config_.hidden_size);
}

void DraftFeatures::record(int64_t layer, const Pass& pass, const float* streams, Capture* capture) {
  const auto& targets = config_.dspark_target_layer_ids;
  const auto found = std::find(targets.begin(), targets.end(), layer);
  if (found == targets.end()) {
    return;
  }
  const int64_t target = found - targets.begin();
  const int64_t hidden = config_.hidden_size;
  const int64_t m = config_.hc_mult;
  float* captured =
      capture != nullptr && capture->draft
          ? capture->float_array("target_features", {num_targets_, capture->num_positions, hidden})
          : nullptr;
  operators_.each_row(pass.num_rows(), m * hidden, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto& at = pass.rows[static_cast<size_t>(row)];
      const auto segment = static_cast<size_t>(at.segment);
      if (at.position < kept_[segment].first_position) {
        continue;
      }
      float* mean = feature(segment, at.position, target);
      operators_.kernels().hc_collapse(streams + row * m * hidden, equal_shares_.data(), m, hidden, mean);
      operators_.border(mean, hidden);
      if (captured != nullptr) {
        std::copy_n(mean, hidden, captured + (target * capture->num_positions + at.position) * hidden);
      }
    }
  });
}

/// Makes the features of the rows that went through all targets consecutive and lists them; returns how many.
int64_t DraftFeatures::close_gaps(const Pass& pass) {
  rows_.clear();
  const int64_t width = num_targets_ * config_.hidden_size;
  for (size_t s = 0; s < pass.places.size(); ++s) {
    const auto& place = pass.places[s];
    for (int64_t position = std::max(kept_[s].first_position, place.first_position()); position < place.end;
         ++position) {
      float* to = features_.data() + static_cast<int64_t>(rows_.size()) * width;
      const float* from = feature(s, position, 0);
      if (from != to) {
        std::memmove(to, from, static_cast<size_t>(width) * sizeof(float));
      }
      rows_.push_back({static_cast<int32_t>(s), position});
    }
  }
  return static_cast<int64_t>(rows_.size());
}

void DraftFeatures::store_keys(const Pass& pass) {
  const int64_t rows = close_gaps(pass);
  if (rows == 0) {
    return;
  }
  const int64_t hidden = config_.hidden_size;
  float* main = main_.reserve(rows * hidden);
  operators_.linear(weights_.main_proj, features_.data(), rows, main);
  operators_.norm(main, weights_.main_norm, rows, static_cast<float>(config_.rms_norm_eps), main);
  rotations_.fill(operators_, inverse_, rows,
                  [&](int64_t row) { return rows_[static_cast<size_t>(row)].position; });
  const int64_t bytes = kernels::row_bytes(format_, config_.head_dim);
  uint8_t* codes = codes_.reserve(rows * bytes);
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    const auto& attention = weights_.layers[i].attention;
    const auto packed = operators_.pack(packed_main_, main, hidden, rows, hidden,
                                        operators_.precision().input_rounding(attention.wkv.format));
    projections_.make_keys(attention, rotations_, packed, rows, format_, codes);
    const auto window = static_cast<size_t>(config_.num_hidden_layers) + i;
    for (int64_t row = 0; row < rows; ++row) {
      const auto& at = rows_[static_cast<size_t>(row)];
      std::memcpy(pass.state(at).windows()[window].row(at.position), codes + row * bytes,
                  static_cast<size_t>(bytes));
    }
  }
}

}  // namespace hadal::model
