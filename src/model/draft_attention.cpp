#include "model/draft_attention.h"

#include <algorithm>

namespace hadal::model {
namespace {

constexpr int64_t kHeadsPerTask = 8;

}  // namespace

DraftAttention::DraftAttention(const checkpoint::TextConfig& config, kernels::RowFormat window_format,
                               Operators& operators)
    : config_(config),
      format_(window_format),
      operators_(operators),
      projections_(config, operators),
      inverse_(plain_inverse_frequencies(config.qk_rope_head_dim, config.rope_theta)) {}

void DraftAttention::set_blocks(const DraftBlocks& blocks) {
  rotations_.fill(operators_, inverse_, blocks.num_rows(), [&](int64_t row) { return blocks.position(row); });
  key_offsets_.assign(1, 0);
  for (const auto& sequence : blocks.sequences) {
    const int64_t main_keys = std::min(sequence.state->length(), config_.sliding_window);
    key_offsets_.push_back(key_offsets_.back() + main_keys + blocks.length);
  }
}

/// Decodes the keys of each sequence: its main keys by position, then those of its block.
void DraftAttention::gather_keys(int64_t layer, const DraftBlocks& blocks) {
  const int64_t dim = config_.head_dim;
  const int64_t bytes = kernels::row_bytes(format_, dim);
  const auto window = static_cast<size_t>(config_.num_hidden_layers + layer);
  float* keys = keys_.reserve(key_offsets_.back() * dim);
  for (int64_t s = 0; s < blocks.num_sequences(); ++s) {
    const auto& state = *blocks.sequences[static_cast<size_t>(s)].state;
    const int64_t offset = key_offsets_[static_cast<size_t>(s)];
    const int64_t count = key_offsets_[static_cast<size_t>(s) + 1] - offset;
    const int64_t main_keys = count - blocks.length;
    operators_.each_row(count, dim * 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const uint8_t* code = i < main_keys ? reinterpret_cast<const uint8_t*>(
                                                  state.windows()[window].row(state.length() - main_keys + i))
                                            : codes_.data() + blocks.row(s, i - main_keys) * bytes;
        operators_.kernels().decode_row(format_, code, dim, keys + (offset + i) * dim);
      }
    });
  }
}

void DraftAttention::forward(int64_t layer, const AttentionWeights& weights, const DraftBlocks& blocks,
                             const float* x, float* y) {
  const int64_t rows = blocks.num_rows();
  const int64_t heads = config_.num_attention_heads;
  const auto packed = operators_.pack(packed_x_, x, config_.hidden_size, rows, config_.hidden_size,
                                      operators_.precision().input_rounding(weights.wq_a.format));
  projections_.make_queries(weights, rotations_, packed, rows);
  uint8_t* codes = codes_.reserve(rows * kernels::row_bytes(format_, config_.head_dim));
  projections_.make_keys(weights, rotations_, packed, rows, format_, codes);
  gather_keys(layer, blocks);
  const int64_t parts = (heads + kHeadsPerTask - 1) / kHeadsPerTask;
  operators_.pool().parallel_for(rows * parts, [&](int64_t task) {
    const int64_t row = task / parts;
    const int64_t first_head = task % parts * kHeadsPerTask;
    const auto sequence = static_cast<size_t>(row % blocks.num_sequences());
    const int64_t offset = key_offsets_[sequence];
    projections_.attend(weights, rotations_, row, first_head, std::min(kHeadsPerTask, heads - first_head),
                        keys_.data() + offset * config_.head_dim, key_offsets_[sequence + 1] - offset);
  });
  projections_.project_output(weights, rows, y);
}

}  // namespace hadal::model
