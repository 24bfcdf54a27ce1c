#pragma once
// Cuts text into the pieces that byte-pair encoding then works on one by one.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/deepseek_split.h"
#include "tokenizer/regex_pattern.h"

namespace hadal::tokenizer {

/// One Split step of a tokenizer.json.
struct SplitStep {
  /// What becomes of a match. (A piece is never empty, whatever matches.)
  enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
  std::string pattern;
  bool literal = false;  ///< the pattern is plain text, not a regex
  Behavior behavior = Behavior::kIsolated;
  bool invert = false;  ///< matches and gaps change roles
  std::string place;    ///< where it stands in the file, for messages
};

/// A sequence of Split steps, each applied to every piece that the one before made. The DeepSeek sequence is
/// recognized by its exact regexes and done by hand; others run on PCRE2 (Unicode tables of that library).
class Pretokenizer {
 public:
  static Result<Pretokenizer> create(const std::vector<SplitStep>& steps);

  /// Calls `sink(begin, end)` for each piece of valid UTF-8, in order.
  template <class Sink>
  void split(std::string_view text, RegexWorkspace& workspace, Sink& sink) const {
    if (by_hand_) {
      DeepseekSplitter<Sink>(text, sink).run(text.data());
      return;
    }
    for (const std::string_view piece : split_by_patterns(text, workspace)) {
      sink(piece.data(), piece.data() + piece.size());
    }
  }

  bool by_hand() const { return by_hand_; }

 private:
  struct Step {
    RegexPattern pattern;
    SplitStep::Behavior behavior;
    bool invert;
  };
  using Pieces = std::vector<std::string_view>;
  static void apply(const Step& step, std::string_view text, RegexWorkspace& workspace, Pieces& pieces);
  Pieces split_by_patterns(std::string_view text, RegexWorkspace& workspace) const;

  bool by_hand_ = false;
  std::vector<Step> steps_;
};

}  // namespace hadal::tokenizer
