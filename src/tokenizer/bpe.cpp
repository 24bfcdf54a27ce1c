#include "tokenizer/bpe.h"

#include <algorithm>
#include <array>
#include <functional>

namespace hadal::tokenizer {
namespace {

/// Past this, shorter tokens tried one after the other could add up; such vocabularies are merged instead.
constexpr size_t kMaxMatchedBytes = 512;
/// Working memory above this is given back after a huge word.
constexpr size_t kKeptBytes = size_t{1} << 20;

size_t index(int32_t token) {
  return static_cast<size_t>(token);
}

size_t byte_pair(char first, char second) {
  return static_cast<size_t>(static_cast<uint8_t>(first)) << 8 | static_cast<uint8_t>(second);
}

/// Hashes a byte to one of 32 bits. The lead bytes of three-byte characters, most of the world's, have their
/// own.
uint32_t byte_bit(char c) {
  const auto byte = static_cast<uint8_t>(c);
  const uint32_t bit = byte >= 0xE0 && byte < 0xF0 ? byte & 15U : 16U + ((byte ^ byte >> 4) & 15U);
  return uint32_t{1} << bit;
}

}  // namespace

void BpeScratch::trim() {
  if (dead.capacity() * sizeof(dead[0]) > kKeptBytes) {
    dead = {};
  }
}

Result<Bpe> Bpe::create(std::span<const std::string_view> token_bytes, std::span<const Merge> merges,
                        bool whole_words) {
  Bpe bpe;
  const size_t size = token_bytes.size();
  bpe.origins_.assign(size, {kNeverBorn, 0, 0});
  bpe.lengths_.resize(size);
  bpe.produced_.assign(size, false);
  std::fill(std::begin(bpe.byte_tokens_), std::end(bpe.byte_tokens_), -1);
  for (size_t token = 0; token < size; ++token) {
    const std::string_view bytes = token_bytes[token];
    bpe.lengths_[token] = static_cast<uint32_t>(bytes.size());
    if (bytes.size() == 1) {
      bpe.byte_tokens_[static_cast<uint8_t>(bytes[0])] = static_cast<int32_t>(token);
      bpe.origins_[token].birth = kByteBirth;
    }
    bpe.produced_[token] = bytes.size() == 1 || (whole_words && !bytes.empty());
  }
  bpe.merges_ = MergeTable(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    if (!bpe.merges_.add(merge.left, merge.right, merge.token)) {
      return fail(ErrorCode::kCorrupt, "merges[{}]: its pair was already merged by an earlier one", rank);
    }
    bpe.produced_[index(merge.token)] = !token_bytes[index(merge.token)].empty();
  }
  bpe.ignore_merges_ = whole_words;
  bpe.can_match_ = bpe.find_origins(merges) && bpe.build_trie(token_bytes);
  bpe.find_wanted_neighbours(token_bytes, merges);
  bpe.prepare_words(token_bytes);
  std::vector<CjkMerger::MergeBytes> merge_bytes;
  merge_bytes.reserve(merges.size());
  for (const Merge& merge : merges) {
    merge_bytes.push_back(
        {merge.left, merge.right, token_bytes[index(merge.left)], token_bytes[index(merge.right)]});
  }
  BpeScratch scratch;
  bpe.cjk_ = CjkMerger(merge_bytes, [&](std::string_view character, std::vector<int32_t>& ids) {
    bpe.encode_by_merging(character, scratch, ids);
  });
  return bpe;
}

void Bpe::prepare_words(std::span<const std::string_view> token_bytes) {
  byte_pair_ranks_.assign(size_t{1} << 16, MergeTable::kNone);
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      if (byte_tokens_[first] >= 0 && byte_tokens_[second] >= 0) {
        byte_pair_ranks_[byte_pair(static_cast<char>(first), static_cast<char>(second))] =
            merges_.rank(byte_tokens_[first], byte_tokens_[second]);
      }
    }
  }
  short_words_ = WholeWords(token_bytes.size());
  long_words_ = StringIndex(
      static_cast<size_t>(std::count_if(token_bytes.begin(), token_bytes.end(), [](std::string_view bytes) {
        return bytes.size() > WordKey::kMaxBytes;
      })));
  for (size_t token = 0; token < token_bytes.size(); ++token) {
    const std::string_view bytes = token_bytes[token];
    const bool is_word = ignore_merges_ || (can_match_ && origins_[token].birth != kNeverBorn);
    if (!is_word || bytes.empty()) {
      continue;
    }
    if (bytes.size() <= WordKey::kMaxBytes) {
      short_words_.insert(WordWindow(bytes.data(), bytes.data() + bytes.size()).key(bytes.size()),
                          static_cast<int32_t>(token));
    } else {
      long_words_.insert(bytes, static_cast<int32_t>(token));
      longest_word_ = std::max(longest_word_, bytes.size());
    }
  }
}

