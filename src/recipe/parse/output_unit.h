#pragma once
// From raw input (text or tokens, cut anywhere) to units of valid UTF-8.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/parse/origin.h"

namespace hadal::recipe {

/// Where the bytes of one token are in its unit; begin == end for a token that completed no character.
struct TokenSpan {
  size_t begin = 0;
  size_t end = 0;
};

/// What one push of input brought: it never ends inside a character. Pushes are joined until that holds.
struct OutputUnit {
  std::string bytes;    ///< valid UTF-8
  std::string origins;  ///< one Origin for each byte
  std::vector<TokenSpan> tokens;
};

/// Collects input into a unit. Each maximal part that is not UTF-8 becomes one U+FFFD.
class UnitBuilder {
 public:
  void add_text(std::string_view text) { add(text, Origin::kText); }
  void add_token(std::string_view bytes, bool special);

  /// True unless the input so far ends inside a character.
  bool complete() const { return partial_.empty(); }
  bool empty() const { return unit_.bytes.empty(); }
  /// False for a unit of tokens that stand for nothing (so far).
  bool has_input() const { return !unit_.bytes.empty() || unit_.tokens.empty(); }
  /// An unfinished character becomes U+FFFD.
  void finish() { replace_partial(); }

  /// The unit so far; the builder starts a new one.
  OutputUnit take();

 private:
  void add(std::string_view bytes, Origin origin);
  void append(std::string_view bytes, Origin origin);
  void replace_partial();

  OutputUnit unit_;
  std::string partial_;  ///< the bytes of an unfinished character
  Origin partial_origin_ = Origin::kText;
  size_t missing_ = 0;           ///< bytes that the unfinished character lacks
  unsigned char lowest_ = 0x80;  ///< range of its next byte
  unsigned char highest_ = 0xBF;
};

}  // namespace hadal::recipe
