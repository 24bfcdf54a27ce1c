#pragma once
// All that a sequence needs to go on: compressed KV entries and index keys of each KV source layer, the
// sliding window of each layer, compressor tails, and the Engram context. Bytes only: which format the rows
// have is the model's business (docs/numerics.md).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/block_table.h"
#include "cache/memory_budget.h"
#include "cache/state_layout.h"

namespace hadal::cache {

/// The last `capacity` rows of a stream, addressed by absolute position.
class RowRing {
 public:
  RowRing(int64_t capacity, size_t row_bytes)
      : capacity_(capacity), row_bytes_(row_bytes), bytes_(static_cast<size_t>(capacity) * row_bytes) {}
  int64_t capacity() const { return capacity_; }
  size_t row_bytes() const { return row_bytes_; }
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

/// What a state at the end of a block holds besides its blocks: the windows that a snapshot keeps, `window`
/// rows each, oldest first. Rows before the beginning of the sequence are zero. Compressor tails are empty at
/// the end of a block. Immutable once made.
struct StateSnapshot {
  StateSnapshot(int64_t at, size_t bytes, std::shared_ptr<MemoryBudget> budget)
      : position(at), rows(bytes), charge(std::move(budget), bytes) {}
  int64_t position = 0;  ///< tokens before it
  std::vector<std::byte> rows;
  Charge charge;
};
/// Shared by the prefix tree and the disk tier.
using SnapshotPointer = std::shared_ptr<const StateSnapshot>;

/// The beginning of a sequence, from which a state can be made.
struct StatePrefix {
  std::vector<BlockPointer> blocks;  ///< complete ones; empty for a layout without sources
  std::vector<int32_t> context;      ///< Engram context, one id per token; empty for a model without Engram
  SnapshotPointer snapshot;          ///< at their end
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
  SequenceState(const SequenceState&) = delete;
  SequenceState& operator=(const SequenceState&) = delete;

  const StateLayout& layout() const { return layout_; }
  int64_t length() const { return length_; }
  int64_t replay_from() const { return replay_from_; }

  /// Counts the memory of this state against `budget`; to be called before anything is computed.
  void charge_to(std::shared_ptr<MemoryBudget> budget);

  /// Takes back the last tokens, so that the next forward pass starts at `length`. Allowed for at most
  /// max_rollback tokens after the last advance, and not into a prefix that the state was made from; false
  /// (and no change) otherwise.
  bool truncate(int64_t length);

  /// The greatest length at which a state may take over from a snapshot: under bounded replay what lies
  /// behind replay_from has to be computed for this very prompt. The layout's blocks must be aligned.
  bool can_start_from(int64_t length) const;
  /// Makes this state, of length 0, one of length prefix.snapshot->position, which goes on exactly like a
  /// state that has computed these tokens. Requires can_start_from() that length, and a prefix that was made
  /// with the same layout.
  void start_from(StatePrefix prefix);

  /// Whether snapshot(position) is possible: the end of a block, not further back than the windows reach.
  bool has_snapshot_at(int64_t position) const;
  SnapshotPointer snapshot(int64_t position) const;
  /// Blocks of this state; complete ones may be shared. Empty for a layout without sources.
  BlockTable& blocks() { return *table_; }
  const BlockTable& blocks() const { return *table_; }

  /// A second state that goes on from here by itself. Blocks are shared until one of the two writes them.
  std::unique_ptr<SequenceState> fork() const;

  /// Memory that the next `num_tokens` tokens take at most.
  uint64_t growth_bytes(int64_t num_tokens) const;

  // For the model.
  void advance(int64_t num_tokens);
  std::vector<Source>& sources() { return sources_; }
  std::vector<RowRing>& windows() { return windows_; }
  const std::vector<RowRing>& windows() const { return windows_; }
  std::vector<int32_t>& engram_context() { return engram_context_; }  ///< one compressed id per token so far
  const std::vector<int32_t>& engram_context() const { return engram_context_; }

  /// Bytes held in memory for this sequence, shared ones included.
  size_t allocated_bytes() const;

 private:
  size_t ring_bytes() const;

  StateLayout layout_;
  int64_t replay_from_;
  int64_t length_ = 0;
  int64_t longest_ = 0;   ///< greatest length since creation; rows past it were never written
  int64_t shortest_ = 0;  ///< where it started from; nothing before it can be taken back
  std::shared_ptr<MemoryBudget> budget_;
  std::unique_ptr<BlockTable> table_;  ///< at a fixed address, since the sources' stores point to it
  std::vector<Source> sources_;
  std::vector<RowRing> windows_;
  std::vector<int32_t> engram_context_;
  Charge ring_charge_;
};

}  // namespace hadal::cache
