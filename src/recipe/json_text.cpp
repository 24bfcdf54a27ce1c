#include "recipe/json_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <vector>

namespace hadal::recipe {
namespace {

/// The length of the part of `text` that needs no escape.
size_t plain_length(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101ULL;
  constexpr uint64_t kHighBits = 0x8080808080808080ULL;
  size_t at = 0;
  for (; text.size() - at >= 8; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    // As in the reader: the lowest marked byte is surely a quote, a backslash or below 0x20.
    const uint64_t quote = word ^ (kOnes * '"');
    const uint64_t backslash = word ^ (kOnes * '\\');
    const uint64_t stops =
        (((quote - kOnes) & ~quote) | ((backslash - kOnes) & ~backslash) | ((word - kOnes * 0x20) & ~word)) &
        kHighBits;
    if (stops != 0) {
      return at + static_cast<size_t>(std::countr_zero(stops)) / 8;
    }
  }
  while (at < text.size() && text[at] != '"' && text[at] != '\\' &&
         static_cast<unsigned char>(text[at]) >= 0x20) {
    ++at;
  }
  return at;
}

void append_escape(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\b':
      out += "\\b";
      break;
    case '\f':
      out += "\\f";
      break;
    default: {
      constexpr std::string_view kHex = "0123456789abcdef";
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
    }
  }
}

template <class Integer>
void append_integer(std::string& out, Integer value) {
  std::array<char, 24> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out.append(buffer.data(), end);
}

std::string_view comma(JsonStyle style) {
  return style == JsonStyle::kCompact ? "," : ", ";
}
std::string_view colon(JsonStyle style) {
  return style == JsonStyle::kCompact ? ":" : ": ";
}

void append_scalar(std::string& out, const Json& value, JsonStyle style) {
  switch (value.type()) {
    case Json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      break;
    case Json::value_t::number_integer:
      append_integer(out, value.get<int64_t>());
      break;
    case Json::value_t::number_unsigned:
      append_integer(out, value.get<uint64_t>());
      break;
    case Json::value_t::number_float:
      append_json_double(out, value.get<double>(), style);
      break;
    case Json::value_t::string:
      append_json_string(out, value.get_ref<const std::string&>());
      break;
    default:
      out += "null";
  }
}

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const size_t plain = plain_length(text);
    out.append(text.data(), plain);
    if (plain == text.size()) {
      return;
    }
    append_escape(out, text[plain]);
    text.remove_prefix(plain + 1);
  }
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  append_json_escaped(out, text);
  out += '"';
}

void append_json_double(std::string& out, double value, JsonStyle style) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::array<char, 40> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(value),
                                          std::chars_format::scientific);
  const std::string_view scientific(buffer.data(), static_cast<size_t>(end - buffer.data()));
  const size_t exponent_at = scientific.find('e');
  int exponent = 0;
  const bool negative_exponent = scientific[exponent_at + 1] == '-';
  std::from_chars(scientific.data() + exponent_at + 2, end, exponent);
  exponent = negative_exponent ? -exponent : exponent;
  // The significant digits without the point.
  std::string digits(scientific.substr(0, 1));
  if (exponent_at > 2) {
    digits += scientific.substr(2, exponent_at - 2);
  }

  if (std::signbit(value)) {
    out += '-';
  }
  const int smallest_decimal = style == JsonStyle::kPromptV41 ? -4 : -5;
  const auto num_digits = static_cast<int>(digits.size());
  if (exponent >= 16 || exponent < smallest_decimal) {
    out += digits[0];
    if (num_digits > 1) {
      out += '.';
      out.append(digits, 1);
    }
    out += exponent < 0 ? "e-" : "e+";
    const int magnitude = std::abs(exponent);
    if (magnitude < 10 && style == JsonStyle::kPromptV41) {
      out += '0';
    }
    append_integer(out, magnitude);
  } else if (exponent < 0) {
    out += "0.";
    out.append(static_cast<size_t>(-exponent - 1), '0');
    out += digits;
  } else if (num_digits <= exponent + 1) {
    out += digits;
    out.append(static_cast<size_t>(exponent + 1 - num_digits), '0');
    out += ".0";
  } else {
    out.append(digits, 0, static_cast<size_t>(exponent) + 1);
    out += '.';
    out.append(digits, static_cast<size_t>(exponent) + 1);
  }
}

void append_json(std::string& out, const JsonValue& value, JsonStyle style) {
  switch (value.kind()) {
    case JsonValue::Kind::kNull:
      out += "null";
      break;
    case JsonValue::Kind::kBool:
      out += value.as_bool() ? "true" : "false";
      break;
    case JsonValue::Kind::kInt:
      append_integer(out, value.as_int());
      break;
    case JsonValue::Kind::kUint:
      append_integer(out, value.as_uint());
      break;
    case JsonValue::Kind::kDouble:
      append_json_double(out, value.as_double(), style);
      break;
    case JsonValue::Kind::kString:
      append_json_string(out, value.as_string());
      break;
    case JsonValue::Kind::kArray: {
      out += '[';
      bool first = true;
      for (const JsonValue& item : value.items()) {
        out += first ? "" : comma(style);
        first = false;
        append_json(out, item, style);
      }
      out += ']';
      break;
    }
    case JsonValue::Kind::kObject: {
      out += '{';
      bool first = true;
      for (const JsonMember& member : value.members()) {
        out += first ? "" : comma(style);
        first = false;
        append_json_string(out, member.key);
        out += colon(style);
        append_json(out, member.value, style);
      }
      out += '}';
      break;
    }
  }
}

void append_json(std::string& out, const Json& value, JsonStyle style) {
  // Open arrays and objects, outermost first: where each continues and ends.
  struct Open {
    Json::const_iterator at;
    Json::const_iterator end;
    bool is_object;
    bool first;
  };
  std::vector<Open> open;
  const auto begin = [&](const Json& item) {
    if (item.is_structured()) {
      out += item.is_object() ? '{' : '[';
      open.push_back({item.cbegin(), item.cend(), item.is_object(), true});
    } else {
      append_scalar(out, item, style);
    }
  };
  begin(value);
  while (!open.empty()) {
    Open& top = open.back();
    if (top.at == top.end) {
      out += top.is_object ? '}' : ']';
      open.pop_back();
      continue;
    }
    out += top.first ? "" : comma(style);
    top.first = false;
    if (top.is_object) {
      append_json_string(out, top.at.key());
      out += colon(style);
    }
    const Json& item = *top.at;
    ++top.at;
    begin(item);
  }
}

}  // namespace hadal::recipe
