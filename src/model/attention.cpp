#include "model/attention.h"

#include <algorithm>
#include <cstring>

#include "kernels/quantize.h"
#include "model/rope.h"

namespace hadal::model {
namespace {

/// Rows from which on each row is one task; below, a row's heads are shared between threads.
constexpr int64_t kRowsPerThread = 2;
constexpr int64_t kHeadsPerTask = 8;
constexpr int64_t kKeysPerTask = 64;

/// Keys of one row, gathered by the calling thread.
Buffer<float>& key_scratch() {
  thread_local Buffer<float> keys;
  return keys;
}

}  // namespace

Attention::Attention(const checkpoint::TextConfig& config, const CacheMap& cache_map, Operators& operators)
    : config_(config),
      cache_map_(cache_map),
      operators_(operators),
      indexer_(config, cache_map, operators),
      projections_(config, operators) {
  plain_inverse_ = plain_inverse_frequencies(config.qk_rope_head_dim, config.rope_theta);
  compressed_inverse_ = config.rope_scaling
                            ? yarn_inverse_frequencies(config.qk_rope_head_dim, config.compress_rope_theta,
                                                       *config.rope_scaling)
                            : plain_inverse_frequencies(config.qk_rope_head_dim, config.compress_rope_theta);
}

void Attention::set_rows(const Pass& pass) {
  const auto position_of = [&](int64_t row) { return pass.rows[static_cast<size_t>(row)].position; };
  plain_.fill(operators_, plain_inverse_, pass.num_rows(), position_of);
  compressed_.fill(operators_, compressed_inverse_, pass.num_rows(), position_of);
}

// --- compressed entries ---------------------------------------------------------------------------------

void Attention::extend_sources(int64_t layer, const AttentionWeights& weights, const Pass& pass,
                               const float* x) {
  if (weights.compressor) {
    pool_groups(layer, weights, pass, x);
    encode_entries(layer, pass);
  }
  if (weights.index_key) {
    encode_index_keys(layer, *weights.index_key, pass);
  }
}

/// Fills new_groups_ and latents_ with the groups that this pass completes.
void Attention::pool_groups(int64_t layer, const AttentionWeights& weights, const Pass& pass,
                            const float* x) {
  const int64_t ratio = config_.compress_ratios[static_cast<size_t>(layer)];
  const int64_t dim = config_.head_dim;
  const int64_t rows = pass.num_rows();
  const auto& compressor = *weights.compressor;
  float* values = values_.reserve(rows * dim);
  float* gates = gates_.reserve(rows * dim);
  const auto packed = operators_.pack(packed_x_, x, config_.hidden_size, rows, config_.hidden_size,
                                      operators_.precision().input_rounding(compressor.wkv.format));
  operators_.linear_packed(compressor.wkv, packed, rows, values, dim,
                           ratio > 1 ? OutputKind::kWide : OutputKind::kBorder);
  if (compressor.wgate) {
    operators_.linear_packed(*compressor.wgate, packed, rows, gates, dim, OutputKind::kWide);
  }
  new_groups_.clear();
  for (size_t s = 0; s < pass.places.size(); ++s) {
    const auto& place = pass.places[s];
    for (int64_t group = place.start / ratio; group < place.end / ratio; ++group) {
      new_groups_.push_back({static_cast<int32_t>(s), group});
    }
  }
  const auto num_groups = static_cast<int64_t>(new_groups_.size());
  float* latents = latents_.reserve(std::max<int64_t>(num_groups, 1) * dim);
  const auto slot = static_cast<size_t>(cache_map_.entry_slot[static_cast<size_t>(layer)]);
  operators_.each_row(num_groups, dim * ratio * 8, [&](int64_t begin, int64_t end) {
    std::vector<const float*> value_rows(static_cast<size_t>(ratio));
    std::vector<const float*> gate_rows(static_cast<size_t>(ratio));
    for (int64_t i = begin; i < end; ++i) {
      const auto& group = new_groups_[static_cast<size_t>(i)];
      const auto& place = pass.places[static_cast<size_t>(group.segment)];
      auto& tail = pass.segments[static_cast<size_t>(group.segment)].state->sources()[slot].tail;
      float* latent = latents + i * dim;
      for (int64_t j = 0; j < ratio; ++j) {
        const int64_t position = group.group * ratio + j;
        if (position >= place.start) {
          const int64_t row = place.first_row + position - place.start;
          value_rows[static_cast<size_t>(j)] = values + row * dim;
          gate_rows[static_cast<size_t>(j)] = gates + row * dim;
        } else {
          // A tail row holds the value and the gate of one token, one after the other.
          const auto* kept = reinterpret_cast<const float*>(tail.row(position));
          value_rows[static_cast<size_t>(j)] = kept;
          gate_rows[static_cast<size_t>(j)] = kept + dim;
        }
      }
      if (ratio == 1) {
        std::memcpy(latent, value_rows[0], static_cast<size_t>(dim) * sizeof(float));
      } else {
        operators_.kernels().pool_group(value_rows.data(), gate_rows.data(), ratio, dim, latent);
        operators_.border(latent, dim);
      }
    }
  });
  operators_.norm(latents, compressor.norm, num_groups, static_cast<float>(config_.rms_norm_eps), latents);
  if (ratio == 1) {
    return;
  }
  for (size_t s = 0; s < pass.places.size(); ++s) {
    const auto& place = pass.places[s];
    auto& tail = pass.segments[s].state->sources()[slot].tail;
    for (int64_t position = std::max(place.start, place.end - tail.capacity()); position < place.end;
         ++position) {
      const int64_t row = place.first_row + position - place.start;
      auto* kept = reinterpret_cast<float*>(tail.row(position));
      std::memcpy(kept, values + row * dim, static_cast<size_t>(dim) * sizeof(float));
      std::memcpy(kept + dim, gates + row * dim, static_cast<size_t>(dim) * sizeof(float));
    }
  }
}

void Attention::rotate_group(int64_t ratio, const NewGroup& group, float* row, int64_t width) const {
  const auto half = static_cast<int64_t>(compressed_inverse_.size());
  std::vector<float> rotation(static_cast<size_t>(2 * half));
  rope_rotation(group.group * ratio, compressed_inverse_, rotation.data(), rotation.data() + half);
  operators_.kernels().rope(row, width, rotation.data(), rotation.data() + half, half, false);
  operators_.border(row, width);
}

void Attention::encode_entries(int64_t layer, const Pass& pass) {
  const int64_t ratio = config_.compress_ratios[static_cast<size_t>(layer)];
  const int64_t dim = config_.head_dim;
  const auto slot = static_cast<size_t>(cache_map_.entry_slot[static_cast<size_t>(layer)]);
  for (size_t s = 0; s < pass.places.size(); ++s) {
    pass.segments[s].state->sources()[slot].entries.resize(pass.places[s].end / ratio);
  }
  const auto num_groups = static_cast<int64_t>(new_groups_.size());
  float* rows = group_rows_.reserve(std::max<int64_t>(num_groups, 1) * dim);
  operators_.each_row(num_groups, dim * 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto& group = new_groups_[static_cast<size_t>(i)];
      float* row = rows + i * dim;
      std::memcpy(row, latents_.data() + i * dim, static_cast<size_t>(dim) * sizeof(float));
      rotate_group(ratio, group, row, dim);
      auto& entries = pass.segments[static_cast<size_t>(group.segment)].state->sources()[slot].entries;
      kernels::encode_row(cache_map_.entry_format, row, dim,
                          reinterpret_cast<uint8_t*>(entries.row(group.group)));
    }
  });
}

