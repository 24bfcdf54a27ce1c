#include "tokenizer/regex_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <array>
#include <cstdint>
#include <utility>

#include <pcre2.h>

#include "base/log.h"

namespace hadal::tokenizer {
namespace {

constexpr size_t kMaxPatternBytes = size_t{64} << 10;
constexpr uint32_t kMatchLimit = 10'000'000;
constexpr uint32_t kDepthLimit = 100'000;
constexpr uint32_t kHeapLimitKib = 64U << 10;
constexpr size_t kJitStackStart = size_t{32} << 10;
constexpr size_t kJitStackMax = size_t{8} << 20;

struct ContextFree {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

/// The first construct that Oniguruma and PCRE2 both accept with different meanings, or that is about match
/// state instead of text; empty if there is none.
std::string_view different_construct(std::string_view pattern) {
  bool in_class = false;
  for (size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    const std::string_view rest = pattern.substr(at);
    if (c == '\\') {
      ++at;
      if (at < pattern.size() &&
          std::string_view("hHRXKGyYNOQECgk").find(pattern[at]) != std::string_view::npos) {
        return rest.substr(0, 2);
      }
      continue;
    }
    if (in_class) {
      if (rest.starts_with("&&")) {
        return "&& in a character class";
      }
      if (rest.starts_with("[:")) {
        const size_t close = rest.find(":]");
        if (close != std::string_view::npos) {
          at += close + 1;
          continue;
        }
      }
      if (c == '[') {
        return "a character class inside a character class";
      }
      in_class = c != ']';
      continue;
    }
    if (c == '[') {
      in_class = true;
      // A closing bracket that comes first is a member.
      size_t first = at + 1;
      first += first < pattern.size() && pattern[first] == '^' ? 1 : 0;
      at = first < pattern.size() && pattern[first] == ']' ? first : first - 1;
      continue;
    }
    if (rest.starts_with("(?") || rest.starts_with("(*")) {
      if (rest[1] == '*') {
        return "(*";
      }
      // Inline options: (?m) is "dot matches newline" in Ruby, and others exist in one engine only.
      const size_t stop = rest.find_first_not_of("imsxaunWDSPyJUR-", 2);
      if (stop != std::string_view::npos && stop > 2 && (rest[stop] == ')' || rest[stop] == ':') &&
          rest.substr(2, stop - 2).find_first_not_of("i-") != std::string_view::npos) {
        return rest.substr(0, stop + 1);
      }
      if (stop != std::string_view::npos && stop == 2 &&
          (rest[2] == '|' || rest[2] == 'C' || rest[2] == '&' || rest[2] == '+' ||
           (rest[2] >= '0' && rest[2] <= '9'))) {
        return rest.substr(0, 3);
      }
    }
  }
  return {};
}

}  // namespace

struct RegexPattern::Code {
  pcre2_code* code = nullptr;
  Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
};

struct RegexWorkspace::Impl {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr);

  Impl() {
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_depth_limit(context, kDepthLimit);
    pcre2_set_heap_limit(context, kHeapLimitKib);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
};

RegexWorkspace::RegexWorkspace() = default;
RegexWorkspace::~RegexWorkspace() = default;

RegexPattern::RegexPattern(std::unique_ptr<Code> code) : code_(std::move(code)) {}
RegexPattern::RegexPattern(RegexPattern&&) noexcept = default;
RegexPattern& RegexPattern::operator=(RegexPattern&&) noexcept = default;
RegexPattern::~RegexPattern() = default;

Result<RegexPattern> RegexPattern::compile_with(std::string_view pattern, uint32_t options) {
  if (pattern.size() > kMaxPatternBytes) {
    return fail(ErrorCode::kUnsupported, "a pattern of {} bytes, expected at most {}", pattern.size(),
                kMaxPatternBytes);
  }
  const std::unique_ptr<pcre2_compile_context, ContextFree> context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto code = std::make_unique<Code>();
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                             options | PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context.get());
  if (code->code == nullptr) {
    std::array<char, 256> reason{};
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(reason.data()), reason.size());
    return fail(ErrorCode::kCorrupt, "not a regular expression, at byte {} of \"{}\": {}", offset,
                printable(pattern), reason.data());
  }
  // Where executable memory is forbidden this fails, and matching falls back to PCRE2's interpreter.
  (void)pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE);
  return RegexPattern(std::move(code));
}

Result<RegexPattern> RegexPattern::compile(std::string_view pattern) {
  if (const std::string_view construct = different_construct(pattern); !construct.empty()) {
    return fail(ErrorCode::kUnsupported, "{} in the regular expression \"{}\" has no safe equivalent here",
                printable(construct), printable(pattern));
  }
  // In Ruby ^ and $ are always about lines.
  return compile_with(pattern, PCRE2_UCP | PCRE2_MULTILINE);
}

Result<RegexPattern> RegexPattern::compile_literal(std::string_view text) {
  return compile_with(text, PCRE2_LITERAL);
}

std::optional<RegexPattern::Match> RegexPattern::find(std::string_view text, size_t from,
                                                      RegexWorkspace& workspace) const {
  if (!workspace.impl_) {
    workspace.impl_ = std::make_unique<RegexWorkspace::Impl>();
  }
  const RegexWorkspace::Impl& impl = *workspace.impl_;
  const int found = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                PCRE2_NO_UTF_CHECK, impl.data, impl.context);
  if (found < 0) {
    if (found != PCRE2_ERROR_NOMATCH) {
      spdlog::warn(
          "tokenizer: a split pattern gave up with PCRE2 error {} at byte {} of {}; the rest stays whole",
          found, from, text.size());
    }
    return std::nullopt;
  }
  const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(impl.data);
  return Match{bounds[0], bounds[1]};
}

}  // namespace hadal::tokenizer
