#pragma once
// A Responses request body, read and typed. Texts are views into the body.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "recipe/fields.h"
#include "recipe/json_value.h"
#include "recipe/prepared_request.h"
#include "recipe/settings.h"
#include "recipe/tool_rules.h"

namespace hadal::recipe::responses {

struct ContentPart {
  enum class Kind : uint8_t { kText, kImage, kFile };
  Kind kind = Kind::kText;
  std::string_view text;                                   ///< kText
  std::string_view image_url;                              ///< kImage; empty if not given
  ImageSource::Kind image_kind = ImageSource::Kind::kUrl;  ///< kImage; known after the check
  bool has_file_id = false;                                ///< kImage
  ImageDetail detail = ImageDetail::kHigh;                 ///< kImage
  std::string_view filename;                               ///< kFile; may be empty
  std::string_view file_data;                              ///< kFile; may be empty
};

struct Content {
  std::optional<std::string_view> text;  ///< given as one string
  std::vector<ContentPart> parts;        ///< given as a list
};

/// A function, also inside a namespace.
struct FunctionField {
  std::string_view name;
  std::optional<std::string_view> description;
  const JsonValue* parameters = nullptr;
  std::optional<bool> strict;
};

struct ToolField {
  enum class Kind : uint8_t { kFunction, kNamespace, kCustom, kToolSearch, kWebSearch, kUnsupported };
  Kind kind = Kind::kFunction;
  std::string_view type;                      ///< as spelled
  FunctionField function;                     ///< kFunction; name and description also of kCustom, kNamespace
  std::vector<ToolField> tools;               ///< kNamespace: functions and custom tools
  const JsonValue* format = nullptr;          ///< kCustom
  std::optional<std::string_view> execution;  ///< kToolSearch
  const JsonValue* json = nullptr;            ///< the whole tool
};

struct Item {
  enum class Kind : uint8_t { kMessage, kReasoning, kCall, kOutput, kSearchCall, kSearchOutput, kLeftOut };
  enum class Role : uint8_t { kUser, kAssistant, kSystem, kDeveloper };
  Kind kind = Kind::kMessage;
  Role role = Role::kUser;                     ///< kMessage
  Content content;                             ///< kMessage, kOutput
  std::vector<std::string_view> reasoning;     ///< kReasoning
  std::vector<std::string_view> summary;       ///< kReasoning
  std::string_view call_id;                    ///< calls and outputs
  std::string_view name;                       ///< kCall
  std::optional<std::string_view> name_space;  ///< kCall
  std::string arguments;                       ///< calls; JSON text
  std::vector<ToolField> tools;                ///< kSearchOutput
  std::string_view type;                       ///< kLeftOut
};

struct ToolChoiceField {
  enum class Kind : uint8_t { kAuto, kNone, kRequired, kFunction, kCustom, kWebSearch, kAllowed };
  struct Name {
    std::string_view name;
    std::optional<std::string_view> name_space;
  };
  Kind kind = Kind::kAuto;
  Name name;                  ///< kFunction, kCustom
  std::vector<Name> allowed;  ///< kAllowed
  bool must_call = false;     ///< kAllowed
  const JsonValue* json = nullptr;
};

struct FormatField {
  enum class Kind : uint8_t { kText, kJsonSchema, kJsonObject };
  Kind kind = Kind::kText;
  const JsonValue* schema = nullptr;
  std::string_view name;
  std::optional<std::string_view> description;
  std::optional<bool> strict;
};

struct Request {
  std::string_view model;
  std::optional<std::string_view> instructions;
  std::optional<std::string_view> input_text;
  std::optional<std::vector<Item>> input;
  const JsonValue* input_json = nullptr;  ///< either as it was read; null if absent
  std::optional<std::string_view> previous_response_id;
  std::vector<ToolField> tools;
  ToolChoiceField tool_choice;
  bool parallel_tool_calls = true;
  std::optional<AskedEffort> effort;
  std::optional<std::string_view> summary;
  FormatField format;
  std::optional<std::string_view> verbosity;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<uint64_t> top_logprobs;
  std::optional<uint64_t> max_output_tokens;
  std::optional<std::string_view> user;
  bool stream = false;
  /// The first field that asks for something this side cannot do; empty if there is none.
  std::string_view unsupported_field;
  std::vector<std::string> ignored_fields;
};

/// Reads a parsed body. The error names the field; it does not begin with "invalid request body".
Result<Request> read_request(const JsonValue& body);

/// Reads one input item, and one tool.
Result<Item> read_item(const JsonValue& value, const Place& place);
Result<ToolField> read_tool(const JsonValue& value, const Place& place);

/// Checks a request and turns it into a conversation with settings.
Result<ConvertedRequest> convert_request(Request&& request, const ConversionOptions& options,
                                         std::shared_ptr<JsonArena> arena);

}  // namespace hadal::recipe::responses