void Attention::encode_index_keys(int64_t layer, const IndexKeyWeights& weights, const Pass& pass) {
  const int64_t ratio = config_.compress_ratios[static_cast<size_t>(layer)];
  const int64_t dim = config_.index_head_dim;
  const auto slot = static_cast<size_t>(cache_map_.index_slot[static_cast<size_t>(layer)]);
  for (size_t s = 0; s < pass.places.size(); ++s) {
    pass.segments[s].state->sources()[slot].index_keys.resize(pass.places[s].end / ratio);
  }
  const auto num_groups = static_cast<int64_t>(new_groups_.size());
  if (num_groups == 0) {
    return;
  }
  float* rows = group_rows_.reserve(num_groups * dim);
  const auto packed =
      operators_.pack(packed_latents_, latents_.data(), config_.head_dim, num_groups, config_.head_dim,
                      operators_.precision().input_rounding(weights.wk.format));
  operators_.linear_packed(weights.wk, packed, num_groups, rows, dim);
  operators_.norm(rows, weights.norm, num_groups, static_cast<float>(config_.rms_norm_eps), rows);
  operators_.each_row(num_groups, dim * 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto& group = new_groups_[static_cast<size_t>(i)];
      rotate_group(ratio, group, rows + i * dim, dim);
      auto& keys = pass.segments[static_cast<size_t>(group.segment)].state->sources()[slot].index_keys;
      kernels::encode_row(cache_map_.index_format, rows + i * dim, dim,
                          reinterpret_cast<uint8_t*>(keys.row(group.group)));
    }
  });
}

