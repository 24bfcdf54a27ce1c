#pragma once
// The request fields that Responses objects repeat.

#include "recipe/prepared_request.h"
#include "recipe/responses/request.h"

namespace hadal::recipe::responses {

/// instructions, max_output_tokens, reasoning, temperature, text, tool_choice, tools (those that are served),
/// top_logprobs, top_p and user, as asked, with null for what was left open.
Json make_echo(const Request& request);

}  // namespace hadal::recipe::responses
