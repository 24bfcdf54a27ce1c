#include "model/attention_projections.h"

#include <algorithm>
#include <cmath>

#include "kernels/quantize.h"

namespace hadal::model {
namespace {

/// Attention scores of the calling thread.
Buffer<float>& score_scratch() {
  thread_local Buffer<float> scores;
  return scores;
}

}  // namespace

void AttentionProjections::make_queries(const AttentionWeights& weights, const Rotations& rotations,
                                        PackedRows x, int64_t rows) {
  const int64_t low = config_.q_lora_rank;
  const int64_t heads = config_.num_attention_heads;
  const int64_t dim = config_.head_dim;
  float* q_low = q_low_.reserve(rows * low);
  operators_.linear_packed(weights.wq_a, x, rows, q_low, low);
  operators_.norm(q_low, weights.q_norm, rows, static_cast<float>(config_.rms_norm_eps), q_low);
  const auto packed = operators_.pack(packed_q_low_, q_low, low, rows, low,
                                      operators_.precision().input_rounding(weights.wq_b.format));
  float* q = q_.reserve(rows * heads * dim);
  operators_.linear_packed(weights.wq_b, packed, rows, q, heads * dim);
  context_.reserve(rows * heads * dim);
  operators_.each_row(rows, heads * rotations.half * 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t h = 0; h < heads; ++h) {
        float* head = q + (row * heads + h) * dim;
        operators_.kernels().rope(head, dim, rotations.cos(row), rotations.sin(row), rotations.half, false);
        operators_.border(head, dim);
      }
    }
  });
}

void AttentionProjections::make_keys(const AttentionWeights& weights, const Rotations& rotations,
                                     PackedRows x, int64_t rows, kernels::RowFormat format, uint8_t* codes) {
  const int64_t dim = config_.head_dim;
  const int64_t bytes = kernels::row_bytes(format, dim);
  float* kv = kv_.reserve(rows * dim);
  operators_.linear_packed(weights.wkv, x, rows, kv, dim);
  operators_.norm(kv, weights.kv_norm, rows, static_cast<float>(config_.rms_norm_eps), kv);
  operators_.each_row(rows, dim * 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* key = kv + row * dim;
      operators_.kernels().rope(key, dim, rotations.cos(row), rotations.sin(row), rotations.half, false);
      operators_.border(key, dim);
      kernels::encode_row(format, key, dim, codes + row * bytes);
    }
  });
}

void AttentionProjections::attend(const AttentionWeights& weights, const Rotations& rotations, int64_t row,
                                  int64_t first_head, int64_t num_heads, const float* keys, int64_t count) {
  const int64_t heads = config_.num_attention_heads;
  const int64_t dim = config_.head_dim;
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));
  const int64_t score_stride = std::max<int64_t>((count + 15) / 16 * 16, 16);
  float* scores = score_scratch().reserve(num_heads * score_stride);
  float* out = context_.data() + (row * heads + first_head) * dim;
  operators_.kernels().attend(q_.data() + (row * heads + first_head) * dim, keys, count, num_heads, dim,
                              scale, weights.sinks.data() + first_head, scores, out);
  for (int64_t h = 0; h < num_heads; ++h) {
    operators_.border(out + h * dim, dim);
    operators_.kernels().rope(out + h * dim, dim, rotations.cos(row), rotations.sin(row), rotations.half,
                              true);
    operators_.border(out + h * dim, dim);
  }
}

void AttentionProjections::project_output(const AttentionWeights& weights, int64_t rows, float* y) {
  const int64_t groups = config_.o_groups;
  const int64_t rank = config_.o_lora_rank;
  const int64_t group_width = weights.wo_a.cols;
  const auto packed =
      operators_.pack(packed_context_, context_.data(), groups * group_width, rows, groups * group_width,
                      operators_.precision().input_rounding(weights.wo_a.format));
  float* low = low_.reserve(rows * groups * rank);
  for (int64_t g = 0; g < groups; ++g) {
    const auto part = rows_of(weights.wo_a, g * rank, rank);
    operators_.linear_packed(part, {packed.data + g * group_width, packed.stride}, rows, low + g * rank,
                             groups * rank, OutputKind::kWide);
  }
  operators_.linear(weights.wo_b, low, rows, y);
}

}  // namespace hadal::model