// --- the layer ------------------------------------------------------------------------------------------

void Attention::forward(int64_t layer, const AttentionWeights& weights, const Pass& pass, const float* x,
                        float* y, Capture* capture) {
  const int64_t rows = pass.num_rows();
  const int64_t hidden = config_.hidden_size;
  const auto quantized = operators_.precision().input_rounding(weights.wq_a.format);
  const auto packed = operators_.pack(packed_x_, x, hidden, rows, hidden, quantized);
  projections_.make_queries(weights, rotations(layer), packed, rows);
  make_window_keys(layer, weights, pass, packed);
  if (weights.indexer) {
    const auto plain = operators_.precision().input_rounding(weights.indexer->weights_proj.format);
    const auto x_packed =
        plain == quantized ? packed : operators_.pack(packed_latents_, x, hidden, rows, hidden, plain);
    indexer_.select(layer, *weights.indexer, pass, rotations(layer), x_packed,
                    projections_.low_rank_queries(), capture);
  }
  attend(layer, weights, pass);
  store_window(layer, pass);
  projections_.project_output(weights, rows, y);
}

int64_t Attention::window_begin(int64_t layer, const SegmentRows& place, int64_t position) const {
  const int64_t first = std::max<int64_t>(position - config_.sliding_window + 1, 0);
  return layer >= config_.first_consumer_layer ? std::max(first, std::min(place.replay_from, position + 1))
                                               : first;
}

/// Quantized keys of the pass's own rows, and all window keys of each segment decoded and in order.
void Attention::make_window_keys(int64_t layer, const AttentionWeights& weights, const Pass& pass,
                                 PackedRows x) {
  const int64_t rows = pass.num_rows();
  const int64_t dim = config_.head_dim;
  const auto format = cache_map_.window_format;
  const int64_t bytes = kernels::row_bytes(format, dim);
  segment_windows_.clear();
  int64_t total = 0;
  for (const auto& place : pass.places) {
    const int64_t base = place.num_rows == 0 ? place.end
                                             : std::min(window_begin(layer, place, place.first_position()),
                                                        place.first_position());
    segment_windows_.push_back({base, total});
    total += place.end - base;
  }
  float* keys = window_keys_.reserve(std::max<int64_t>(total, 1) * dim);
  uint8_t* codes = window_rows_.reserve(rows * bytes);
  projections_.make_keys(weights, rotations(layer), x, rows, format, codes);
  const auto& kernels = operators_.kernels();
  operators_.each_row(rows, dim * 2, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto& at = pass.rows[static_cast<size_t>(row)];
      const auto& window = segment_windows_[static_cast<size_t>(at.segment)];
      kernels.decode_row(format, codes + row * bytes, dim,
                         keys + (window.offset + at.position - window.base) * dim);
    }
  });
  for (size_t s = 0; s < pass.places.size(); ++s) {
    const auto& place = pass.places[s];
    const auto& window = segment_windows_[s];
    const auto& ring = pass.segments[s].state->windows()[static_cast<size_t>(layer)];
    operators_.each_row(place.num_rows == 0 ? 0 : place.first_position() - window.base, dim * 2,
                        [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end; ++i) {
                            kernels.decode_row(format,
                                               reinterpret_cast<const uint8_t*>(ring.row(window.base + i)),
                                               dim, keys + (window.offset + i) * dim);
                          }
                        });
  }
}

