#pragma once
// All that a sequence needs to go on: compressed KV entries and index keys of each KV source layer, the
// sliding window of each layer, compressor tails, and the Engram context. Bytes only: which format the rows
// have is the model's business (docs/numerics.md).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hadal::cache {

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
};

/// Rows of equal size, appended one after the other, in blocks that never move. Row i of a block-aligned
/// run is followed directly by row i + 1 up to the block's end.
class RowStore {
 public:
  static constexpr int64_t kBlockRows = 128;

  explicit RowStore(size_t row_bytes) : row_bytes_(row_bytes) {}
  int64_t size() const { return size_; }
  size_t row_bytes() const { return row_bytes_; }
  const std::byte* row(int64_t index) const { return block(index) + (index % kBlockRows) * row_bytes_; }
  std::byte* row(int64_t index) { return block(index) + (index % kBlockRows) * row_bytes_; }
  /// Makes the store `size` rows long; new rows are uninitialized, rows past the new end are dropped.
  void resize(int64_t size);
  size_t allocated_bytes() const { return blocks_.size() * kBlockRows * row_bytes_; }

 private:
  std::byte* block(int64_t index) const { return blocks_[static_cast<size_t>(index / kBlockRows)].get(); }
  size_t row_bytes_;
  int64_t size_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

/// The last `capacity` rows of a stream, addressed by absolute position.
class RowRing {
 public:
  RowRing(int64_t capacity, size_t row_bytes)
      : capacity_(capacity), row_bytes_(row_bytes), bytes_(static_cast<size_t>(capacity) * row_bytes) {}
  int64_t capacity() const { return capacity_; }
  std::byte* row(int64_t position) {
    return bytes_.data() + static_cast<size_t>(position % capacity_) * row_bytes_;
  }
  const std::byte* row(int64_t position) const {
    return bytes_.data() + static_cast<size_t>(position % capacity_) * row_bytes_;
  }
  size_t allocated_bytes() const { return bytes_.size(); }

 private:
  int64_t capacity_;
  size_t row_bytes_;
  std::vector<std::byte> bytes_;
};

/// The state of one sequence. Written by the model's forward pass, one pass at a time; owned by whoever runs
/// the sequence. Not thread-safe.
class SequenceState {
 public:
  struct Source {
    RowStore entries;
    RowStore index_keys;
    RowRing tail;  ///< compressor inputs of the last tokens, by position
  };

  /// `replay_from`: first prompt position that the decoder half computes under bounded replay (0 without).
  SequenceState(const StateLayout& layout, int64_t replay_from);

  int64_t length() const { return length_; }
  int64_t replay_from() const { return replay_from_; }

  /// Takes back the last tokens, so that the next forward pass starts at `length`. Allowed for at most
  /// max_rollback tokens after the last advance; false (and no change) otherwise.
  bool truncate(int64_t length);

  // For the model.
  void advance(int64_t num_tokens);
  std::vector<Source>& sources() { return sources_; }
  std::vector<RowRing>& windows() { return windows_; }
  const std::vector<RowRing>& windows() const { return windows_; }
  std::vector<int32_t>& engram_context() { return engram_context_; }  ///< one compressed id per token so far
  const std::vector<int32_t>& engram_context() const { return engram_context_; }

  /// Bytes held in memory for this sequence.
  size_t allocated_bytes() const;

 private:
  std::vector<int64_t> ratios_;
  int64_t max_rollback_;
  int64_t replay_from_;
  int64_t length_ = 0;
  int64_t longest_ = 0;  ///< greatest length since creation; rows past it were never written
  std::vector<Source> sources_;
  std::vector<RowRing> windows_;
  std::vector<int32_t> engram_context_;
};

}  // namespace hadal::cache