// Finds for each token the one merge that ends its own encoding, if there is one. False if a merge comes
// before one that makes its parts: then births in order of rank are not the order of events.
bool Bpe::find_origins(std::span<const Merge> merges) {
  const auto birth = [this](int32_t token) { return origins_[index(token)].birth; };
  uint64_t operations = 0;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto [left, right, token] = merges[rank];
    if (birth(left) != kNeverBorn && birth(right) != kNeverBorn && birth(token) == kNeverBorn &&
        border_holds(left, right, {}, true, operations)) {
      Origin& origin = origins_[index(token)];
      origin.birth = (rank + 1) & kNeverBorn;
      origin.left = static_cast<uint32_t>(left) & kMaxVocabSize;
      origin.right = static_cast<uint32_t>(right) & kMaxVocabSize;
    }
  }
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    for (const int32_t part : {merges[rank].left, merges[rank].right}) {
      if (birth(part) != kNeverBorn && birth(part) > rank) {
        return false;
      }
    }
  }
  return true;
}

void Bpe::find_wanted_neighbours(std::span<const std::string_view> token_bytes,
                                 std::span<const Merge> merges) {
  // Of each token itself first, then handed up to those that it is the outer part of, in order of birth.
  std::vector<Border> wanted(token_bytes.size(), {0, 0});
  for (const Merge& merge : merges) {
    const std::string_view left = token_bytes[index(merge.left)];
    const std::string_view right = token_bytes[index(merge.right)];
    if (!left.empty() && !right.empty()) {
      wanted[index(merge.left)].first_after |= byte_bit(right.front());
      wanted[index(merge.right)].last_before |= byte_bit(left.back());
    }
  }
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    Origin& origin = origins_[index(merges[rank].token)];
    if (origin.birth == rank + 1) {
      const auto left = static_cast<size_t>(origin.left);
      const auto right = static_cast<size_t>(origin.right);
      origin.wanted_after = wanted[right].first_after | origins_[right].wanted_after;
      origin.wanted_before = wanted[left].last_before | origins_[left].wanted_before;
    }
  }
}

bool Bpe::build_trie(std::span<const std::string_view> token_bytes) {
  std::vector<TrieEntry> entries;
  for (size_t token = 0; token < token_bytes.size(); ++token) {
    if (origins_[token].birth == kNeverBorn) {
      continue;
    }
    if (token_bytes[token].size() > kMaxMatchedBytes) {
      return false;
    }
    entries.push_back({token_bytes[token], static_cast<int32_t>(token)});
  }
  return trie_.build(std::move(entries));
}

// Whether no merge crosses the border between two tokens while they come about. Walks back in time: the pair
// of parts that face each other at the border changes whenever the later born of the two is taken apart.
// Before that moment (`limit`, exclusive) their merge must not have been due. When the ranks are equal the
// one further left goes first: the left part's own merge before one across the border, and that before the
// right part's own. The walk ends early where no smaller part has any merge with what can stand on the other
// side.
bool Bpe::border_holds(int32_t left, int32_t right, Border border, bool below_the_tops,
                       uint64_t& operations) const {
  uint64_t limit = kNeverBorn;
  bool examine = !below_the_tops;
  while (true) {
    ++operations;
    if (examine) {
      const int32_t rank = merges_.rank(left, right);
      if (rank != MergeTable::kNone && static_cast<uint64_t>(rank) + 1 < limit) {
        return false;
      }
    }
    examine = true;
    const Origin& left_origin = origins_[index(left)];
    const Origin& right_origin = origins_[index(right)];
    if (left_origin.birth > right_origin.birth) {
      if (!below_the_tops && (left_origin.wanted_after & border.first_after) == 0) {
        return true;
      }
      limit = left_origin.birth;
      left = static_cast<int32_t>(left_origin.right);
    } else if (right_origin.birth != kByteBirth) {
      if (!below_the_tops && (right_origin.wanted_before & border.last_before) == 0) {
        return true;
      }
      limit = right_origin.birth + 1;
      right = static_cast<int32_t>(right_origin.left);
    } else {
      return true;
    }
  }
}

