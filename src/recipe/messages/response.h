#pragma once
// Messages: the whole answer.

#include <optional>
#include <string>

#include "recipe/answer.h"

namespace hadal::recipe {

Json messages_usage(const AnswerUsage& usage);

/// {"stop_reason", "stop_sequence"}; null both while the answer goes on.
Json messages_stop(const Answer& answer);

/// A `message` with `content` as given.
Json message_object(const Answer& answer, const GeneratorOptions& options, Json content);

/// The whole `message`. `begins_with_thinking`: the first block is one of thinking, be it empty.
Json messages_response(const Answer& answer, const GeneratorOptions& options, bool begins_with_thinking);

}  // namespace hadal::recipe
