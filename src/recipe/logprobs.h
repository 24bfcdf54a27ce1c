#pragma once
// Log-probabilities of output tokens as Chat and Responses show them.

#include <span>
#include <string>

#include "recipe/response_generator.h"

namespace hadal::recipe {

/// Appends a JSON list of entries {token, logprob, bytes, top_logprobs}. The text of a token that is not
/// UTF-8 is shown as `\xNN` for each of its bytes.
void append_logprobs(std::string& out, std::span<const OutputTokenInfo> tokens,
                     const tokenizer::Tokenizer& tokenizer);

/// The same list as a value.
Json logprobs_json(std::span<const OutputTokenInfo> tokens, const tokenizer::Tokenizer& tokenizer);

}  // namespace hadal::recipe