void Bpe::encode(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& ids) const {
  if (can_match_) {
    encode_by_matching(word, scratch, ids);
  } else {
    encode_by_merging(word, scratch, ids);
  }
}

bool Bpe::start_row(std::string_view word, SmallMerge& row) const {
  if (word.size() > WordKey::kMaxBytes || static_cast<uint8_t>(word[0]) >= 0xE3) {
    if (cjk_.start(word, row)) {
      return true;
    }
  }
  if (word.size() > SmallMerge::kMaxSymbols) {
    return false;
  }
  row.start(word.size(), merges_.ranks());
  for (size_t i = 0; i < word.size(); ++i) {
    row.symbol(i) = byte_tokens_[static_cast<uint8_t>(word[i])];
  }
  for (size_t i = 0; i + 1 < word.size(); ++i) {
    row.set_rank(i, byte_pair_ranks_[byte_pair(word[i], word[i + 1])]);
  }
  return true;
}

void Bpe::encode_by_matching(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& ids) const {
  const char* const begin = word.data();
  const char* const end = begin + word.size();
  const size_t first_id = ids.size();
  // The longest token at a position that is shorter than `size`.
  const auto find = [&](size_t position, size_t size) -> TokenTrie::Found {
    const char* const from = begin + position;
    if (size <= 1 || from == end) {
      return {TokenTrie::kNoToken, 0};
    }
    const char* const stop = static_cast<size_t>(end - from) < size ? end : from + size - 1;
    return trie_.longest(from, stop, scratch.operations);
  };
  bool any_dead = false;
  size_t at = 0;
  TokenTrie::Found found = find(0, SIZE_MAX);
  while (at != word.size()) {
    ++scratch.operations;
    if (found.token != TokenTrie::kNoToken) {
      const size_t stop = at + found.length;
      const bool dead = any_dead && (scratch.dead[stop / 64] >> stop % 64 & 1) != 0;
      if (!dead && (ids.size() == first_id ||
                    border_holds(ids.back(), found.token, {byte_bit(begin[at - 1]), byte_bit(begin[at])},
                                 false, scratch.operations))) {
        ids.push_back(found.token);
        at = stop;
        found = find(at, SIZE_MAX);
      } else {
        found = find(at, found.length);
      }
      continue;
    }
    if (ids.size() == first_id) {
      // Only if the vocabulary lacks a byte of the word, which loading rules out for valid UTF-8.
      return encode_by_merging(word, scratch, ids);
    }
    // No token fits here, so the encoding does not pass this position.
    if (!any_dead) {
      any_dead = true;
      scratch.dead.assign(word.size() / 64 + 1, 0);
    }
    scratch.dead[at / 64] |= uint64_t{1} << at % 64;
    const size_t length = lengths_[index(ids.back())];
    ids.pop_back();
    at -= length;
    found = find(at, length);
  }
}

void Bpe::encode_by_merging(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& ids) const {
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
  for (const char c : word) {
    if (const int32_t token = byte_tokens_[static_cast<uint8_t>(c)]; token >= 0) {
      symbols.push_back({token, symbols.empty() ? kNone : symbols.size() - 1, symbols.size() + 1});
    }
  }
  if (symbols.empty()) {
    return;
  }
  symbols.back().next = kNone;

  const auto rank_at = [&](size_t at) -> int32_t {
    ++scratch.operations;
    if (at == kNone || symbols[at].token < 0 || symbols[at].next == kNone) {
      return MergeTable::kNone;
    }
    return merges_.rank(symbols[at].token, symbols[symbols[at].next].token);
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
