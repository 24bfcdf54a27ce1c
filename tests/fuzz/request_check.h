#pragma once
// What must hold of any request body, in whatever protocol: it is refused with a JSON body and a status of
// 4xx, or it has a prompt whose special ranges are the spellings of special tokens and whose own text is
// UTF-8.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "recipe/json_value.h"
#include "recipe/prepared_request.h"

namespace hadal::recipe {

inline void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

inline bool reads_as_json(std::string_view text) {
  JsonArena arena;
  return read_json(text, arena).has_value();
}

/// The first byte of the input chooses the server's options, the rest is the body.
inline void check_request(Protocol protocol, const uint8_t* data, size_t size) {
  const uint8_t choice = size == 0 ? 0 : data[0];
  const std::string body(reinterpret_cast<const char*>(data) + (size != 0), size - (size != 0));
  ConversionOptions options;
  options.default_thinking_mode = (choice & 1) == 0;
  options.describe_conversation = (choice & 2) != 0;
  if ((choice & 4) != 0) {
    options.reasoning_content_behavior = ConversionOptions::ReasoningContent::kReject;
  }
  if ((choice & 8) != 0) {
    options.responses_web_search = ConversionOptions::WebSearch::kReject;
    options.messages_web_search = ConversionOptions::WebSearch::kDrop;
  }

  const RequestResult<PreparedRequest> prepared = prepare_request(protocol, body, options);
  if (!prepared) {
    require(prepared.error().status_code >= 400 && prepared.error().status_code < 500);
    require(reads_as_json(prepared.error().body));
    return;
  }
  const Prompt& prompt = prepared->prompt;
  require(find_invalid_utf8(prompt.text) == std::string_view::npos);
  size_t end = 0;
  size_t images = 0;
  for (const auto& [begin, after] : prompt.special_ranges) {
    require(begin >= end && after > begin && after <= prompt.text.size());
    const std::string spelling = prompt.text.substr(begin, after - begin);
    const auto& known = options.special_tokens.spellings;
    require(std::find(known.begin(), known.end(), spelling) != known.end());
    images += spelling == known[static_cast<size_t>(SpecialToken::kImage)];
    end = after;
  }
  require(images == prompt.images.size());
  require(prepared->notices.size() <= 40 && prepared->ignored_fields.size() <= 40);
  if (prepared->constraint && !prepared->constraint->schema.empty() &&
      prepared->constraint->kind != OutputConstraint::Kind::kRegex) {
    require(reads_as_json(prepared->constraint->schema));
  }
  const RequestResult<uint64_t> most = resolve_max_tokens(*prepared, prompt.special_ranges.size(), 4096);
  require(most ? *most <= 4096 : reads_as_json(most.error().body));
}

}  // namespace hadal::recipe
