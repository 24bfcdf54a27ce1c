#pragma once
// The merges of a byte-pair encoding: which two neighbouring tokens become which one, and how early.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tokenizer/huge_page_allocator.h"

namespace hadal::tokenizer {

/// Ids of tokens lie below this, so that a damaged file cannot ask for tables of any size. (DeepSeek-V4:
/// 129,280.)
inline constexpr int32_t kMaxVocabSize = (1 << 20) - 1;
/// At most this many merges.
inline constexpr size_t kMaxMerges = (size_t{1} << 24) - 2;

/// A hash table from pairs of token ids to the rank of their merge. A bucket is four slots of eight bytes,
/// all of which a lookup compares without a branch, since whether a pair merges is as good as random.
class PairRanks {
 public:
  static constexpr int32_t kNone = INT32_MAX;

  /// `capacity` pairs will be inserted at most.
  explicit PairRanks(size_t capacity = 0) {
    while ((size_t{kSlots} << bits_) < capacity * 2) {
      ++bits_;
    }
    buckets_.resize(size_t{1} << bits_, kEmptyBucket);
  }

  /// `rank` up to kMaxMerges. Returns false if the pair is already there.
  bool insert(int32_t left, int32_t right, int32_t rank) {
    const uint64_t pair = key(left, right);
    for (size_t at = home(pair);; at = (at + 1) & (buckets_.size() - 1)) {
      for (uint64_t& slot : buckets_[at]) {
        if (slot == kEmpty) {
          slot = pair << kRankBits | static_cast<uint32_t>(rank);
          return true;
        }
        if (slot >> kRankBits == pair) {
          return false;
        }
      }
    }
  }

  /// The rank of two neighbours (the lower, the earlier they merge), or kNone; so it is if one of them is
  /// negative.
  int32_t find(int32_t left, int32_t right) const {
    const uint64_t pair = key(left, right);
    for (size_t at = home(pair);; at = (at + 1) & (buckets_.size() - 1)) {
      const Bucket& bucket = buckets_[at];
      uint64_t found = kNone;
      for (const uint64_t slot : bucket) {
        found = slot >> kRankBits == pair ? slot & kMaxRank : found;
      }
      // Buckets fill from the front, and only after a full one does the search go on. (One branch, not two:
      // the first would be as good as random.)
      const bool done =
          (static_cast<unsigned>(found != kNone) | static_cast<unsigned>(bucket[kSlots - 1] == kEmpty)) != 0;
      if (done) [[likely]] {
        return static_cast<int32_t>(found);
      }
    }
  }

  /// Asks the memory for what find() looks at.
  void prefetch(int32_t left, int32_t right) const { __builtin_prefetch(&buckets_[home(key(left, right))]); }

 private:
  static constexpr uint32_t kRankBits = 24;
  static constexpr uint64_t kMaxRank = (uint64_t{1} << kRankBits) - 1;
  // Two ids of 20 bits and a rank of 24 share a slot. A negative number makes a pair that no two ids do.
  static_assert(kMaxMerges <= kMaxRank && kMaxVocabSize < 1 << 20);
  static constexpr uint32_t kSlots = 4;
  using Bucket = std::array<uint64_t, kSlots>;
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static constexpr Bucket kEmptyBucket = {kEmpty, kEmpty, kEmpty, kEmpty};

  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 20 | static_cast<uint32_t>(right);
  }
  size_t home(uint64_t pair) const { return pair * 0x9E3779B97F4A7C15U >> (64 - bits_); }

  uint32_t bits_ = 4;
  HugePageVector<Bucket> buckets_;
};

/// All merges.
class MergeTable {
 public:
  static constexpr int32_t kNone = PairRanks::kNone;

  explicit MergeTable(size_t capacity = 0) : ranks_(capacity) { tokens_.reserve(capacity); }

  /// Adds the merge of the next rank; ranks count from 0. Returns false if the pair is already there.
  bool add(int32_t left, int32_t right, int32_t token) {
    if (!ranks_.insert(left, right, static_cast<int32_t>(tokens_.size()))) {
      return false;
    }
    consecutive_ = consecutive_ && (tokens_.empty() || token == tokens_.back() + 1);
    tokens_.push_back(token);
    return true;
  }

  const PairRanks& ranks() const { return ranks_; }
  int32_t rank(int32_t left, int32_t right) const { return ranks_.find(left, right); }

  /// What the merge of a rank makes. Training numbers tokens in the order of their merges; then no table is
  /// needed.
  int32_t token(int32_t rank) const {
    return consecutive_ ? tokens_.front() + rank : tokens_[static_cast<size_t>(rank)];
  }

 private:
  PairRanks ranks_;
  bool consecutive_ = true;
  std::vector<int32_t> tokens_;  ///< by rank
};

}  // namespace hadal::tokenizer
