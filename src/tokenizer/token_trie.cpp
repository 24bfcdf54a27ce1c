#include "tokenizer/token_trie.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hadal::tokenizer {

/// Places nodes level by level, so that the short tokens, which are used most, lie close together.
class TokenTrie::Builder {
 public:
  Builder(HugePageVector<Node>& nodes, const std::vector<TrieEntry>& entries)
      : nodes_(nodes), entries_(entries) {}

  bool run() {
    grow();
    std::vector<Range> open = {{kRoot, 0, static_cast<uint32_t>(entries_.size()), 0}};
    while (!open.empty()) {
      const Range range = open.back();
      open.pop_back();

      if (!place_children(range, open)) {
        return false;
      }
    }
    return true;
  }

 private:
  /// The entries below a node: [first, last) of the sorted list share `depth` bytes.
  struct Range {
    uint32_t node;
    uint32_t first;
    uint32_t last;
    uint32_t depth;
  };

  bool place_children(const Range& range, std::vector<Range>& next) {
    uint32_t first = range.first;
    // Sorted, so an entry that ends here comes first; it was taken when the node was placed.
    first += first < range.last && entries_[first].bytes.size() == range.depth ? 1 : 0;
    children_.clear();
    for (uint32_t at = first; at < range.last;) {
      const uint8_t byte = byte_at(at, range.depth);
      uint32_t last = at + 1;
      while (last < range.last && byte_at(last, range.depth) == byte) {
        ++last;
      }
      children_.push_back({byte, at, last});
      at = last;
    }
    if (children_.empty()) {
      nodes_[range.node].base = kLeafBase;
      return true;
    }
    const uint32_t base = find_base();
    if (base > kMaxBase) {
      return false;
    }
    nodes_[range.node].base = base & kMaxBase;
    base_used_[base] = true;
    for (const Child& child : children_) {
      const uint32_t slot = base ^ child.byte;
      Node& node = nodes_[slot];
      node.label = child.byte;
      ++used_[slot / kBlock];
      const TrieEntry& entry = entries_[child.first];
      if (entry.bytes.size() == range.depth + 1) {
        node.token = entry.token;
      }
      next.push_back({slot, child.first, child.last, range.depth + 1});
    }
    return true;
  }

  /// The first base for which all children's slots are free, looked for in the newest blocks only, so that
  /// the search stays short however full the older ones are.
  uint32_t find_base() {
    while (true) {
      for (uint32_t block = oldest_; block < used_.size(); ++block) {
        if (used_[block] + children_.size() > kBlock) {
          continue;
        }
        for (uint32_t low = 0; low < kBlock; ++low) {
          const uint32_t base = block * kBlock + low;
          if (!base_used_[base] && std::all_of(children_.begin(), children_.end(), [&](const Child& child) {
                return nodes_[base ^ child.byte].label == kFree;
              })) {
            return base;
          }
        }
        // A block that disappoints at 90 % is not worth another look.
        if (block == oldest_ && used_[block] * 10 > kBlock * 9) {
          ++oldest_;
        }
      }
      grow();
    }
  }

  void grow() {
    // Block 0 holds the root and no child of any node, so that the base kLeafBase answers to nothing.
    const size_t blocks = used_.empty() ? 2 : used_.size() + 1;
    nodes_.resize(blocks * kBlock, Node{kLeafBase, kFree, kNoToken});
    base_used_.resize(nodes_.size(), false);
    used_.resize(blocks, 0);
    oldest_ = std::max<uint32_t>(
        {oldest_, 1, static_cast<uint32_t>(blocks > kOpenBlocks ? blocks - kOpenBlocks : 1)});
  }

  uint8_t byte_at(uint32_t entry, uint32_t depth) const {
    return static_cast<uint8_t>(entries_[entry].bytes[depth]);
  }

  static constexpr uint32_t kMaxBase = (1U << 23) - 1;
  static constexpr uint32_t kLeafBase = 0;
  static constexpr size_t kOpenBlocks = 16;

  struct Child {
    uint8_t byte;
    uint32_t first;
    uint32_t last;
  };

  HugePageVector<Node>& nodes_;
  const std::vector<TrieEntry>& entries_;
  std::vector<Child> children_;
  std::vector<bool> base_used_;
  std::vector<uint32_t> used_;  ///< slots taken in each block
  uint32_t oldest_ = 1;         ///< first block where children are still placed
};

bool TokenTrie::build(std::vector<TrieEntry> entries) {
  size_t bytes = 0;
  for (const TrieEntry& entry : entries) {
    bytes += entry.bytes.size();
  }
  if (bytes > kMaxBytes) {
    return false;
  }
  std::sort(entries.begin(), entries.end(),
            [](const TrieEntry& a, const TrieEntry& b) { return a.bytes < b.bytes; });
  nodes_.clear();
  return Builder(nodes_, entries).run();
}

}  // namespace hadal::tokenizer
