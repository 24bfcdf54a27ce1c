// The JSON parser: one pass, recursion bounded by JsonLimits::max_depth.

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <vector>

#include "recipe/json_value.h"

namespace hadal::recipe {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101ULL;
constexpr uint64_t kHighBits = 0x8080808080808080ULL;

uint64_t load8(const char* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

/// A high bit in each byte that is a quote, a backslash or below 0x20. Bytes above the lowest hit may be
/// marked wrongly (borrow of the subtraction), so that only the lowest is used.
uint64_t string_stops(uint64_t word) {
  const uint64_t quote = word ^ (kOnes * '"');
  const uint64_t backslash = word ^ (kOnes * '\\');
  const uint64_t has_quote = (quote - kOnes) & ~quote;
  const uint64_t has_backslash = (backslash - kOnes) & ~backslash;
  const uint64_t has_control = (word - kOnes * 0x20) & ~word;
  return (has_quote | has_backslash | has_control) & kHighBits;
}

void append_utf8(char*& out, uint32_t code) {
  const auto put = [&out](uint32_t byte) { *out++ = static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Reader {
 public:
  Reader(std::string_view text, JsonArena& arena, const JsonLimits& limits)
      : begin_(text.data()),
        at_(text.data()),
        end_(text.data() + text.size()),
        arena_(arena),
        limits_(limits) {}

  Result<JsonValue> read() {
    JsonValue value;
    skip_space();
    if (!read_value(value, 0)) {
      return fail(ErrorCode::kInvalidArgument, "{} at byte {}", reason_, at_ - begin_);
    }
    skip_space();
    if (at_ != end_) {
      return fail(ErrorCode::kInvalidArgument, "unexpected text after the value at byte {}", at_ - begin_);
    }
    return value;
  }

 private:
  bool stop(std::string_view reason) {
    reason_ = reason;
    return false;
  }

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) {
      ++at_;
    }
  }

  bool read_value(JsonValue& value, size_t depth) {
    if (at_ == end_) {
      return stop("the text ends where a value is expected");
    }
    if (++num_values_ > limits_.max_values) {
      return stop("too many values");
    }
    switch (*at_) {
      case '{':
        return depth < limits_.max_depth ? read_object(value, depth + 1) : stop("nested too deeply");
      case '[':
        return depth < limits_.max_depth ? read_array(value, depth + 1) : stop("nested too deeply");
      case '"': {
        std::string_view text;
        if (!read_string(text)) {
          return false;
        }
        value = JsonValue::string(text);
        return true;
      }
      case 't':
        value = JsonValue::boolean(true);
        return read_word("true");
      case 'f':
        value = JsonValue::boolean(false);
        return read_word("false");
      case 'n':
        value = JsonValue();
        return read_word("null");
      default:
        return read_number(value);
    }
  }

  bool read_word(std::string_view word) {
    if (static_cast<size_t>(end_ - at_) < word.size() || std::memcmp(at_, word.data(), word.size()) != 0) {
      return stop("expected a value");
    }
    at_ += word.size();
    return true;
  }

  bool read_array(JsonValue& value, size_t depth) {
    ++at_;
    skip_space();
    if (at_ != end_ && *at_ == ']') {
      ++at_;
      value = JsonValue::array({});
      return true;
    }
    const size_t first = values_.size();
    while (true) {
      JsonValue item;
      skip_space();
      if (!read_value(item, depth)) {
        return false;
      }
      values_.push_back(item);
      skip_space();
      if (at_ == end_) {
        return stop("the text ends inside a list");
      }
      if (*at_ == ']') {
        break;
      }
      if (*at_ != ',') {
        return stop("expected `,` or `]`");
      }
      ++at_;
    }
    ++at_;
    value = JsonValue::array(arena_.copy(std::span<const JsonValue>(values_).subspan(first)));
    values_.resize(first);
    return true;
  }

  bool read_object(JsonValue& value, size_t depth) {
    ++at_;
    skip_space();
    if (at_ != end_ && *at_ == '}') {
      ++at_;
      value = JsonValue::object({});
      return true;
    }
    const size_t first = members_.size();
    while (true) {
      JsonMember member;
      skip_space();
      if (at_ == end_) {
        return stop("the text ends inside an object");
      }
      if (*at_ != '"') {
        return stop("expected a key");
      }
      if (!read_string(member.key)) {
        return false;
      }
      skip_space();
      if (at_ == end_) {
        return stop("the text ends inside an object");
      }
      if (*at_ != ':') {
        return stop("expected `:`");
      }
      ++at_;
      skip_space();
      if (!read_value(member.value, depth)) {
        return false;
      }
      members_.push_back(member);
      skip_space();
      if (at_ == end_) {
        return stop("the text ends inside an object");
      }
      if (*at_ == '}') {
        break;
      }
      if (*at_ != ',') {
        return stop("expected `,` or `}`");
      }
      ++at_;
    }
    ++at_;
    merge_repeated_keys(first);
    value = JsonValue::object(arena_.copy(std::span<const JsonMember>(members_).subspan(first)));
    members_.resize(first);
    return true;
  }

  /// First place, last value. Small objects compare all pairs; large ones sort, as a hash table could be
  /// made slow by chosen keys.
  void merge_repeated_keys(size_t first) {
    const std::span<JsonMember> members = std::span(members_).subspan(first);
    std::vector<bool> drop;
    const auto merge = [&](size_t early, size_t late) {
      members[early].value = members[late].value;
      drop.resize(members.size());
      drop[late] = true;
    };
    constexpr size_t kSmall = 16;
    if (members.size() <= kSmall) {
      for (size_t late = 1; late < members.size(); ++late) {
        for (size_t early = 0; early < late; ++early) {
          if (members[early].key == members[late].key) {
            merge(early, late);
            break;
          }
        }
      }
    } else {
      std::vector<uint32_t> order(members.size());
      for (size_t index = 0; index < order.size(); ++index) {
        order[index] = static_cast<uint32_t>(index);
      }
      std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        const int compared = members[a].key.compare(members[b].key);
        return compared != 0 ? compared < 0 : a < b;
      });
      size_t run = 0;
      for (size_t index = 1; index < order.size(); ++index) {
        if (members[order[index]].key == members[order[run]].key) {
          merge(order[run], order[index]);
        } else {
          run = index;
        }
      }
    }
    if (!drop.empty()) {
      size_t kept = 0;
      for (size_t index = 0; index < members.size(); ++index) {
        if (!drop[index]) {
          members[kept++] = members[index];
        }
      }
      members_.resize(first + kept);
    }
  }

