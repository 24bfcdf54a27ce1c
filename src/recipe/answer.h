#pragma once
// An answer as it grows: what all protocols know of it before they give it their shape.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recipe/response_generator.h"

namespace hadal::recipe {

enum class AnswerFinish { kStop, kStopSequence, kToolCalls, kLength, kContentFilter };

struct AnswerUsage {
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;
  uint64_t output_tokens = 0;
  std::optional<uint64_t> reasoning_tokens;
};

/// One of the things an answer is made of, in the order of the output. Neighbours of one kind are one item.
struct AnswerItem {
  enum class Kind { kReasoning, kContent, kCall };
  Kind kind = Kind::kContent;
  std::string text = {};  ///< of a call the JSON text of its arguments
  std::string name = {};  ///< of a call, as in the prompt
  std::string call_id = {};
  bool complete = true;                      ///< false for a call that the end of the output cut off
  std::vector<OutputTokenInfo> tokens = {};  ///< those with log-probabilities
};

struct Answer {
  std::vector<AnswerItem> items;
  AnswerUsage usage;
  std::optional<AnswerFinish> finish;
  std::string stop_sequence;  ///< for kStopSequence
};

/// Whether an answer ended before its own end.
inline bool incomplete(AnswerFinish finish) {
  return finish == AnswerFinish::kLength || finish == AnswerFinish::kContentFilter;
}

}  // namespace hadal::recipe
