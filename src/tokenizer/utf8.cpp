#include "tokenizer/utf8.h"

#include <cstring>

namespace hadal::tokenizer {

CodePoint decode_code_point_before(const char* at) {
  do {
    --at;
  } while ((static_cast<uint8_t>(*at) & 0xC0) == 0x80);
  return decode_code_point(at);
}

Utf8Part next_utf8_part(std::string_view text) {
  using Kind = Utf8Part::Kind;
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) {
    return {Kind::kValid, 1};
  }
  if (lead < 0xC2 || lead > 0xF4) {
    return {Kind::kInvalid, 1};
  }
  const uint32_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte is the one with narrower limits: no overlong forms, no surrogates, nothing past 10FFFF.
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  switch (lead) {
    case 0xE0:
      low = 0xA0;
      break;
    case 0xED:
      high = 0x9F;
      break;
    case 0xF0:
      low = 0x90;
      break;
    case 0xF4:
      high = 0x8F;
      break;
    default:
      break;
  }
  for (uint32_t i = 1; i < length; ++i) {
    if (i == text.size()) {
      return {Kind::kIncomplete, i};
    }
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < low || byte > high) {
      return {Kind::kInvalid, i};
    }
    low = 0x80;
    high = 0xBF;
  }
  return {Kind::kValid, length};
}

size_t valid_utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    while (text.size() - at >= 8) {
      uint64_t chunk;
      std::memcpy(&chunk, text.data() + at, 8);
      if ((chunk & 0x8080808080808080U) != 0) {
        break;
      }
      at += 8;
    }
    // Through the code points up to the next ASCII character, so that long runs of others stay in this loop.
    while (at < text.size()) {
      const Utf8Part part = next_utf8_part(text.substr(at));
      if (part.kind != Utf8Part::Kind::kValid) {
        return at;
      }
      at += part.length;
      if (part.length == 1) {
        break;
      }
    }
  }
  return at;
}

void append_valid_utf8(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const size_t valid = valid_utf8_prefix(text);
    out.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (!text.empty()) {
      out.append(kReplacement);
      text.remove_prefix(next_utf8_part(text).length);
    }
  }
}

}  // namespace hadal::tokenizer
