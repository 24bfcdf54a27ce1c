#pragma once
// The tokens as a trie over their bytes, for "which is the longest token that the text starts with?".

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/huge_page_allocator.h"

namespace hadal::tokenizer {

struct TrieEntry {
  std::string_view bytes;  ///< not empty, unique
  int32_t token;
};

/// A double array: the child of a node by byte b is slot (base of the node) XOR b, valid if that slot says b.
/// No two nodes share a base, so the label alone proves the parent. Eight bytes a node, four times as compact
/// as child lists and one memory access a byte.
class TokenTrie {
 public:
  static constexpr int32_t kNoToken = -1;
  /// With more bytes of tokens than this, build() refuses: the offsets would not fit.
  static constexpr size_t kMaxBytes = size_t{1} << 22;

  TokenTrie() = default;

  /// False if the entries are too large together.
  bool build(std::vector<TrieEntry> entries);

  struct Found {
    int32_t token;    ///< kNoToken if not even the first byte is a token
    uint32_t length;  ///< its bytes
  };

  /// The longest token that [at, end) starts with. Counts the nodes it visits in `steps`.
  Found longest(const char* at, const char* end, uint64_t& steps) const {
    Found found{kNoToken, 0};
    const char* const begin = at;
    uint32_t base = nodes_[kRoot].base;
    while (at != end) {
      const auto byte = static_cast<uint8_t>(*at);
      const Node& node = nodes_[base ^ byte];
      if (node.label != byte) {
        break;
      }
      ++at;
      if (node.token != kNoToken) {
        found = {node.token, static_cast<uint32_t>(at - begin)};
      }
      base = node.base;
    }
    steps += static_cast<uint64_t>(at - begin);
    return found;
  }

 private:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kFree = 0x1FF;  ///< a label that no byte equals
  static constexpr uint32_t kBlock = 256;

  struct Node {
    uint32_t base : 23;
    uint32_t label : 9;
    int32_t token;
  };
  static_assert(sizeof(Node) == 8);

  class Builder;
  HugePageVector<Node> nodes_;
};

}  // namespace hadal::tokenizer
