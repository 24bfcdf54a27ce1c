#include "recipe/responses/documents.h"

#include <cstdint>

#include "recipe/json_value.h"

namespace hadal::recipe::responses {
namespace {

int base64_value(char c) {
  return c >= 'A' && c <= 'Z'   ? c - 'A'
         : c >= 'a' && c <= 'z' ? c - 'a' + 26
         : c >= '0' && c <= '9' ? c - '0' + 52
         : c == '+'             ? 62
         : c == '/'             ? 63
                                : -1;
}

std::optional<std::string> decode_base64(std::string_view text) {
  while (!text.empty() && text.back() == '=') {
    text.remove_suffix(1);
  }
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    const int value = base64_value(c);
    if (value < 0) {
      return std::nullopt;
    }
    bits = (bits << 6) | static_cast<uint32_t>(value);
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      out += static_cast<char>((bits >> num_bits) & 0xFF);
    }
  }
  return out;
}

}  // namespace

std::optional<std::string> text_of_data_url(std::string_view url) {
  constexpr std::string_view kBase64 = ";base64";
  const size_t comma = url.find(',');
  const std::string_view header = url.substr(0, comma);
  if (comma == std::string_view::npos || !header.ends_with(kBase64)) {
    return std::nullopt;
  }
  const std::string_view type = header.substr(0, header.find(';'));
  if (!type.starts_with("data:text/") && type != "data:application/json") {
    return std::nullopt;
  }
  std::optional<std::string> text = decode_base64(url.substr(comma + 1));
  if (text && find_invalid_utf8(*text) != std::string_view::npos) {
    return std::nullopt;
  }
  return text;
}

}  // namespace hadal::recipe::responses