void Attention::store_window(int64_t layer, const Pass& pass) {
  const int64_t bytes = kernels::row_bytes(cache_map_.window_format, config_.head_dim);
  for (size_t s = 0; s < pass.places.size(); ++s) {
    const auto& place = pass.places[s];
    auto& ring = pass.segments[s].state->windows()[static_cast<size_t>(layer)];
    for (int64_t position = std::max(place.first_position(), place.end - ring.capacity());
         position < place.end; ++position) {
      const int64_t row = place.first_row + position - place.first_position();
      std::memcpy(ring.row(position), window_rows_.data() + row * bytes, static_cast<size_t>(bytes));
    }
  }
}

int64_t Attention::num_keys(int64_t layer, const Pass& pass, int64_t row) const {
  const auto& at = pass.rows[static_cast<size_t>(row)];
  const int64_t window =
      at.position + 1 - window_begin(layer, pass.places[static_cast<size_t>(at.segment)], at.position);
  const bool compressed = config_.compress_ratios[static_cast<size_t>(layer)] > 0;
  return window + (compressed ? static_cast<int64_t>(indexer_.selected(row).size()) : 0);
}

/// Keys begin .. end - 1 of a row's list: window keys in order of position, then its selected entries.
void Attention::gather_keys(int64_t layer, const Pass& pass, int64_t row, int64_t begin, int64_t end,
                            float* keys) const {
  const int64_t dim = config_.head_dim;
  const auto& at = pass.rows[static_cast<size_t>(row)];
  const auto& place = pass.places[static_cast<size_t>(at.segment)];
  const auto& window = segment_windows_[static_cast<size_t>(at.segment)];
  const int64_t first = window_begin(layer, place, at.position);
  const int64_t in_window = at.position + 1 - first;
  const int64_t window_end = std::min(end, in_window);
  if (begin < window_end) {
    std::memcpy(keys, window_keys_.data() + (window.offset + first + begin - window.base) * dim,
                static_cast<size_t>((window_end - begin) * dim) * sizeof(float));
  }
  if (end <= in_window) {
    return;
  }
  const auto& entries = pass.state(at)
                            .sources()[static_cast<size_t>(cache_map_.entry_slot[static_cast<size_t>(layer)])]
                            .entries;
  const auto& selected = indexer_.selected(row);
  for (int64_t i = std::max(begin, in_window); i < end; ++i) {
    const int32_t group = selected[static_cast<size_t>(i - in_window)];
    operators_.kernels().decode_row(cache_map_.entry_format,
                                    reinterpret_cast<const uint8_t*>(entries.row(group)), dim,
                                    keys + (i - begin) * dim);
  }
}

void Attention::attend(int64_t layer, const AttentionWeights& weights, const Pass& pass) {
  const int64_t rows = pass.num_rows();
  const int64_t heads = config_.num_attention_heads;
  const int64_t dim = config_.head_dim;
  const auto& rotation = rotations(layer);
  if (rows >= kRowsPerThread * operators_.pool().num_threads()) {
    operators_.pool().parallel_for(rows, [&](int64_t row) {
      const int64_t count = num_keys(layer, pass, row);
      float* keys = key_scratch().reserve(std::max<int64_t>(count, 1) * dim);
      gather_keys(layer, pass, row, 0, count, keys);
      projections_.attend(weights, rotation, row, 0, heads, keys, count);
    });
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t count = num_keys(layer, pass, row);
    float* keys = gathered_.reserve(std::max<int64_t>(count, 1) * dim);
    operators_.pool().parallel_for((count + kKeysPerTask - 1) / kKeysPerTask, [&](int64_t task) {
      const int64_t begin = task * kKeysPerTask;
      gather_keys(layer, pass, row, begin, std::min(begin + kKeysPerTask, count), keys + begin * dim);
    });
    operators_.pool().parallel_for((heads + kHeadsPerTask - 1) / kHeadsPerTask, [&](int64_t task) {
      const int64_t first = task * kHeadsPerTask;
      projections_.attend(weights, rotation, row, first, std::min(kHeadsPerTask, heads - first), keys, count);
    });
  }
}

}  // namespace hadal::model
