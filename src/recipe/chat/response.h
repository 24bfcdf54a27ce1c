#pragma once
// Chat Completions: the whole answer.

#include <string_view>

#include "recipe/answer.h"

namespace hadal::recipe {

/// Contents that calls stand between are joined by this.
inline constexpr std::string_view kChatContentSeparator = "\n\n";

Json chat_usage(const AnswerUsage& usage);
std::string_view chat_finish_reason(AnswerFinish finish);

/// A `chat.completion`. `tokenizer` is needed for log-probabilities only.
Json chat_response(const Answer& answer, const GeneratorOptions& options, bool thinking,
                   const tokenizer::Tokenizer* tokenizer);

}  // namespace hadal::recipe
