#include "recipe/responses/custom_input.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace hadal::recipe {

namespace {

constexpr std::string_view kPrefix = R"({"input": ")";
constexpr size_t kUnicodeEscape = 6;  // bytes of \uXXXX

/// The bytes that an escape has, judged by its first two; a high surrogate has a low one behind it.
size_t escape_size(std::string_view escape) {
  if (escape.size() < 2 || escape[1] != 'u') {
    return 2;
  }
  const bool high = escape.size() >= kUnicodeEscape && (escape[2] == 'd' || escape[2] == 'D') &&
                    std::string_view("89abAB").find(escape[3]) != std::string_view::npos;
  return high ? 2 * kUnicodeEscape : kUnicodeEscape;
}

}  // namespace

std::string CustomInput::push(std::string_view arguments) {
  switch (state_) {
    case State::kText:
      return unescape(arguments);
    case State::kDone:
      return {};
    case State::kOther:
      return std::string(arguments);
    case State::kPrefix:
      break;
  }
  prefix_ += arguments;
  const size_t common = std::min(prefix_.size(), kPrefix.size());
  if (std::string_view(prefix_).substr(0, common) != kPrefix.substr(0, common)) {
    state_ = State::kOther;
    return std::exchange(prefix_, {});
  }
  if (prefix_.size() < kPrefix.size()) {
    return {};
  }
  state_ = State::kText;
  return unescape(std::string_view(prefix_).substr(kPrefix.size()));
}

std::string CustomInput::cut_off() {
  return std::exchange(escape_, {});
}

std::string CustomInput::unescape(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size() && state_ == State::kText;) {
    if (!escape_.empty()) {
      escape_.push_back(text[at++]);
      end_escape(out);
      continue;
    }
    const size_t plain = std::min(text.find_first_of("\\\"", at), text.size());
    out += text.substr(at, plain - at);
    at = plain;
    if (at < text.size()) {
      if (text[at] == '\\') {
        escape_ = "\\";
      } else {
        state_ = State::kDone;
      }
      ++at;
    }
  }
  return out;
}

void CustomInput::end_escape(std::string& out) {
  if (escape_.size() < escape_size(escape_)) {
    return;
  }
  const auto value = nlohmann::json::parse("\"" + escape_ + "\"", nullptr, false);
  out += value.is_string() ? value.get<std::string>() : escape_;
  escape_.clear();
}

}  // namespace hadal::recipe
