#include "tokenizer/pretokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hadal::tokenizer {
namespace {

constexpr std::array<std::string_view, 3> kDeepseekPatterns = {
    R"(\p{N}{1,3})",
    "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
};

bool is_deepseek(const std::vector<SplitStep>& steps) {
  return std::equal(steps.begin(), steps.end(), kDeepseekPatterns.begin(), kDeepseekPatterns.end(),
                    [](const SplitStep& step, std::string_view pattern) {
                      return step.pattern == pattern && !step.literal && !step.invert &&
                             step.behavior == SplitStep::Behavior::kIsolated;
                    });
}

/// A match or the gap between two matches.
struct Part {
  size_t begin;
  size_t end;
  bool is_match;
};

/// Matches and gaps cover the text. An empty match right after a match does not count.
std::vector<Part> find_parts(const RegexPattern& pattern, std::string_view text, RegexWorkspace& workspace) {
  std::vector<Part> parts;
  size_t covered = 0;
  size_t from = 0;
  while (from <= text.size()) {
    const auto match = pattern.find(text, from, workspace);
    if (!match) {
      break;
    }
    const bool empty = match->begin == match->end;
    if (!empty || parts.empty() || match->begin != covered) {
      if (match->begin != covered) {
        parts.push_back({covered, match->begin, false});
      }
      parts.push_back({match->begin, match->end, true});
      covered = match->end;
    }
    from = match->end;
    if (empty) {
      from += from < text.size() ? decode_code_point(text.data() + from).length : 1;
    }
  }
  if (covered != text.size()) {
    parts.push_back({covered, text.size(), false});
  }
  return parts;
}

}  // namespace

std::span<const std::string_view, 3> deepseek_split_patterns() {
  return kDeepseekPatterns;
}

Result<Pretokenizer> Pretokenizer::create(const std::vector<SplitStep>& steps) {
  Pretokenizer pretokenizer;
  if (is_deepseek(steps)) {
    pretokenizer.by_hand_ = true;
    return pretokenizer;
  }
  for (const SplitStep& step : steps) {
    if (step.pattern.empty()) {
      return fail(ErrorCode::kUnsupported, "{}: an empty pattern", step.place);
    }
    auto pattern =
        step.literal ? RegexPattern::compile_literal(step.pattern) : RegexPattern::compile(step.pattern);
    if (!pattern) {
      return fail_within(step.place, std::move(pattern).error());
    }
    pretokenizer.steps_.push_back({std::move(*pattern), step.behavior, step.invert});
  }
  return pretokenizer;
}

void Pretokenizer::apply(const Step& step, std::string_view text, RegexWorkspace& workspace, Pieces& pieces) {
  using Behavior = SplitStep::Behavior;
  std::vector<Part> parts = find_parts(step.pattern, text, workspace);
  if (step.invert) {
    for (Part& part : parts) {
      part.is_match = !part.is_match;
    }
  }
  // Which neighbours grow together: part i with part i - 1.
  const auto joins_previous = [&](size_t i) {
    switch (step.behavior) {
      case Behavior::kContiguous:
        return parts[i].is_match == parts[i - 1].is_match;
      case Behavior::kMergedWithPrevious:
        return parts[i].is_match && !parts[i - 1].is_match;
      case Behavior::kMergedWithNext:
        return parts[i - 1].is_match && !parts[i].is_match;
      case Behavior::kRemoved:
      case Behavior::kIsolated:
        break;
    }
    return false;
  };
  for (size_t i = 0; i < parts.size();) {
    size_t last = i;
    while (last + 1 < parts.size() && joins_previous(last + 1)) {
      ++last;
    }
    const bool removed = step.behavior == Behavior::kRemoved && parts[i].is_match;
    if (!removed && parts[i].begin != parts[last].end) {
      pieces.push_back(text.substr(parts[i].begin, parts[last].end - parts[i].begin));
    }
    i = last + 1;
  }
}

Pretokenizer::Pieces Pretokenizer::split_by_patterns(std::string_view text, RegexWorkspace& workspace) const {
  Pieces pieces;
  if (!text.empty()) {
    pieces.push_back(text);
  }
  Pieces next;
  for (const Step& step : steps_) {
    next.clear();
    for (const std::string_view piece : pieces) {
      apply(step, piece, workspace, next);
    }
    pieces.swap(next);
  }
  return pieces;
}

}  // namespace hadal::tokenizer
