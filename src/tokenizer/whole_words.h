#pragma once
// Short words that are one token.

#include <cstdint>

#include "tokenizer/huge_page_allocator.h"
#include "tokenizer/word_key.h"

namespace hadal::tokenizer {

/// A flat hash table from words of up to 15 bytes to their token. A lookup takes one access to memory in most
/// cases, so that a word that is met for the first time is cheap if it is a token.
class WholeWords {
 public:
  static constexpr int32_t kNone = -1;

  /// `capacity` words will be inserted at most.
  explicit WholeWords(size_t capacity = 0) {
    while (size_t{1} << bits_ < capacity * 2) {
      ++bits_;
    }
    entries_.resize(size_t{1} << bits_);
  }

  void insert(const WordKey& key, int32_t token) { entries_[locate(key)] = {key, token}; }

  void prefetch(const WordKey& key) const { __builtin_prefetch(&entries_[key.hash() >> (64 - bits_)]); }

  int32_t find(const WordKey& key) const { return entries_[locate(key)].token; }

 private:
  struct Entry {
    WordKey key;
    int32_t token = kNone;
  };

  size_t locate(const WordKey& key) const {
    size_t at = key.hash() >> (64 - bits_);
    while (entries_[at].token != kNone && entries_[at].key != key) {
      at = (at + 1) & (entries_.size() - 1);
    }
    return at;
  }

  uint32_t bits_ = 4;
  HugePageVector<Entry> entries_;
};

}  // namespace hadal::tokenizer
