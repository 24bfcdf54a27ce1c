#pragma once
// Merging in a short row of symbols, where looking at all of them is cheaper than keeping a heap.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tokenizer/merge_table.h"

namespace hadal::tokenizer {

/// A row of up to 64 symbols: token ids, or negative numbers for what merges with nothing. Symbols keep their
/// lanes; a merged one stays in the left lane, and the other lane is left empty. Each lane holds the rank of
/// its symbol with the next one together with its own number, so that the smallest value is the lowest rank
/// and of equal ones the leftmost, found without a branch in fixed steps.
class SmallMerge {
 public:
  static constexpr size_t kMaxSymbols = 64;

  /// Starts a row of `count` symbols, 1..64, which the caller then sets.
  void start(size_t count) {
    lanes_ = (count + kStep - 1) / kStep * kStep;
    alive_ = ~uint64_t{0} >> (kMaxSymbols - count);
    ranks_wanted_ = false;
    std::fill_n(order_.begin(), lanes_, kNever);
  }
  int32_t& symbol(size_t lane) { return symbols_[lane]; }
  /// The rank of a lane's symbol with the next one; MergeTable::kNone at the start.
  void set_rank(size_t lane, int32_t rank) {
    order_[lane] = rank == MergeTable::kNone ? kNever : rank << kLaneBits | static_cast<int32_t>(lane);
  }

  /// Asks the memory for the ranks of all neighbours; merge_rows() will read them then.
  void prefetch_ranks(const MergeTable& merges) {
    ranks_wanted_ = true;
    for (size_t lane = 0; lane + 1 < count(); ++lane) {
      merges.prefetch(symbols_[lane], symbols_[lane + 1]);
    }
  }
  void read_wanted_ranks(const MergeTable& merges) {
    if (ranks_wanted_) {
      for (size_t lane = 0; lane + 1 < count(); ++lane) {
        if ((symbols_[lane] | symbols_[lane + 1]) >= 0) {
          set_rank(lane, merges.rank_of_likely(symbols_[lane], symbols_[lane + 1]));
        }
      }
    }
  }

  /// Does the next merge and asks the memory for the ranks of the new neighbours; finish_merge() must follow.
  /// False if no neighbours merge.
  bool begin_merge(const MergeTable& merges) {
    int32_t lowest = kNever;
    for (size_t step = 0; step < lanes_; step += kStep) {
      for (size_t lane = 0; lane < kStep; ++lane) {
        lowest = std::min(lowest, order_[step + lane]);
      }
    }
    if (lowest == kNever) {
      return false;
    }
    lane_ = static_cast<size_t>(lowest) % kMaxSymbols;
    const size_t absorbed = next(lane_);
    symbols_[lane_] = merges.token(lowest >> kLaneBits);
    alive_ ^= uint64_t{1} << absorbed;
    order_[absorbed] = kNever;
    order_[lane_] = kNever;
    following_ = next(lane_);
    if (following_ != kMaxSymbols) {
      merges.prefetch(symbols_[lane_], symbols_[following_]);
    }
    const uint64_t before = alive_ & ((uint64_t{1} << lane_) - 1);
    previous_ = before == 0 ? kMaxSymbols : static_cast<size_t>(std::bit_width(before)) - 1;
    if (previous_ != kMaxSymbols) {
      merges.prefetch(symbols_[previous_], symbols_[lane_]);
    }
    return true;
  }

  void finish_merge(const MergeTable& merges) {
    if (following_ != kMaxSymbols && symbols_[following_] >= 0) {
      set_rank(lane_, merges.rank_of_likely(symbols_[lane_], symbols_[following_]));
    }
    if (previous_ != kMaxSymbols && symbols_[previous_] >= 0) {
      set_rank(previous_, merges.rank_of_likely(symbols_[previous_], symbols_[lane_]));
    }
  }

  /// Calls `sink(symbol)` for each symbol that is left, in order.
  template <class Sink>
  void for_each(Sink&& sink) const {
    for (uint64_t rest = alive_; rest != 0; rest &= rest - 1) {
      sink(symbols_[static_cast<size_t>(std::countr_zero(rest))]);
    }
  }

 private:
  static constexpr uint32_t kLaneBits = 6;
  static constexpr int32_t kNever = INT32_MAX;
  static constexpr size_t kStep = 16;
  static_assert(kMaxMerges << kLaneBits < INT32_MAX);

  size_t count() const { return static_cast<size_t>(std::popcount(alive_)); }

  /// The next lane with a symbol, or kMaxSymbols.
  size_t next(size_t lane) const {
    return static_cast<size_t>(std::countr_zero(alive_ & (~uint64_t{1} << lane)));
  }

  size_t lanes_ = 0;
  uint64_t alive_ = 0;
  bool ranks_wanted_ = false;
  // Of the merge that was begun:
  size_t lane_ = 0;
  size_t following_ = 0;
  size_t previous_ = 0;
  std::array<int32_t, kMaxSymbols> order_;
  std::array<int32_t, kMaxSymbols> symbols_;
};

inline constexpr size_t kMaxRowsAtOnce = 16;

/// Merges up to kMaxRowsAtOnce rows to their ends, taking turns, so that waiting for memory in one is time
/// for the others.
inline void merge_rows(std::span<SmallMerge> rows, const MergeTable& merges) {
  std::array<SmallMerge*, kMaxRowsAtOnce> active;
  size_t count = 0;
  for (SmallMerge& row : rows) {
    row.read_wanted_ranks(merges);
    active[count++] = &row;
  }
  while (count != 0) {
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
      if (active[i]->begin_merge(merges)) {
        active[kept++] = active[i];
      }
    }
    count = kept;
    for (size_t i = 0; i < count; ++i) {
      active[i]->finish_merge(merges);
    }
  }
}

}  // namespace hadal::tokenizer
