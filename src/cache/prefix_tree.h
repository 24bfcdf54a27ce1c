#pragma once
// Beginnings of sequences that are kept in memory, as a tree of blocks. A state can be made at those nodes
// that have a snapshot; every leaf has one, so that no block is kept which nothing can use.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cache/memory_budget.h"
#include "cache/prefix_key.h"
#include "cache/sequence_state.h"

namespace hadal::cache {

/// One block as it is kept.
struct PrefixBlock {
  PrefixKey key;                               ///< of the sequence up to its end
  std::array<int32_t, kBlockTokens> tokens{};  ///< compared on every hit
  std::vector<int32_t> context;                ///< Engram ids of its tokens; empty without Engram
  BlockPointer block;                          ///< null for a layout without sources
};

/// What one insertion adds: the blocks since the last snapshot before it, and the new snapshot.
struct PrefixSegment {
  PrefixKey parent;  ///< the key before its first block
  int64_t first_block = 0;
  std::vector<PrefixBlock> blocks;
  SnapshotPointer snapshot;
  const PrefixKey& key() const { return blocks.back().key; }
};

/// Not thread-safe.
class PrefixTree {
 public:
  /// `block_bytes`: of one block of the layout. Nodes count against the budget too.
  PrefixTree(std::shared_ptr<MemoryBudget> budget, size_t block_bytes)
      : budget_(std::move(budget)), block_bytes_(block_bytes) {}
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  struct Match {
    int64_t usable = 0;   ///< tokens up to the longest snapshot, at most `limit`
    int64_t present = 0;  ///< tokens up to the last block that is here, at most `limit`
  };
  /// The longest beginning of `tokens` that is kept. `keys` are those of `tokens`.
  Match match(PrefixKeys& keys, std::span<const int32_t> tokens, int64_t limit) const;

  /// A prefix of `length` tokens, where match() has found a snapshot, to start a state from. Counts as a use.
  StatePrefix take(PrefixKeys& keys, std::span<const int32_t> tokens, int64_t length);

  /// Whether there is a snapshot at `length`.
  bool has_snapshot(PrefixKeys& keys, std::span<const int32_t> tokens, int64_t length) const;

  /// Keeps the beginning of `length` tokens of a state that has a snapshot there. Blocks that are here
  /// already are put in the place of the state's equal ones. `tokens` are those of the state. Returns what
  /// is new; requires that there is no snapshot yet.
  PrefixSegment insert(PrefixKeys& keys, std::span<const int32_t> tokens, int64_t length,
                       SequenceState& state);

  /// Keeps a segment that comes from elsewhere; false if the block before it is not here.
  bool insert(const PrefixSegment& segment, const PrefixKey& root);

  /// Drops what is worth least: recomputed tokens per byte, divided by the time since its last use. Takes
  /// leaves that no running sequence holds, and if there are none, snapshots. Returns false if there was
  /// nothing to drop.
  bool evict();
  void clear();
  /// What evict() can free in the end: everything that nobody else holds.
  uint64_t evictable_bytes() const;
  /// Upper bound of what one insertion of `num_blocks` new blocks takes besides the blocks.
  static uint64_t node_bytes(int64_t num_blocks) {
    return static_cast<uint64_t>(num_blocks) * (sizeof(Node) + kBlockTokens * sizeof(int32_t));
  }

  int64_t num_blocks() const { return static_cast<int64_t>(nodes_.size()); }
  int64_t num_snapshots() const { return static_cast<int64_t>(marked_.size()); }
  uint64_t evictions() const { return evictions_; }

 private:
  struct Node {
    PrefixBlock content;
    Node* parent = nullptr;
    int64_t depth = 0;  ///< blocks up to its end
    int64_t num_children = 0;
    SnapshotPointer snapshot;
    uint64_t last_use = 0;
    Charge charge;
  };
  Node* find(const PrefixKey& key, std::span<const int32_t> tokens, int64_t depth) const;
  Node* add(PrefixBlock block, Node* parent);
  void mark(Node& node, SnapshotPointer snapshot);
  void drop_snapshot(Node& node);
  void prune(Node* node);
  static bool is_held(const Node& node) { return node.content.block && node.content.block.use_count() > 1; }
  double value(const Node& node, bool with_blocks) const;

  std::shared_ptr<MemoryBudget> budget_;
  const size_t block_bytes_;
  std::unordered_map<PrefixKey, std::unique_ptr<Node>> nodes_;
  std::unordered_set<Node*> marked_;  ///< nodes with a snapshot
  uint64_t now_ = 0;                  ///< counts uses: time without a clock
  uint64_t evictions_ = 0;
};

}  // namespace hadal::cache
