#pragma once
// Model outputs as JSON lines, for `hadal recipe parse` and for comparison with recorded cases.

#include <string>
#include <string_view>

#include "recipe/json_lines.h"

namespace hadal::recipe {

/// Answers one line with one line (without its line end): {"id","runs":[{"events":[...],"response":{...},
/// "stream_error"?}]}, or {"id","error"} for what cannot be read, with id null where it has none.
///
/// A line is a JSON object with `id`, `protocol`, `version`, `request`, `response_id`, `response_model` and
///   usage {prompt_tokens, prompt_cache_hit_tokens}, system_fingerprint, signature, special_tokens
///   {thinking_end, dsml}, finish (stop, length, content_filter), ready (false: no start), tokenizer (false:
///   none), parsing (in place of the request's own), text, runs [{chunking, chunk_kind, chunks}]: `whole` and
///   `char` cut `text`, others bring chunks of text, [text, tokens], token ids, or {ids, logprobs [[logprob,
///   [[id, logprob], ...]], ...]}, lossless (true: the parser as the server runs it; otherwise as the
///   reference, see GeneratorOptions).
std::string parse_line(std::string_view line, const TokenizerSet& tokenizers);

}  // namespace hadal::recipe
