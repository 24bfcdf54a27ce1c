#pragma once
// The merges of a byte-pair encoding: which two neighbouring tokens become which one, and how early.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tokenizer/huge_page_allocator.h"

namespace hadal::tokenizer {

/// Ids of tokens lie below this, so that a damaged file cannot ask for tables of any size. (DeepSeek-V4:
/// 129,280.)
inline constexpr int32_t kMaxVocabSize = 1 << 20;
/// At most this many merges.
inline constexpr size_t kMaxMerges = (size_t{1} << 24) - 2;

/// A flat hash table from pairs of token ids to the rank of their merge, eight bytes a slot, with a bit
/// filter in front, since most pairs that are asked for do not merge.
class MergeTable {
 public:
  static constexpr int32_t kNone = INT32_MAX;

  /// `capacity` merges will be inserted at most.
  explicit MergeTable(size_t capacity = 0) {
    while ((size_t{1} << bits_) < capacity * 2) {
      ++bits_;
    }
    slots_.resize(size_t{1} << bits_, kEmpty);
    filter_.resize(slots_.size() * kFilterBitsPerSlot / 64);
    tokens_.reserve(capacity);
  }

  /// Adds the merge of the next rank; ranks count from 0. Returns false if the pair is already there.
  bool add(int32_t left, int32_t right, int32_t token) {
    const uint64_t pair = key(left, right);
    const uint64_t hash = pair * kMultiplier;
    size_t at = hash >> (64 - bits_);
    while (slots_[at] != kEmpty) {
      if (slots_[at] >> kRankBits == pair) {
        return false;
      }
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = pair << kRankBits | tokens_.size();
    consecutive_ = consecutive_ && (tokens_.empty() || token == tokens_.back() + 1);
    tokens_.push_back(token);
    const uint64_t bit = filter_bit(hash);
    filter_[bit / 64] |= uint64_t{1} << bit % 64;
    return true;
  }

  /// The rank of two neighbours (the lower, the earlier they merge), or kNone.
  int32_t rank(int32_t left, int32_t right) const {
    const uint64_t pair = key(left, right);
    const uint64_t hash = pair * kMultiplier;
    const uint64_t bit = filter_bit(hash);
    return (filter_[bit / 64] >> bit % 64 & 1) == 0 ? kNone : rank_at(pair, hash >> (64 - bits_));
  }

  /// The same without the filter, for pairs that merge as often as not, and after a prefetch(): where the
  /// memory has been asked early, one access is better than two.
  int32_t rank_of_likely(int32_t left, int32_t right) const {
    const uint64_t pair = key(left, right);
    return rank_at(pair, pair * kMultiplier >> (64 - bits_));
  }
  void prefetch(int32_t left, int32_t right) const {
    __builtin_prefetch(&slots_[key(left, right) * kMultiplier >> (64 - bits_)]);
  }

  /// What the merge of a rank makes. Training numbers tokens in the order of their merges; then no table is
  /// needed.
  int32_t token(int32_t rank) const {
    return consecutive_ ? tokens_.front() + rank : tokens_[static_cast<size_t>(rank)];
  }

 private:
  static constexpr uint32_t kRankBits = 24;
  static constexpr uint64_t kMaxRank = (uint64_t{1} << kRankBits) - 1;
  static_assert(kMaxMerges <= kMaxRank && kMaxVocabSize <= 1 << 20, "two ids and a rank share 64 bits");
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // the rank in it is above kMaxMerges
  static constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15U;
  static constexpr uint32_t kFilterBitsPerSlot = 8;

  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 20 | static_cast<uint32_t>(right);
  }
  int32_t rank_at(uint64_t pair, size_t at) const {
    while (slots_[at] != kEmpty) {
      if (slots_[at] >> kRankBits == pair) {
        return static_cast<int32_t>(slots_[at] & kMaxRank);
      }
      at = (at + 1) & (slots_.size() - 1);
    }
    return kNone;
  }
  uint64_t filter_bit(uint64_t hash) const { return hash >> (61 - bits_); }

  uint32_t bits_ = 6;
  HugePageVector<uint64_t> slots_;
  std::vector<uint64_t> filter_;
  bool consecutive_ = true;
  std::vector<int32_t> tokens_;  ///< by rank
};

}  // namespace hadal::tokenizer
