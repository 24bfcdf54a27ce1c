#include "recipe/schema/regex_syntax.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace hadal::recipe {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}

class Checker {
 public:
  explicit Checker(std::string_view pattern) : text_(pattern) {}

  bool check() {
    while (at_ < text_.size()) {
      if (!check_next()) {
        return false;
      }
    }
    return open_groups_.empty() && largest_reference_ <= num_groups_ && names_resolve();
  }

 private:
  enum class Last { kNothing, kAtom, kQuantified, kAssertion };

  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(std::string_view expected) {
    if (text_.substr(at_).starts_with(expected)) {
      at_ += expected.size();
      return true;
    }
    return false;
  }

  bool check_next() {
    const char c = text_[at_];
    switch (c) {
      case '(':
        ++at_;
        return open_group();
      case ')':
        ++at_;
        if (open_groups_.empty()) {
          return false;
        }
        last_ = open_groups_.back() ? Last::kAssertion : Last::kAtom;
        open_groups_.pop_back();
        return true;
      case '|':
        ++at_;
        last_ = Last::kNothing;
        return true;
      case '*':
      case '+':
      case '?':
        ++at_;
        return quantify();
      case '{':
        return check_braces() && quantify();
      case '[':
        ++at_;
        last_ = Last::kAtom;
        return check_class();
      case '\\':
        ++at_;
        last_ = Last::kAtom;
        return check_escape(nullptr);
      default:
        ++at_;
        last_ = Last::kAtom;
        return true;
    }
  }

  bool open_group() {
    bool assertion = false;
    if (take("?")) {
      if (take("=") || take("!") || take("<=") || take("<!")) {
        assertion = true;
      } else if (take(":")) {
      } else if (take("P<") || take("<")) {
        std::string_view name;
        if (!read_name(name) || !group_names_.insert(name).second) {
          return false;
        }
        ++num_groups_;
      } else {
        return check_flags();
      }
    } else {
      ++num_groups_;
    }
    open_groups_.push_back(assertion);
    last_ = Last::kNothing;
    return true;
  }

  /// `(?i)`, `(?i-s:...)`.
  bool check_flags() {
    const size_t start = at_;
    while (!at_end() && std::string_view("imsx-").find(peek()) != std::string_view::npos) {
      ++at_;
    }
    if (at_ == start) {
      return false;
    }
    if (take(")")) {
      last_ = Last::kNothing;
      return true;
    }
    if (take(":")) {
      open_groups_.push_back(false);
      last_ = Last::kNothing;
      return true;
    }
    return false;
  }

  bool read_name(std::string_view& name) {
    const size_t start = at_;
    while (!at_end() && (is_word(peek()) || static_cast<unsigned char>(peek()) >= 0x80)) {
      ++at_;
    }
    name = text_.substr(start, at_ - start);
    return !name.empty() && !is_digit(name[0]) && take(">");
  }

  bool quantify() {
    if (last_ != Last::kAtom) {
      // A second `?` or `+` makes a quantifier lazy or possessive; anything else has nothing to repeat.
      return false;
    }
    if (peek() == '?' || peek() == '+') {
      ++at_;
    }
    last_ = Last::kQuantified;
    return true;
  }

  /// `{3}`, `{3,}`, `{3,5}`.
  bool check_braces() {
    ++at_;
    std::optional<uint64_t> least = read_count();
    if (!least) {
      return false;
    }
    if (take("}")) {
      return true;
    }
    if (!take(",")) {
      return false;
    }
    if (take("}")) {
      return true;
    }
    const std::optional<uint64_t> most = read_count();
    return most && *least <= *most && take("}");
  }

  std::optional<uint64_t> read_count() {
    if (!is_digit(peek())) {
      return std::nullopt;
    }
    uint64_t count = 0;
    for (; is_digit(peek()); ++at_) {
      count = std::min<uint64_t>(count * 10 + static_cast<uint64_t>(peek() - '0'), uint64_t{1} << 40);
    }
    return count;
  }

  bool check_class() {
    take("^");
    // Code points that a range may begin or end with; nullopt: a set such as \d.
    std::optional<uint32_t> previous;
    bool in_range = false;
    bool first = true;
    while (true) {
      if (at_end()) {
        return false;
      }
      if (peek() == ']' && !first) {
        ++at_;
        return true;
      }
      first = false;
      if (text_.substr(at_).starts_with("[:")) {
        const size_t end = text_.find(":]", at_);
        if (end != std::string_view::npos && end - at_ < 16) {
          at_ = end + 2;
          previous.reset();
          in_range = false;
          continue;
        }
      }
      if (peek() == '-' && previous && at_ + 1 < text_.size() && text_[at_ + 1] != ']' && !in_range) {
        ++at_;
        in_range = true;
        continue;
      }
      std::optional<uint32_t> code;
      if (peek() == '\\') {
        ++at_;
        if (!check_escape(&code)) {
          return false;
        }
      } else {
        code = read_code_point();
      }
      if (in_range) {
        if (!code || *code < *previous) {
          return false;
        }
        in_range = false;
        previous.reset();
      } else {
        previous = code;
      }
    }
  }

