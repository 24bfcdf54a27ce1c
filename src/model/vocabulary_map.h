#pragma once
// The compressed vocabulary of the Engram hash: tokens that read alike (case, accents, spacing) share an id.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace hadal::model {

/// What two token texts must agree in: compatibility decomposition (NFKC, then NFD), without combining marks
/// (categories Mn, Mc, Me), in lower case character by character, runs of space, tab and line breaks as one
/// space, without White_Space at both ends; but a text that comes to exactly " " stays " ". `text` is UTF-8.
std::string normalize_token_text(std::string_view text);

/// Compressed id of each token id in [0, tokenizer.vocab_size()), numbered by first appearance of the key.
/// The key of a token is its normalized text, its text if nothing of that is left, or its vocabulary spelling
/// if its bytes are no text. kUnsupported for more than 2^24 ids.
Result<std::vector<int32_t>> build_vocabulary_map(const tokenizer::Tokenizer& tokenizer);

}  // namespace hadal::model
