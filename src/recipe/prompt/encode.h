#pragma once
// Prompt -> token ids.

#include <cstdint>
#include <vector>

#include "recipe/prepared_request.h"
#include "tokenizer/tokenizer.h"

namespace hadal::recipe {

/// The ids of a prompt: each special range is exactly one id, and the text between them is encoded without
/// the added vocabulary, piece by piece, so that text of a request can never become a control token. A
/// spelling that the tokenizer does not have as an added token is an error (kUnsupported) that names it.
/// An image placeholder becomes one id; what else an image adds is up to the caller (see Prompt::images).
Result<std::vector<int32_t>> encode_prompt(const Prompt& prompt, const tokenizer::Tokenizer& tokenizer);

}  // namespace hadal::recipe
