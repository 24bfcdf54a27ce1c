#include "server/json_text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace hadal::server {
namespace {

/// Length of the valid UTF-8 sequence at the begin of `text`, 0 if there is none.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto is_tail = [&](size_t i) { return i < text.size() && (byte(i) & 0xc0U) == 0x80; };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xc2 && lead <= 0xdf) {
    return is_tail(1) ? 2 : 0;
  }
  if (lead >= 0xe0 && lead <= 0xef) {
    const bool is_bad = !is_tail(1) || !is_tail(2) || (lead == 0xe0 && byte(1) < 0xa0) ||
                        (lead == 0xed && byte(1) > 0x9f);  // too long, or a surrogate
    return is_bad ? 0 : 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const bool is_bad = !is_tail(1) || !is_tail(2) || !is_tail(3) || (lead == 0xf0 && byte(1) < 0x90) ||
                        (lead == 0xf4 && byte(1) > 0x8f);
    return is_bad ? 0 : 4;
  }
  return 0;
}

/// Bytes that stand for themselves in a JSON string.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (size_t byte = 0x20; byte < 0x80; ++byte) {
    plain[byte] = byte != '"' && byte != '\\';
  }
  return plain;
}();

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && kPlain[static_cast<unsigned char>(text[plain])]) {
      ++plain;
    }
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) {
      break;
    }
    const auto byte = static_cast<unsigned char>(text[0]);
    size_t length = 1;
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[0];
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\r') {
      out += "\\r";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    } else {
      length = sequence_length(text);
      if (length == 0) {
        out += "\xEF\xBF\xBD";
        length = 1;
      } else {
        out.append(text.substr(0, length));
      }
    }
    text.remove_prefix(length);
  }
  out += '"';
}

void append_json_integer(std::string& out, int64_t value) {
  std::array<char, 24> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), result.ptr);
}

void append_json_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::array<char, 40> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), result.ptr);
}

void append_event(std::string& out, std::string_view name, std::string_view data) {
  if (!name.empty()) {
    out += "event: ";
    out += name;
    out += '\n';
  }
  out += "data: ";
  out += data;
  out += "\n\n";
}

}  // namespace hadal::server
