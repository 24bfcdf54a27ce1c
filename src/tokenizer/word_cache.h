#pragma once
// The tokens of short words that were encoded before.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "tokenizer/huge_page_allocator.h"
#include "tokenizer/word_key.h"

namespace hadal::tokenizer {

/// A fixed number of words of 1..15 bytes with at most three tokens each. A word has two places, side by side
/// in one cache line; of the words that share them the two used last are kept. Not for two threads at once.
class WordCache {
 public:
  static constexpr size_t kMaxTokens = 3;

  struct Entry {
    WordKey key;
    std::array<int32_t, kMaxTokens> ids;
    uint32_t count;
  };

  static size_t place(uint64_t key_hash) { return key_hash >> (64 - kBits); }

  /// Brings a place near, for a find() soon.
  void prefetch(size_t place) const { __builtin_prefetch(&lines_[place]); }

  /// The entry of a key at its place, or null.
  const Entry* find(size_t place, const WordKey& key) {
    Line& line = lines_[place];
    if (line.newer.key == key) {
      return &line.newer;
    }
    if (line.older.key == key) {
      std::swap(line.newer, line.older);
      return &line.newer;
    }
    return nullptr;
  }

  /// `ids` up to kMaxTokens.
  void insert(size_t place, const WordKey& key, std::span<const int32_t> ids) {
    Line& line = lines_[place];
    line.older = line.newer;
    line.newer.key = key;
    line.newer.count = static_cast<uint32_t>(ids.size());
    std::copy(ids.begin(), ids.end(), line.newer.ids.begin());
  }

 private:
  struct alignas(64) Line {
    Entry newer;
    Entry older;
  };
  static_assert(sizeof(Line) == 64);

  static constexpr uint32_t kBits = 14;
  HugePageVector<Line> lines_ = HugePageVector<Line>(size_t{1} << kBits);
};

}  // namespace hadal::tokenizer
