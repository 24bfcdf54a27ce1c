// Merging in texts that are too long for a row.

#include <algorithm>
#include <functional>
#include <vector>

#include "tokenizer/bpe.h"

namespace hadal::tokenizer {
namespace {

/// More rounds than this are left to the heap.
constexpr int kMaxPasses = 48;

}  // namespace

// One pass over the text for each rank, lowest first, merging all of that rank from left to right. It gives
// the same as one merge at a time because new tokens only have merges of higher ranks (parts_come_first_).
// Good for long runs of the same few characters, which need few passes. False, with nothing appended, if
// there are too many.
bool Bpe::encode_in_passes(std::string_view text, BpeScratch& scratch, std::vector<int32_t>& ids) const {
  auto& symbols = scratch.symbols;
  symbols.clear();
  for (const char c : text) {
    symbols.push_back({byte_tokens_[static_cast<uint8_t>(c)], MergeTable::kNone, true});
  }
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    scratch.operations += symbols.size();
    int32_t lowest = MergeTable::kNone;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      if (symbols[i].changed || symbols[i + 1].changed) {
        symbols[i].rank = merges_.rank(symbols[i].token, symbols[i + 1].token);
      }
      symbols[i].changed = false;
      lowest = std::min(lowest, symbols[i].rank);
    }
    symbols.back().changed = false;
    symbols.back().rank = MergeTable::kNone;
    if (lowest == MergeTable::kNone) {
      for (const BpeScratch::Symbol& symbol : symbols) {
        ids.push_back(symbol.token);
      }
      return true;
    }
    size_t size = 0;
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (symbols[i].rank == lowest) {
        symbols[size++] = {merges_.token(lowest), MergeTable::kNone, true};
        ++i;
      } else {
        symbols[size++] = symbols[i];
      }
    }
    symbols.resize(size);
  }
  return false;
}

void Bpe::encode_by_definition(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& ids) const {
  constexpr size_t kNone = SIZE_MAX;
  struct Symbol {
    int32_t token;  ///< -1 once it was merged into the one before
    size_t previous;
    size_t next;
  };
  struct Candidate {
    int32_t rank;
    size_t at;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  for (const char c : word) {
    symbols.push_back({byte_tokens_[static_cast<uint8_t>(c)], symbols.size() - 1, symbols.size() + 1});
  }
  if (symbols.empty()) {
    return;
  }
  symbols.front().previous = kNone;
  symbols.back().next = kNone;

  const auto rank_at = [&](size_t at) {
    ++scratch.operations;
    const bool is_pair = at != kNone && symbols[at].token >= 0 && symbols[at].next != kNone;
    return is_pair ? merges_.rank(symbols[at].token, symbols[symbols[at].next].token) : MergeTable::kNone;
  };
  std::vector<Candidate> heap;
  for (size_t at = 0; at < symbols.size(); ++at) {
    if (const int32_t rank = rank_at(at); rank != MergeTable::kNone) {
      heap.push_back({rank, at});
    }
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    const Candidate candidate = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    // A rank belongs to one pair, so a candidate whose neighbours have changed shows another rank by now.
    if (rank_at(candidate.at) != candidate.rank) {
      continue;
    }
    Symbol& symbol = symbols[candidate.at];
    Symbol& absorbed = symbols[symbol.next];
    symbol.token = merges_.token(candidate.rank);
    symbol.next = absorbed.next;
    absorbed.token = -1;
    if (symbol.next != kNone) {
      symbols[symbol.next].previous = candidate.at;
    }
    for (const size_t at : {symbol.previous, candidate.at}) {
      if (const int32_t rank = rank_at(at); rank != MergeTable::kNone) {
        heap.push_back({rank, at});
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
      }
    }
  }
  for (size_t at = 0; at != kNone; at = symbols[at].next) {
    ids.push_back(symbols[at].token);
  }
}

}  // namespace hadal::tokenizer
