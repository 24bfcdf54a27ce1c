#pragma once
// Added tokens (special or not): finding their spellings in text.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/token_trie.h"

namespace hadal::tokenizer {

/// One entry of `added_tokens` in a tokenizer.json.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;  ///< only where no word character touches it
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< takes the white space after it along
  bool normalized = false;   ///< looked for only after all that are not
  bool special = false;      ///< left out by decoding when asked to
};

/// A piece of text, or an added token that stood in its place.
struct AddedTokenPiece {
  static constexpr int32_t kText = -1;
  std::string_view text;
  int32_t id = kText;
};

/// Finds the tokens of one set: the leftmost, of those the longest, without overlap.
class AddedTokenMatcher {
 public:
  AddedTokenMatcher() = default;
  /// The contents must be unique, valid UTF-8, together below TokenTrie::kMaxBytes. Keeps a copy.
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }

  /// Appends the pieces of valid UTF-8 `text`, in order. Linear in the text for a given set. As in the
  /// reference, a token that strips white space to its right does not keep a later one from matching inside
  /// that space.
  void split(std::string_view text, std::vector<AddedTokenPiece>& pieces) const;

 private:
  std::vector<AddedToken> tokens_;
  std::array<bool, 256> first_bytes_{};
  TokenTrie trie_;  ///< to indices of tokens_
};

}  // namespace hadal::tokenizer
