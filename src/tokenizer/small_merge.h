#pragma once
// Merging in short rows of symbols, where looking at all of them is cheaper than keeping a heap.

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
/// and of equal ones the leftmost. There is hardly a branch in it: in what order a word merges cannot be
/// predicted.
class SmallMerge {
 public:
  static constexpr size_t kMaxSymbols = 64;

  /// Starts a row of `count` symbols, 1..64, which the caller then sets. Their ranks are looked up in
  /// `ranks`, which has to hold all merges that can come up in the row and must outlive its use.
  void start(size_t count, const PairRanks& ranks) {
    ranks_ = &ranks;
    lanes_ = (count + kStep - 1) / kStep * kStep;
    alive_ = ~uint64_t{0} >> (kMaxSymbols - count);
    ranks_wanted_ = false;
    symbols_[0] = symbols_[kMaxSymbols + 1] = -1;
    std::fill_n(order_.begin() + 1, lanes_, kNever);
  }
  int32_t& symbol(size_t lane) { return symbols_[lane + 1]; }
  /// The rank of a lane's symbol with the next one; kNone at the start.
  void set_rank(size_t lane, int32_t rank) { set_order(lane + 1, rank); }

  /// Instead of set_rank(): asks the memory for the ranks of all neighbours, which merge_rows() then reads.
  void prefetch_ranks() {
    ranks_wanted_ = true;
    for (size_t lane = 0; lane + 1 < count(); ++lane) {
      ranks_->prefetch(symbols_[lane + 1], symbols_[lane + 2]);
    }
  }
  void read_wanted_ranks() {
    for (size_t lane = 0; ranks_wanted_ && lane + 1 < count(); ++lane) {
      set_rank(lane, ranks_->find(symbols_[lane + 1], symbols_[lane + 2]));
    }
  }

  /// Does the next merge and asks the memory for the ranks of the new neighbours; finish_merge() must follow.
  /// False if no neighbours merge.
  bool begin_merge(const MergeTable& merges) {
    int32_t lowest = kNever;
    for (size_t step = 1; step <= lanes_; step += kStep) {
      for (size_t i = 0; i < kStep; ++i) {
        lowest = std::min(lowest, order_[step + i]);
      }
    }
    if (lowest == kNever) {
      return false;
    }
    const size_t lane = static_cast<size_t>(lowest) % kMaxSymbols;
    // Where there is no neighbour, these are the ends of the arrays.
    const size_t absorbed = next(lane);
    alive_ &= ~(uint64_t{1} << (absorbed - 1) % kMaxSymbols);
    at_ = lane + 1;
    previous_ = static_cast<size_t>(std::bit_width(alive_ & ((uint64_t{1} << lane) - 1)));
    following_ = next(lane);
    symbols_[at_] = merges.token(lowest >> kLaneBits);
    order_[absorbed] = kNever;
    ranks_->prefetch(symbols_[at_], symbols_[following_]);
    ranks_->prefetch(symbols_[previous_], symbols_[at_]);
    return true;
  }

  void finish_merge() {
    set_order(at_, ranks_->find(symbols_[at_], symbols_[following_]));
    set_order(previous_, ranks_->find(symbols_[previous_], symbols_[at_]));
  }

  /// Calls `sink(symbol)` for each symbol that is left, in order.
  template <class Sink>
  void for_each(Sink&& sink) const {
    for (uint64_t rest = alive_; rest != 0; rest &= rest - 1) {
      sink(symbols_[static_cast<size_t>(std::countr_zero(rest)) + 1]);
    }
  }

 private:
  static constexpr uint32_t kLaneBits = 6;
  static constexpr int32_t kNever = INT32_MAX;
  static constexpr size_t kStep = 16;
  static_assert(kMaxMerges << kLaneBits < INT32_MAX);

  size_t count() const { return static_cast<size_t>(std::popcount(alive_)); }
  /// The place of the next symbol after a lane's.
  size_t next(size_t lane) const {
    return static_cast<size_t>(std::countr_zero(alive_ & (~uint64_t{1} << lane))) + 1;
  }
  void set_order(size_t place, int32_t rank) {
    const uint64_t order = static_cast<uint64_t>(rank) << kLaneBits | (place - 1) % kMaxSymbols;
    order_[place] = static_cast<int32_t>(std::min<uint64_t>(order, kNever));
  }

  const PairRanks* ranks_ = nullptr;
  size_t lanes_ = 0;
  uint64_t alive_ = 0;
  bool ranks_wanted_ = false;
  // Places of the merge that was begun:
  size_t at_ = 0;
  size_t following_ = 0;
  size_t previous_ = 0;
  // A lane's values are one place further on, so that there is a place before the first lane and one after
  // the last for symbols that merge with nothing.
  std::array<int32_t, kMaxSymbols + 2> order_;
  std::array<int32_t, kMaxSymbols + 2> symbols_;
};

inline constexpr size_t kMaxRowsAtOnce = 16;

/// Merges up to kMaxRowsAtOnce rows to their ends, taking turns, so that waiting for memory in one is time
/// for the others.
inline void merge_rows(std::span<SmallMerge> rows, const MergeTable& merges) {
  std::array<SmallMerge*, kMaxRowsAtOnce> active;
  size_t count = 0;
  for (SmallMerge& row : rows) {
    row.read_wanted_ranks();
    active[count++] = &row;
  }
  while (count != 0) {
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
      SmallMerge* const row = active[i];
      active[kept] = row;
      kept += row->begin_merge(merges) ? 1 : 0;
    }
    count = kept;
    for (size_t i = 0; i < count; ++i) {
      active[i]->finish_merge();
    }
  }
}

}  // namespace hadal::tokenizer
