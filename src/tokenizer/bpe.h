#pragma once
// Byte-pair encoding of one word, with the results of Hugging Face `tokenizers`: of all neighbours that
// merge, those with the lowest rank do, the leftmost first, until none is left.
//
// Two ways to the same ids:
//  - merging, as the definition says, with a heap. This is the specification; it works for every merge list.
//  - matching. A row of tokens is the encoding of its text exactly if each token encodes to itself and no two
//    neighbours would merge across their border (any merge across a border has to be the first one across it,
//    and that one depends on the two tokens beside it only). So the longest token that fits is taken from a
//    trie, its border with the one before is checked, a shorter one is tried if that fails, and where none
//    fits the last token is taken back. The encoding of a prefix is unique, so a position found to lead
//    nowhere never has to be tried again: the work is linear in the word for a given vocabulary.
// Matching needs a merge list whose parts always come before what is made of them, as training writes it;
// other lists are encoded by merging.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/cjk_merger.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/string_index.h"
#include "tokenizer/token_trie.h"
#include "tokenizer/whole_words.h"

namespace hadal::tokenizer {

/// The working memory of an encoder. Not for two threads at once. Bounded: what a huge word made it grow to
/// is given back by trim().
struct BpeScratch {
  std::vector<uint64_t> dead;  ///< bits: positions that lead nowhere
  uint64_t operations = 0;     ///< prefixes and tokens tried, merges examined; for tests of linear time

  void trim();
};

class Bpe {
 public:
  struct Merge {
    int32_t left;
    int32_t right;
    int32_t token;  ///< its bytes are those of left and right together
  };

  /// `token_bytes[id]`: the bytes of each token of the vocabulary, empty for unused ids and for tokens that
  /// no bytes spell (they never come out). The views must outlive the object. `merges` in order of rank, at
  /// most kMaxMerges. With `whole_words`, a word that is a token as a whole becomes that token whatever the
  /// merges say
  /// (`ignore_merges` in the file). Errors: kCorrupt for a repeated pair.
  static Result<Bpe> create(std::span<const std::string_view> token_bytes, std::span<const Merge> merges,
                            bool whole_words);

  /// Appends the tokens of `word`, which must be valid UTF-8, without looking whether it is one as a whole.
  /// Bytes up to `readable_end`, which is the end of the word or later, may be read; more of them make it
  /// faster.
  void encode(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& ids) const;

  /// The token of a word of 1..15 bytes if it is one, or WholeWords::kNone.
  int32_t whole_word(const WordKey& key) const { return short_words_.find(key); }
  int32_t whole_long_word(std::string_view word) const {
    return word.size() > longest_word_ ? WholeWords::kNone
                                       : long_words_.find(word).value_or(WholeWords::kNone);
  }
  void prefetch_whole_word(const WordKey& key) const { short_words_.prefetch(key); }

  /// Sets up `row` for a word if it can be encoded by merging in a short row. After merge_rows(), the row's
  /// symbols give its tokens by append_symbol().
  bool start_row(std::string_view word, SmallMerge& row) const;
  void append_symbol(int32_t symbol, std::vector<int32_t>& ids) const { cjk_.append(symbol, ids); }
  const MergeTable& merges() const { return merges_; }

  /// The two ways by name. encode_by_matching() is only allowed if can_match().
  void encode_by_merging(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& ids) const;
  void encode_by_matching(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& ids) const;
  bool can_match() const { return can_match_; }

  /// Whether a token can come out of encode().
  bool can_produce(int32_t token) const { return produced_[static_cast<size_t>(token)]; }

 private:
  /// How a token comes about. A byte is there from the start; the others by the merge of the rank `birth`.
  struct Origin {
    uint64_t birth : 24;
    uint64_t left : 20;
    uint64_t right : 20;
    // Sets of bytes, hashed to a bit each: what the neighbour after (before) has to start (end) with if a
    // part of this token, smaller than it and at its border, is to merge with the neighbour or a part of it.
    uint32_t wanted_after = 0;
    uint32_t wanted_before = 0;
  };
  static_assert(sizeof(Origin) == 16 && kMaxVocabSize < 1 << 20);
  // Births are ranks plus one.
  static constexpr uint64_t kByteBirth = 0;
  static constexpr uint64_t kNeverBorn = (1 << 24) - 1;

  Bpe() = default;
  bool find_origins(std::span<const Merge> merges);
  bool build_trie(std::span<const std::string_view> token_bytes);
  void find_wanted_neighbours(std::span<const std::string_view> token_bytes, std::span<const Merge> merges);
  /// Where two tokens meet: the bits of the bytes on both sides.
  struct Border {
    uint32_t last_before = ~uint32_t{0};
    uint32_t first_after = ~uint32_t{0};
  };
  void prepare_words(std::span<const std::string_view> token_bytes);
  bool border_holds(int32_t left, int32_t right, Border border, bool below_the_tops,
                    uint64_t& operations) const;

  bool can_match_ = false;
  int32_t byte_tokens_[256] = {};
  MergeTable merges_;
  HugePageVector<Origin> origins_;
  std::vector<uint32_t> lengths_;  ///< bytes of each token
  std::vector<bool> produced_;
  TokenTrie trie_;
  CjkMerger cjk_;
  std::vector<int32_t> byte_pair_ranks_;  ///< by first byte * 256 + second byte
  WholeWords short_words_;                ///< tokens of up to 15 bytes that encode to themselves
  bool ignore_merges_ = false;
  size_t longest_word_ = 0;
  StringIndex long_words_;  ///< tokens of more than 15 bytes that encode to themselves
};

}  // namespace hadal::tokenizer