  uint32_t read_code_point() {
    const auto lead = static_cast<unsigned char>(text_[at_++]);
    if (lead < 0x80) {
      return lead;
    }
    uint32_t code = lead >= 0xF0 ? lead & 0x07U : lead >= 0xE0 ? lead & 0x0FU : lead & 0x1FU;
    while (!at_end() && (static_cast<unsigned char>(peek()) & 0xC0) == 0x80) {
      code = (code << 6) | (static_cast<unsigned char>(text_[at_++]) & 0x3FU);
    }
    return code;
  }

  /// After the backslash. `code` (inside classes): set to the code point that the escape stands for, if it is
  /// one.
  bool check_escape(std::optional<uint32_t>* code) {
    if (at_end()) {
      return false;
    }
    const char c = text_[at_++];
    const auto stands_for = [&](uint32_t value) {
      if (code != nullptr) {
        *code = value;
      }
      return true;
    };
    switch (c) {
      case 'd':
      case 'D':
      case 'w':
      case 'W':
      case 's':
      case 'S':
        return true;
      case 'b':
        return stands_for('\b');
      case 'B':
      case 'A':
      case 'z':
        return code == nullptr;
      case 'f':
      case 'n':
      case 'r':
      case 't':
      case 'v':
        return stands_for(c == 'f' ? '\f' : c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : '\v');
      case 'c':
        if (!is_letter(peek())) {
          return false;
        }
        return stands_for(static_cast<uint32_t>(text_[at_++]) & 31U);
      case 'x':
      case 'u':
        return check_hex(c == 'x' ? 2 : 4, stands_for);
      case 'p':
      case 'P':
        return check_property();
      case 'k': {
        std::string_view name;
        if (code != nullptr || !take("<") || !read_name(name)) {
          return false;
        }
        used_names_.push_back(name);
        return true;
      }
      default:
        break;
    }
    if (is_digit(c)) {
      if (c == '0') {
        return !is_digit(peek()) && stands_for(0);
      }
      --at_;
      if (code != nullptr) {
        return false;
      }
      largest_reference_ = std::max(largest_reference_, *read_count());
      return true;
    }
    return !is_letter(c) && static_cast<unsigned char>(c) < 0x80 && stands_for(static_cast<unsigned char>(c));
  }

  template <class StandsFor>
  bool check_hex(size_t num_digits, StandsFor stands_for) {
    uint32_t value = 0;
    const auto add = [&value](char c) {
      const char folded = static_cast<char>(c | 0x20);
      value = value * 16 + static_cast<uint32_t>(is_digit(c) ? c - '0' : folded - 'a' + 10);
    };
    if (take("{")) {
      size_t digits = 0;
      for (; is_hex(peek()); ++at_, ++digits) {
        add(peek());
        if (value > 0x10FFFF) {
          return false;
        }
      }
      return digits != 0 && take("}") && stands_for(value);
    }
    for (size_t digit = 0; digit < num_digits; ++digit, ++at_) {
      if (!is_hex(peek())) {
        return false;
      }
      add(peek());
    }
    return stands_for(value);
  }

  bool check_property() {
    if (is_letter(peek())) {
      ++at_;
      return true;
    }
    if (!take("{")) {
      return false;
    }
    take("^");
    const size_t start = at_;
    while (is_word(peek()) || peek() == '=' || peek() == ' ' || peek() == '-') {
      ++at_;
    }
    return at_ != start && take("}");
  }

  bool names_resolve() const {
    return std::all_of(used_names_.begin(), used_names_.end(),
                       [this](std::string_view name) { return group_names_.contains(name); });
  }

  std::string_view text_;
  size_t at_ = 0;
  Last last_ = Last::kNothing;
  std::vector<bool> open_groups_;  ///< whether each is an assertion, which cannot be repeated
  uint64_t num_groups_ = 0;
  uint64_t largest_reference_ = 0;
  std::set<std::string_view> group_names_;
  std::vector<std::string_view> used_names_;
};

}  // namespace

bool is_regex(std::string_view pattern) {
  return Checker(pattern).check();
}

}  // namespace hadal::recipe
