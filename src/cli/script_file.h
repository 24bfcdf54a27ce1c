#pragma once
// The file of `hadal serve --script`: JSON lines, an answer each. docs/script.md describes it.

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/scripted_engine.h"
#include "tokenizer/tokenizer.h"

namespace hadal::cli {

/// Reads a script of at most 256 MiB. kInvalidArgument names the file, the line and the field.
Result<std::vector<engine::ScriptedAnswer>> read_script(const std::filesystem::path& file,
                                                        const tokenizer::Tokenizer& tokenizer);

/// The same from text; lines are named after `source_name`.
Result<std::vector<engine::ScriptedAnswer>> parse_script(std::string_view text, std::string_view source_name,
                                                         const tokenizer::Tokenizer& tokenizer);

/// The ids of text that comes in pieces, a list for each. Each piece is encoded by itself, so that its text
/// comes when it does; but the spelling of a special token is that token wherever it is cut, and comes with
/// the piece that completes it, as a model would give it.
std::vector<std::vector<int32_t>> encode_pieces(const std::vector<std::string>& pieces,
                                                const tokenizer::Tokenizer& tokenizer);

}  // namespace hadal::cli
