#pragma once
// Sizes of a sequence's state, and how its rows are laid out in blocks.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hadal::cache {

/// Tokens that one block covers: the grain of sharing, and of positions at which a state can be kept.
inline constexpr int64_t kBlockTokens = 128;

/// Sizes of a state; the same for all sequences of one loaded model.
struct StateLayout {
  struct Source {
    int64_t ratio = 1;           ///< tokens per entry
    size_t entry_bytes = 0;      ///< one compressed KV entry
    size_t index_key_bytes = 0;  ///< one index key; 0 if this source has none
    size_t tail_bytes = 0;       ///< compressor inputs of one token; 0 for ratio 1
  };
  std::vector<Source> sources;  ///< one per KV source layer, in layer order
  int64_t num_layers = 0;       ///< layers with a sliding window: the backbone's, then draft layers in use
  int64_t window = 0;           ///< tokens that a query may see through it, itself included
  size_t window_row_bytes = 0;
  int64_t max_rollback = 0;  ///< tokens that truncate() can take back
  /// Under bounded replay: the first layer that computes the end of a prompt only. Its window and those
  /// after it begin at replay_from and are no part of a snapshot. Not set without bounded replay.
  std::optional<int64_t> first_replayed_layer = std::nullopt;
  /// A snapshot can be taken at a position up to so many tokens back. Costs window rows.
  int64_t snapshot_reach = 0;

  /// Whether a layer's window belongs to a snapshot.
  bool is_kept(int64_t layer) const { return !first_replayed_layer || layer < *first_replayed_layer; }
  /// Rows of a layer's window ring.
  int64_t ring_rows(int64_t layer) const {
    return window + (is_kept(layer) && snapshot_reach > max_rollback ? snapshot_reach : max_rollback);
  }
  /// Whether no group of any source crosses the border of a block, so that blocks can be shared.
  bool has_aligned_blocks() const;
  /// Windows and tails of one sequence.
  size_t ring_bytes() const;
  /// What a snapshot of a sequence keeps besides its blocks.
  size_t snapshot_bytes() const;
};

/// The layout of one block: for each source its index keys, then its entries, each padded to 32 bytes.
struct BlockShape {
  struct Region {
    int64_t rows = 0;
    size_t index_keys = 0;  ///< offset in the block
    size_t entries = 0;     ///< offset in the block
  };
  std::vector<Region> regions;  ///< one per source
  size_t bytes = 0;

  explicit BlockShape(const StateLayout& layout);
};

}  // namespace hadal::cache
