#pragma once
// Requests as JSON lines, for `hadal recipe render` and for comparison with recorded cases.

#include <memory>
#include <string>
#include <string_view>

#include "recipe/prepared_request.h"
#include "tokenizer/tokenizer.h"

namespace hadal::recipe {

/// The tokenizer of each model version; a missing one leaves `token_ids` out of the results.
struct TokenizerSet {
  std::shared_ptr<const tokenizer::Tokenizer> v4;
  std::shared_ptr<const tokenizer::Tokenizer> v41;

  const tokenizer::Tokenizer* of(ModelVersion version) const {
    return (version == ModelVersion::kV4 ? v4 : v41).get();
  }
};

/// How much is told of a request.
enum class Detail {
  kRecorded,  ///< what recorded cases hold; the messages and tools of long prompts are left out
  /// All of it, and `notices`, `ignored_fields` and, beside `token_ids`, `token_texts` (bytes that are no
  /// text by themselves as "\xE4\xB8") and `special_tokens` (the indexes of those that are special).
  kEverything,
};

/// What a request became, with the token ids of its prompt. Takes the conversation out of `request`.
Json describe_request(PreparedRequest& request, const TokenizerSet& tokenizers, Detail detail);

/// The status and body that the protocol answers a refused request with.
Json describe_error(const RequestError& error);

/// Answers one line with one line (without its line end). A line is a JSON object with `id` and
///   `protocol`, `request` or `request_text`, `options`?   -> {"id","result"} or {"id","error"}
///   the same with `prompt_tokens` and `context_limit`     -> {"id","max_tokens"} or {"id","error"}
///   `schema`                                              ->
///   {"id","tool","tool_strict","format","format_strict"} `version`, `messages`, `settings`,
///   `special_tokens`?  -> {"id","result"} or {"id","error"}
/// Ranges of special tokens are counted in code points. Whatever the line is, the answer is a JSON object:
/// what cannot be read gives {"id","error"}, with id null where it has none. Fields not named here are
/// ignored.
std::string render_line(std::string_view line, const TokenizerSet& tokenizers);

}  // namespace hadal::recipe
