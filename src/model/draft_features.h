#pragma once
// What the draft layers know of the tokens before a block: keys that are made from hidden states of some
// backbone layers while these run (model.md section 15, "target features" and "main keys").

#include <cstdint>
#include <vector>

#include "checkpoint/model_config.h"
#include "model/attention_projections.h"
#include "model/buffer.h"
#include "model/capture.h"
#include "model/operators.h"
#include "model/pass.h"
#include "model/weights.h"

namespace hadal::model {

/// Used in this order in each pass: begin, record for every layer, store_keys.
class DraftFeatures {
 public:
  DraftFeatures(const checkpoint::TextConfig& config, const DraftWeights& weights,
                kernels::RowFormat window_format, Operators& operators);

  /// Which rows of the pass may still be in a draft window after it.
  void begin(const Pass& pass);

  /// Keeps what is needed of the trunk [rows, m, H] in front of `layer`'s attention; does nothing for layers
  /// that are no targets. Rows may have been dropped since begin().
  void record(int64_t layer, const Pass& pass, const float* streams, Capture* capture);

  /// Writes the main keys of the pass's rows to the draft windows of the states: windows()[L + i] for draft
  /// layer i behind L backbone layers. To be called when all layers have run.
  void store_keys(const Pass& pass);

 private:
  struct Kept {
    int64_t first_position = 0;  ///< features are kept from this position to the segment's end
    int64_t first_row = 0;       ///< row of that position in features_
  };

  float* feature(size_t segment, int64_t position, int64_t target) {
    const auto& kept = kept_[segment];
    const int64_t row = kept.first_row + position - kept.first_position;
    return features_.data() + (row * num_targets_ + target) * config_.hidden_size;
  }
  int64_t close_gaps(const Pass& pass);

  const checkpoint::TextConfig& config_;
  const DraftWeights& weights_;
  const kernels::RowFormat format_;
  Operators& operators_;
  const int64_t num_targets_;
  AttentionProjections projections_;
  std::vector<float> inverse_;
  std::vector<float> equal_shares_;  ///< 1/m for each of the m streams
  std::vector<Kept> kept_;           ///< one a segment
  std::vector<Row> rows_;            ///< of features_ after close_gaps()
  Rotations rotations_;
  Buffer<float> features_, main_, packed_main_;
  Buffer<uint8_t> codes_;
};

}  // namespace hadal::model
