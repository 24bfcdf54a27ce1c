#pragma once
// Byte-pair encoding of words, with the results of Hugging Face `tokenizers`: of all neighbours that merge,
// those with the lowest rank do, the leftmost first, until none is left.
//
// encode_by_definition() does just that, with a heap; it is the specification. The faster ways to the same
// ids:
//  - a word that is a token as a whole, if that token's bytes encode to it (whole_word).
//  - a short word, or a run of CJK characters, by merging in a row (start_row), several rows at a time.
//  - a long word in windows. A row of tokens is the encoding of its text exactly if each token encodes to
//  itself and
//    no two neighbours would merge across their border: the first merge across a border depends only on the
//    two tokens beside it. So the tokens of a window are right, but for some at its end, and a window may
//    start where the one before was cut if the two tokens at the cut, encoded together, stay apart. Where
//    they do not, the cut was wrong: a larger window starts further back, at last the whole word. The work is
//    linear in the word.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/cjk_merger.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/small_merge.h"
#include "tokenizer/string_index.h"
#include "tokenizer/whole_words.h"

namespace hadal::tokenizer {

/// The working memory of an encoder. Not for two threads at once.
struct BpeScratch {
  struct Symbol {
    int32_t token;
    int32_t rank;  ///< with the next symbol
    bool changed;
  };
  std::vector<Symbol> symbols;
  std::vector<int32_t> window;  ///< tokens of one window
  std::vector<int32_t> border;  ///< tokens of two neighbours, encoded together
  SmallMerge row;
  uint64_t operations = 0;  ///< symbols looked at; for tests of linear time
};

class Bpe {
 public:
  struct Merge {
    int32_t left;
    int32_t right;
    int32_t token;  ///< its bytes are those of left and right together
  };

  /// `token_bytes[id]`: the bytes of each token of the vocabulary, empty for unused ids and for tokens that
  /// no bytes spell (they never come out); every byte of valid UTF-8 is a token. The views must outlive the
  /// object. `merges` in order of rank, at most kMaxMerges. With `ignore_merges`, a word that is a token as a
  /// whole becomes that token whatever the merges say. Errors: kCorrupt for a repeated pair.
  static Result<Bpe> create(std::span<const std::string_view> token_bytes, std::span<const Merge> merges,
                            bool ignore_merges);

  static constexpr int32_t kNoToken = WholeWords::kNone;

  /// The token of a word of 1..15 bytes, or of more, if the whole word is one; else kNoToken.
  int32_t whole_word(const WordKey& key) const { return short_words_.find(key); }
  int32_t whole_long_word(std::string_view word) const {
    return word.size() > longest_token_ ? kNoToken : long_words_.find(word).value_or(kNoToken);
  }
  void prefetch_whole_word(const WordKey& key) const { short_words_.prefetch(key); }

  /// Sets up `row` for a word that is no token as a whole, if it fits. After merge_rows() the row's symbols
  /// give the word's tokens by append_symbol().
  bool start_row(std::string_view word, SmallMerge& row) const;
  void append_symbol(int32_t symbol, std::vector<int32_t>& ids) const { cjk_.append(symbol, ids); }
  const MergeTable& merges() const { return merges_; }

  /// Appends the tokens of a word of any length that is no token as a whole. Words are valid UTF-8.
  void encode_long(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& ids) const;

  /// The specification, for any word. O(n log n).
  void encode_by_definition(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& ids) const;

  /// Whether a token can come out of an encoding.
  bool can_produce(int32_t token) const { return produced_[static_cast<size_t>(token)]; }

 private:
  Bpe() = default;
  void set_bytes(std::span<const std::string_view> token_bytes);
  void set_whole_words(std::span<const std::string_view> token_bytes, bool ignore_merges);
  void encode_window(std::string_view text, BpeScratch& scratch, std::vector<int32_t>& ids) const;
  bool encode_in_passes(std::string_view text, BpeScratch& scratch, std::vector<int32_t>& ids) const;
  bool border_holds(std::string_view text, int32_t left, int32_t right, BpeScratch& scratch) const;
  std::string_view window_at(std::string_view word, size_t at, size_t attempt) const;

  MergeTable merges_;
  bool parts_come_first_ =
      false;  ///< each merge is of tokens that only earlier merges make, as training writes it
  int32_t byte_tokens_[256] = {};
  std::vector<int32_t> byte_pair_ranks_;  ///< by first byte * 256 + second byte
  std::vector<uint32_t> lengths_;         ///< bytes of each token
  std::vector<bool> produced_;
  CjkMerger cjk_;
  // Tokens that encode to themselves, by their bytes.
  WholeWords short_words_;  ///< up to 15 bytes
  StringIndex long_words_;
  size_t longest_token_ = 0;
};

}  // namespace hadal::tokenizer
