#pragma once
// Attention of one layer: sliding window, compressed entries, indexer (model.md sections 6 to 8).

#include <cstdint>
#include <vector>

#include "checkpoint/model_config.h"
#include "model/attention_projections.h"
#include "model/buffer.h"
#include "model/capture.h"
#include "model/indexer.h"
#include "model/operators.h"
#include "model/pass.h"
#include "model/weights.h"

namespace hadal::model {

/// Which slot of cache::SequenceState::sources() serves a layer, and how rows are stored.
struct CacheMap {
  std::vector<int64_t> entry_slot;  ///< per layer: source of its compressed entries, -1 without
  std::vector<int64_t> index_slot;  ///< per layer: source of its index keys, -1 without
  kernels::RowFormat window_format = kernels::RowFormat::kFp8;
  kernels::RowFormat entry_format = kernels::RowFormat::kFp4Kv;
  kernels::RowFormat index_format = kernels::RowFormat::kFp4Index;
};

class Attention {
 public:
  Attention(const checkpoint::TextConfig& config, const CacheMap& cache_map, Operators& operators);

  /// Prepares for a forward pass, and again after rows were dropped: rotations of all rows.
  void set_rows(const Pass& pass);

  /// Extends the compressed entries and index keys that `layer` owns by the groups which the pass completes.
  /// x [rows, H] is the layer's attn_norm output for every row of every segment.
  void extend_sources(int64_t layer, const AttentionWeights& weights, const Pass& pass, const float* x);

  /// y [rows, H] = attention of the pass's rows, x [rows, H]. Writes the layer's window keys to the states.
  /// Layers must be called in order: a layer without an indexer reuses the last selection.
  void forward(int64_t layer, const AttentionWeights& weights, const Pass& pass, const float* x, float* y,
               Capture* capture);

 private:
  struct NewGroup {
    int32_t segment = 0;
    int64_t group = 0;
  };
  struct SegmentWindow {
    int64_t base = 0;    ///< position of the first decoded key
    int64_t offset = 0;  ///< its row in window_keys_
  };

  const Rotations& rotations(int64_t layer) const {
    return config_.compress_ratios[static_cast<size_t>(layer)] > 0 ? compressed_ : plain_;
  }
  void pool_groups(int64_t layer, const AttentionWeights& weights, const Pass& pass, const float* x);
  void encode_entries(int64_t layer, const Pass& pass);
  void encode_index_keys(int64_t layer, const IndexKeyWeights& weights, const Pass& pass);
  void rotate_group(int64_t ratio, const NewGroup& group, float* row, int64_t width) const;
  void make_window_keys(int64_t layer, const AttentionWeights& weights, const Pass& pass, PackedRows x);
  void store_window(int64_t layer, const Pass& pass);
  void attend(int64_t layer, const AttentionWeights& weights, const Pass& pass);
  int64_t window_begin(int64_t layer, const SegmentRows& place, int64_t position) const;
  void gather_keys(int64_t layer, const Pass& pass, int64_t row, int64_t begin, int64_t end,
                   float* keys) const;
  int64_t num_keys(int64_t layer, const Pass& pass, int64_t row) const;

  const checkpoint::TextConfig& config_;
  const CacheMap& cache_map_;
  Operators& operators_;
  Indexer indexer_;
  AttentionProjections projections_;
  std::vector<float> plain_inverse_;
  std::vector<float> compressed_inverse_;
  Rotations plain_;
  Rotations compressed_;

  std::vector<NewGroup> new_groups_;
  Buffer<float> values_, gates_, latents_, group_rows_, packed_latents_;
  Buffer<float> packed_x_, window_keys_;
  Buffer<uint8_t> window_rows_;
  std::vector<SegmentWindow> segment_windows_;
  Buffer<float> gathered_;
};

}  // namespace hadal::model
