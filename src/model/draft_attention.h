#pragma once
// Attention of a draft layer: the rows of a block see the main keys of the tokens before it and all keys of
// the block, in both directions (model.md section 15).

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/model_config.h"
#include "model/attention_projections.h"
#include "model/draft_model.h"
#include "model/operators.h"
#include "model/weights.h"

namespace hadal::model {

/// Blocks of one length, one a sequence. Row i * sequences + s is position i of sequence s's block.
struct DraftBlocks {
  std::span<const DraftSequence> sequences;
  int64_t length = 0;

  int64_t num_sequences() const { return static_cast<int64_t>(sequences.size()); }
  int64_t num_rows() const { return num_sequences() * length; }
  int64_t row(int64_t sequence, int64_t index) const { return index * num_sequences() + sequence; }
  /// The position in its sequence of a row of the batch.
  int64_t position(int64_t row) const {
    return sequences[static_cast<size_t>(row % num_sequences())].state->length() + row / num_sequences();
  }
};

class DraftAttention {
 public:
  DraftAttention(const checkpoint::TextConfig& config, kernels::RowFormat window_format,
                 Operators& operators);

  /// Prepares for blocks: rotations of all rows.
  void set_blocks(const DraftBlocks& blocks);

  /// y [rows, H] = attention of draft layer `layer` (0, 1, ...) for x [rows, H].
  void forward(int64_t layer, const AttentionWeights& weights, const DraftBlocks& blocks, const float* x,
               float* y);

 private:
  void gather_keys(int64_t layer, const DraftBlocks& blocks);

  const checkpoint::TextConfig& config_;
  const kernels::RowFormat format_;
  Operators& operators_;
  AttentionProjections projections_;
  std::vector<float> inverse_;
  Rotations rotations_;
  std::vector<int64_t> key_offsets_;  ///< [sequences + 1] first key of each sequence in keys_
  Buffer<float> packed_x_, keys_;
  Buffer<uint8_t> codes_;
};

}  // namespace hadal::model
