#pragma once
// What the attention of every layer has in common, wherever its keys come from: queries, window keys, the
// attention of a row's heads over a list of keys, and the output projection (model.md section 6).

#include <cstdint>
#include <span>

#include "checkpoint/model_config.h"
#include "model/buffer.h"
#include "model/operators.h"
#include "model/rope.h"
#include "model/weights.h"

namespace hadal::model {

/// Rotations of each row of a batch for one frequency table: [rows, half] each.
struct Rotations {
  Buffer<float> cosines;
  Buffer<float> sines;
  int64_t half = 0;
  const float* cos(int64_t row) const { return cosines.data() + row * half; }
  const float* sin(int64_t row) const { return sines.data() + row * half; }

  /// Computes those of rows 0 .. rows - 1; position_of(row) is a row's position.
  template <class PositionOf>
  void fill(const Operators& operators, std::span<const float> inverse, int64_t rows,
            PositionOf&& position_of);
};

/// Owns the intermediate rows of one attention at a time.
class AttentionProjections {
 public:
  AttentionProjections(const checkpoint::TextConfig& config, Operators& operators)
      : config_(config), operators_(operators) {}

  /// The rotated queries of `rows` rows; x is the packed attention input [rows, H].
  void make_queries(const AttentionWeights& weights, const Rotations& rotations, PackedRows x, int64_t rows);
  /// The normalized low-rank queries of the last make_queries, packed for wq_b.
  PackedRows low_rank_queries() const { return {packed_q_low_.data(), config_.q_lora_rank}; }

  /// Rotated window keys as they are cached: codes [rows, row_bytes(format, head_dim)]; x is packed for wkv.
  void make_keys(const AttentionWeights& weights, const Rotations& rotations, PackedRows x, int64_t rows,
                 kernels::RowFormat format, uint8_t* codes);

  /// Heads [first_head, first_head + num_heads) of `row` attend to keys [count, head_dim]. Any thread; heads
  /// and rows are independent of each other.
  void attend(const AttentionWeights& weights, const Rotations& rotations, int64_t row, int64_t first_head,
              int64_t num_heads, const float* keys, int64_t count);

  /// y [rows, H] from what attend() left.
  void project_output(const AttentionWeights& weights, int64_t rows, float* y);

 private:
  const checkpoint::TextConfig& config_;
  Operators& operators_;
  Buffer<float> q_low_, packed_q_low_, q_, kv_, context_, packed_context_, low_;
};

template <class PositionOf>
void Rotations::fill(const Operators& operators, std::span<const float> inverse, int64_t rows,
                     PositionOf&& position_of) {
  half = static_cast<int64_t>(inverse.size());
  float* all_cosines = cosines.reserve(rows * half);
  float* all_sines = sines.reserve(rows * half);
  operators.each_row(rows, half * 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      rope_rotation(position_of(row), inverse, all_cosines + row * half, all_sines + row * half);
    }
  });
}

}  // namespace hadal::model
