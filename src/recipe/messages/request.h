#pragma once
// A Messages (Anthropic) request body, read and typed. Texts are views into the body.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "recipe/json_value.h"
#include "recipe/prepared_request.h"
#include "recipe/settings.h"
#include "recipe/tool_rules.h"

namespace hadal::recipe::messages {

struct ImageField {
  enum class Kind : uint8_t { kBase64, kUrl, kFile };
  Kind kind = Kind::kUrl;
  std::string_view media_type;  ///< kBase64
  std::string_view data;        ///< kBase64: the data; kUrl: the URL
};

struct Block {
  enum class Kind : uint8_t {
    kText,
    kImage,
    kDocument,
    kThinking,
    kRedactedThinking,
    kServerToolUse,
    kToolUse,
    kToolResult,
    kWebSearchResult,
    kToolAddition,
    kSearchResult,
    kToolReference,
  };
  Kind kind = Kind::kText;
  std::string_view text;             ///< kText, kThinking: the text; kSearchResult: its source
  std::string_view id;               ///< kToolUse, kToolResult
  std::string_view name;             ///< kToolUse, kToolAddition, kToolReference
  const JsonValue* input = nullptr;  ///< kToolUse
  ImageField image;                  ///< kImage
  std::string_view title;            ///< kDocument, kSearchResult; may be empty
  std::string_view context;          ///< kDocument; may be empty
  std::string_view media_type;       ///< kDocument; may be empty
  bool is_error = false;             ///< kToolResult
  /// Text of a kToolResult or kDocument that was given as a string.
  std::optional<std::string_view> plain;
  std::vector<Block> parts;  ///< content of a kToolResult, kDocument or kSearchResult
};

struct RequestMessage {
  enum class Role : uint8_t { kUser, kAssistant, kSystem };
  Role role = Role::kUser;
  std::optional<std::string_view> text;  ///< content as one string
  std::vector<Block> blocks;             ///< content as a list
};

struct ToolField {
  RequestedTool tool;
  std::optional<std::string_view> type;  ///< without it, or `custom`: a client tool
};

struct ToolChoiceField {
  enum class Kind : uint8_t { kAuto, kAny, kTool, kNone };
  Kind kind = Kind::kAuto;
  std::string_view name;
  bool at_most_one_call = false;
};

struct Request {
  std::string_view model;
  std::vector<RequestMessage> messages;
  std::optional<std::string> system;
  std::vector<ToolField> tools;
  ToolChoiceField tool_choice;
  std::optional<bool> thinking;
  std::optional<AskedEffort> effort;
  const JsonValue* output_schema = nullptr;
  std::optional<uint64_t> max_tokens;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<uint64_t> top_k;
  std::vector<std::string> stop_sequences;
  bool stream = false;
  std::vector<std::string> ignored_fields;
};

/// Reads a parsed body. The error names the field; it does not begin with "invalid request body".
Result<Request> read_request(const JsonValue& body);

/// Checks a request and turns it into a conversation with settings.
Result<ConvertedRequest> convert_request(Request&& request, const ConversionOptions& options,
                                         std::shared_ptr<JsonArena> arena);

}  // namespace hadal::recipe::messages
