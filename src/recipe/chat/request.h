#pragma once
// A Chat Completions request body, read and typed. Texts are views into the body.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "recipe/json_value.h"
#include "recipe/prepared_request.h"
#include "recipe/settings.h"
#include "recipe/tool_rules.h"

namespace hadal::recipe::chat {

struct ContentPart {
  enum class Kind : uint8_t { kText, kImageUrl, kFile };
  Kind kind = Kind::kText;
  std::string_view text;                      ///< kText: the text; kImageUrl: the URL
  ImageDetail detail = ImageDetail::kHigh;    ///< kImageUrl
  bool has_file_id = false;                   ///< kFile
  std::optional<std::string_view> file_data;  ///< kFile
};

struct Content {
  std::optional<std::string_view> text;           ///< given as one string
  std::optional<std::vector<ContentPart>> parts;  ///< given as a list
  bool given() const { return text || parts; }
};

struct RequestMessage {
  Role role = Role::kUser;
  Content content;
  std::optional<std::string_view> reasoning;
  std::optional<std::vector<ToolCall>> tool_calls;
  bool prefix = false;
  std::optional<std::string_view> tool_call_id;
};

struct ResponseFormat {
  enum class Kind : uint8_t { kText, kJsonObject, kJsonSchema, kRegex };
  bool given = false;
  Kind kind = Kind::kText;
  const JsonValue* schema = nullptr;
  bool strict = false;
  std::string_view regex;
};

struct Request {
  std::string_view model;
  std::vector<RequestMessage> messages;
  std::vector<RequestedTool> tools;
  RequestedChoice tool_choice;
  bool parallel_tool_calls = true;
  ResponseFormat response_format;
  std::optional<bool> thinking;
  std::optional<AskedEffort> effort;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> frequency_penalty;
  std::optional<float> presence_penalty;
  std::optional<uint64_t> max_tokens;
  std::optional<uint64_t> n;
  std::optional<uint64_t> seed;
  bool logprobs = false;
  std::optional<uint64_t> top_logprobs;
  std::vector<std::string> stop;
  bool stop_is_list = false;
  bool stream = false;
  std::optional<bool> include_usage;  ///< absent: no stream_options
  std::vector<std::string> ignored_fields;
};

/// Reads a parsed body. The error names the field; it does not begin with "invalid request body".
Result<Request> read_request(const JsonValue& body);

/// Checks a request and turns it into a conversation with settings.
Result<ConvertedRequest> convert_request(Request&& request, const ConversionOptions& options,
                                         std::shared_ptr<JsonArena> arena);

}  // namespace hadal::recipe::chat
