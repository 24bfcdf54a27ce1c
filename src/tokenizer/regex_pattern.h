#pragma once
// A regular expression for split patterns that are not known by hand: PCRE2, set up to read the syntax of
// the reference's engine (Oniguruma, Ruby syntax) the same way, and refusing what the two read differently.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hadal::tokenizer {

/// The memory of running matches. Not for two threads at once; create one per thread of work.
class RegexWorkspace {
 public:
  RegexWorkspace();
  ~RegexWorkspace();
  RegexWorkspace(const RegexWorkspace&) = delete;
  RegexWorkspace& operator=(const RegexWorkspace&) = delete;

 private:
  friend class RegexPattern;
  struct Impl;
  std::unique_ptr<Impl> impl_;  ///< made when first needed: known patterns never do
};

/// A compiled pattern; immutable, safe to use from many threads.
class RegexPattern {
 public:
  /// kCorrupt: not a regular expression (the message has PCRE2's reason and offset). kUnsupported: longer
  /// than 64 KiB, or a construct that PCRE2 reads differently.
  static Result<RegexPattern> compile(std::string_view pattern);
  /// A pattern that matches exactly `text`, which must not be empty.
  static Result<RegexPattern> compile_literal(std::string_view text);

  RegexPattern(RegexPattern&&) noexcept;
  RegexPattern& operator=(RegexPattern&&) noexcept;
  ~RegexPattern();

  struct Match {
    size_t begin;
    size_t end;
  };
  /// The first match in valid UTF-8 `text` that starts at `from` or later. The work of one call is limited;
  /// when the limit is reached there is no match, and a warning is logged.
  std::optional<Match> find(std::string_view text, size_t from, RegexWorkspace& workspace) const;

 private:
  struct Code;
  explicit RegexPattern(std::unique_ptr<Code> code);
  static Result<RegexPattern> compile_with(std::string_view pattern, uint32_t options);
  std::unique_ptr<Code> code_;
};

}  // namespace hadal::tokenizer
