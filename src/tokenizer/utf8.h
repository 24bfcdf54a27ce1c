#pragma once
// UTF-8: decoding of valid text, and finding and replacing what is not valid.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hadal::tokenizer {

struct CodePoint {
  uint32_t value;
  uint32_t length;  ///< bytes
};

/// The code point at `at`, which must be the first byte of a whole and valid one.
inline CodePoint decode_code_point(const char* at) {
  const auto byte = [at](int i) { return static_cast<uint32_t>(static_cast<uint8_t>(at[i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) {
    return {lead, 1};
  }
  if (lead < 0xE0) {
    return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  }
  if (lead < 0xF0) {
    return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  }
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

/// The code point that ends right before `at` in valid text; `at` must not be the start of the text.
CodePoint decode_code_point_before(const char* at);

/// What text starts with: a code point, a maximal part of one that cannot be continued here (this becomes one
/// U+FFFD), or a part that only lacks bytes because the text ends.
struct Utf8Part {
  enum class Kind { kValid, kInvalid, kIncomplete };
  Kind kind;
  uint32_t length;  ///< bytes, 1..4
};
Utf8Part next_utf8_part(std::string_view text);

/// Number of leading bytes that are whole, valid code points. Linear, 8 bytes a step over ASCII.
size_t valid_utf8_prefix(std::string_view text);

/// U+FFFD, the replacement character.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Appends `text` with each invalid or incomplete part replaced by one U+FFFD.
void append_valid_utf8(std::string& out, std::string_view text);

}  // namespace hadal::tokenizer