  /// Moves to the next quote, backslash or control character, or to the end.
  void skip_plain() {
    while (end_ - at_ >= 8) {
      const uint64_t stops = string_stops(load8(at_));
      if (stops != 0) {
        at_ += std::countr_zero(stops) / 8;
        return;
      }
      at_ += 8;
    }
    while (at_ != end_ && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= 0x20) {
      ++at_;
    }
  }

  bool read_string(std::string_view& text) {
    ++at_;
    const char* start = at_;
    skip_plain();
    if (at_ == end_) {
      return stop("the text ends inside a string");
    }
    if (*at_ == '"') {
      text = {start, static_cast<size_t>(at_ - start)};
      ++at_;
      return true;
    }
    return read_escaped_string(start, text);
  }

  bool read_escaped_string(const char* start, std::string_view& text) {
    // The end quote is found first, so that the arena gives one block that surely holds the result (an
    // escape is never shorter than what it stands for).
    const char* close = at_;
    while (true) {
      if (close == end_) {
        at_ = end_;
        return stop("the text ends inside a string");
      }
      if (*close == '"') {
        break;
      }
      if (static_cast<unsigned char>(*close) < 0x20) {
        at_ = close;
        return stop("a control character inside a string");
      }
      if (*close == '\\' && ++close == end_) {
        at_ = end_;
        return stop("the text ends inside a string");
      }
      ++close;
      const char* before = at_;
      at_ = close;
      skip_plain();
      close = at_;
      at_ = before;
    }
    char* const place = arena_.allocate_text(static_cast<size_t>(close - start));
    char* out = place;
    const auto copy_to = [&](const char* until) {
      std::memcpy(out, start, static_cast<size_t>(until - start));
      out += until - start;
    };
    while (true) {
      skip_plain();
      copy_to(at_);
      if (at_ == close) {
        break;
      }
      if (!read_escape(out)) {
        return false;
      }
      start = at_;
    }
    ++at_;
    text = {place, static_cast<size_t>(out - place)};
    return true;
  }

