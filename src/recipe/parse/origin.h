#pragma once
// Where a byte of the output came from, which decides what it may be part of.

#include <cstdint>

namespace hadal::recipe {

/// A marker like `</think>` is a special token. In token input only that token counts as the marker, never
/// ordinary tokens that happen to spell it; in text input the spelling has to do.
enum class Origin : char {
  kText,          ///< text input: matches ordinary and special parts of a marker
  kPlainToken,    ///< an ordinary token: matches ordinary parts only
  kSpecialToken,  ///< a token of the added vocabulary: matches special parts only
};

}  // namespace hadal::recipe
