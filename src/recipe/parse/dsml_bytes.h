#pragma once
// Kinds of bytes in DSML tags.

#include <cstddef>

namespace hadal::recipe {

inline constexpr size_t kMaxWordBytes = 64;  ///< of a tag's or an attribute's name

inline bool is_tag_space(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}
inline bool is_tag_word(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
         byte == '_';
}

}  // namespace hadal::recipe