  bool read_escape(char*& out) {
    ++at_;
    switch (*at_++) {
      case '"':
        *out++ = '"';
        return true;
      case '\\':
        *out++ = '\\';
        return true;
      case '/':
        *out++ = '/';
        return true;
      case 'b':
        *out++ = '\b';
        return true;
      case 'f':
        *out++ = '\f';
        return true;
      case 'n':
        *out++ = '\n';
        return true;
      case 'r':
        *out++ = '\r';
        return true;
      case 't':
        *out++ = '\t';
        return true;
      case 'u':
        return read_unicode_escape(out);
      default:
        --at_;
        return stop("an unknown escape inside a string");
    }
  }

  bool read_unicode_escape(char*& out) {
    uint32_t code = 0;
    if (!read_hex4(code)) {
      return false;
    }
    if (code >= 0xDC00 && code <= 0xDFFF) {
      return stop("a lone surrogate escape");
    }
    if (code >= 0xD800 && code <= 0xDBFF) {
      uint32_t low = 0;
      if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') {
        return stop("a lone surrogate escape");
      }
      at_ += 2;
      if (!read_hex4(low)) {
        return false;
      }
      if (low < 0xDC00 || low > 0xDFFF) {
        return stop("a lone surrogate escape");
      }
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(out, code);
    return true;
  }

  bool read_hex4(uint32_t& code) {
    if (end_ - at_ < 4) {
      return stop("a bad \\u escape");
    }
    code = 0;
    for (int digit = 0; digit < 4; ++digit, ++at_) {
      const char c = *at_;
      code <<= 4;
      if (is_digit(c)) {
        code |= static_cast<uint32_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        code |= static_cast<uint32_t>(c - 'a' + 10);
      } else if (c >= 'A' && c <= 'F') {
        code |= static_cast<uint32_t>(c - 'A' + 10);
      } else {
        return stop("a bad \\u escape");
      }
    }
    return true;
  }

  bool read_number(JsonValue& value) {
    const char* const start = at_;
    const bool negative = *at_ == '-';
    at_ += negative ? 1 : 0;
    if (at_ == end_ || !is_digit(*at_)) {
      return stop("expected a value");
    }
    const bool leading_zero = *at_ == '0';
    uint64_t magnitude = 0;
    bool exact = true;
    const char* const digits = at_;
    for (; at_ != end_ && is_digit(*at_); ++at_) {
      const auto digit = static_cast<uint64_t>(*at_ - '0');
      exact = exact && magnitude <= (UINT64_MAX - digit) / 10;
      magnitude = magnitude * 10 + digit;
    }
    if (leading_zero && at_ - digits > 1) {
      return stop("a number with a leading zero");
    }
    bool integer = true;
    if (at_ != end_ && *at_ == '.') {
      integer = false;
      ++at_;
      if (at_ == end_ || !is_digit(*at_)) {
        return stop("a number without digits after its point");
      }
      while (at_ != end_ && is_digit(*at_)) {
        ++at_;
      }
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      integer = false;
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) {
        ++at_;
      }
      if (at_ == end_ || !is_digit(*at_)) {
        return stop("a number without digits in its exponent");
      }
      while (at_ != end_ && is_digit(*at_)) {
        ++at_;
      }
    }
    if (integer && exact && !negative) {
      value = JsonValue::unsigned_integer(magnitude);
      return true;
    }
    constexpr uint64_t kMostNegative = uint64_t{1} << 63;
    if (integer && exact && magnitude != 0 && magnitude <= kMostNegative) {
      value = JsonValue::integer(static_cast<int64_t>(~magnitude + 1));
      return true;
    }
    return read_double(start, value);
  }

  bool read_double(const char* start, JsonValue& value) {
    double number = 0;
    const auto [stopped, error] = std::from_chars(start, at_, number);
    if (error == std::errc::result_out_of_range) {
      // Too large and too small are reported alike; a value is small if its first digit stands behind the
      // point once the exponent is applied.
      if (!is_tiny({start, static_cast<size_t>(at_ - start)})) {
        return stop("a number out of range");
      }
      number = *start == '-' ? -0.0 : 0.0;
    }
    value = JsonValue::number(number);
    return true;
  }

  static bool is_tiny(std::string_view number) {
    const size_t exponent_at = number.find_first_of("eE");
    const std::string_view mantissa = number.substr(0, exponent_at);
    int64_t exponent = 0;
    if (exponent_at != std::string_view::npos) {
      bool negative = false;
      for (const char c : number.substr(exponent_at + 1)) {
        negative = negative || c == '-';
        if (is_digit(c)) {
          exponent = std::min<int64_t>(exponent * 10 + (c - '0'), int64_t{1} << 40);
        }
      }
      exponent = negative ? -exponent : exponent;
    }
    const size_t point = std::min(mantissa.find('.'), mantissa.size());
    const size_t first = mantissa.find_first_of("123456789");
    if (first == std::string_view::npos) {
      return true;
    }
    return exponent + static_cast<int64_t>(point) - static_cast<int64_t>(first) < 0;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  JsonArena& arena_;
  const JsonLimits& limits_;
  std::string_view reason_;
  size_t num_values_ = 0;
  // Elements of the arrays and objects that are still open, innermost last.
  std::vector<JsonValue> values_;
  std::vector<JsonMember> members_;
};

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  const size_t size = text.size();
  size_t at = 0;
  const auto continues = [&](size_t index) { return index < size && (bytes[index] & 0xC0) == 0x80; };
  while (at < size) {
    if (size - at >= 8 && (load8(text.data() + at) & kHighBits) == 0) {
      at += 8;
      continue;
    }
    const unsigned char lead = bytes[at];
    if (lead < 0x80) {
      ++at;
    } else if (lead >= 0xC2 && lead <= 0xDF) {
      if (!continues(at + 1)) {
        return at;
      }
      at += 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      if (!continues(at + 1) || !continues(at + 2) || (lead == 0xE0 && bytes[at + 1] < 0xA0) ||
          (lead == 0xED && bytes[at + 1] > 0x9F)) {
        return at;
      }
      at += 3;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      if (!continues(at + 1) || !continues(at + 2) || !continues(at + 3) ||
          (lead == 0xF0 && bytes[at + 1] < 0x90) || (lead == 0xF4 && bytes[at + 1] > 0x8F)) {
        return at;
      }
      at += 4;
    } else {
      return at;
    }
  }
  return std::string_view::npos;
}

Result<JsonValue> read_json(std::string_view text, JsonArena& arena, const JsonLimits& limits) {
  if (text.size() > std::min(limits.max_bytes, size_t{UINT32_MAX})) {
    return fail(ErrorCode::kResourceExhausted, "{} bytes, at most {} are read", text.size(),
                limits.max_bytes);
  }
  if (const size_t invalid = find_invalid_utf8(text); invalid != std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument, "invalid UTF-8 at byte {}", invalid);
  }
  return Reader(text, arena, limits).read();
}

}  // namespace hadal::recipe
