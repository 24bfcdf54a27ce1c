#include "recipe/chat/request.h"

#include "recipe/fields.h"

namespace hadal::recipe::chat {
namespace {

constexpr uint64_t kU8 = UINT8_MAX;
constexpr uint64_t kU32 = UINT32_MAX;

constexpr std::string_view kDetails[] = {"low", "high", "original", "auto"};
constexpr std::string_view kFunction[] = {"function"};

Result<ContentPart> read_part(const JsonValue& value, const Place& place, Role role) {
  constexpr std::string_view kTypes[] = {"text", "image_url", "file", "refusal"};
  // A refusal is something that only the assistant has said.
  const std::span types = std::span(kTypes).first(role == Role::kAssistant ? 4 : 3);
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  HADAL_TRY(const size_t type, fields.choice("type", types));
  ContentPart part;
  switch (type) {
    case 0: {
      HADAL_TRY(part.text, fields.string("text"));
      break;
    }
    case 1: {
      part.kind = ContentPart::Kind::kImageUrl;
      HADAL_TRY(const JsonValue* image, fields.required("image_url"));
      const Place image_place(place, "image_url");
      HADAL_TRY(const Fields image_fields, Fields::of(*image, image_place));
      HADAL_TRY(part.text, image_fields.string("url"));
      HADAL_TRY(const auto detail, image_fields.optional_choice("detail", kDetails));
      part.detail = static_cast<ImageDetail>(detail.value_or(static_cast<size_t>(ImageDetail::kHigh)));
      break;
    }
    case 2: {
      part.kind = ContentPart::Kind::kFile;
      HADAL_TRY(const auto file_id, fields.optional_string("file_id"));
      part.has_file_id = file_id.has_value();
      HADAL_TRY(part.file_data, fields.optional_string("file_data"));
      break;
    }
    default: {
      HADAL_TRY(part.text, fields.string("refusal"));
    }
  }
  return part;
}

Result<Content> read_content(const JsonValue& value, const Place& place, Role role) {
  Content content;
  if (value.is_string()) {
    content.text = value.as_string();
    return content;
  }
  if (!value.is_array()) {
    return wrong_kind(place, "a string or a list of parts", value);
  }
  std::vector<ContentPart>& parts = content.parts.emplace();
  parts.reserve(value.items().size());
  for (size_t index = 0; index < value.items().size(); ++index) {
    HADAL_TRY(ContentPart part, read_part(value.items()[index], Place(place, index), role));
    parts.push_back(part);
  }
  return content;
}

Result<ToolCall> read_call(const JsonValue& value, const Place& place) {
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  HADAL_TRY(const std::string_view id, fields.string("id"));
  HADAL_CHECK(fields.choice("type", kFunction));
  HADAL_TRY(const JsonValue* function, fields.required("function"));
  const Place function_place(place, "function");
  HADAL_TRY(const Fields function_fields, Fields::of(*function, function_place));
  HADAL_TRY(const std::string_view name, function_fields.string("name"));
  HADAL_TRY(const std::string_view arguments, function_fields.string("arguments"));
  return ToolCall{std::string(id), std::string(name), std::string(arguments)};
}

Result<RequestMessage> read_message(const JsonValue& value, const Place& place) {
  constexpr std::string_view kRoles[] = {"system",          "user",     "assistant", "tool",
                                         "latest_reminder", "developer"};
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  HADAL_TRY(const size_t role, fields.choice("role", kRoles));
  RequestMessage message;
  constexpr size_t kDeveloper = 5;
  message.role = role == kDeveloper ? Role::kSystem : static_cast<Role>(role);
  const Place content_place(place, "content");
  if (message.role == Role::kAssistant) {
    if (const JsonValue* content = fields.value("content")) {
      HADAL_TRY(message.content, read_content(*content, content_place, message.role));
    }
    HADAL_TRY(message.reasoning, fields.optional_string("reasoning_content"));
    HADAL_TRY(const auto calls, fields.optional_list("tool_calls"));
    if (calls) {
      const Place calls_place(place, "tool_calls");
      std::vector<ToolCall>& list = message.tool_calls.emplace();
      list.reserve(calls->size());
      for (size_t index = 0; index < calls->size(); ++index) {
        HADAL_TRY(ToolCall call, read_call((*calls)[index], Place(calls_place, index)));
        list.push_back(std::move(call));
      }
    }
    HADAL_TRY(const auto prefix, fields.optional_bool("prefix"));
    message.prefix = prefix.value_or(false);
    return message;
  }
  if (message.role == Role::kLatestReminder) {
    HADAL_TRY(message.content.text, fields.string("content"));
    return message;
  }
  HADAL_TRY(const JsonValue* content, fields.required("content"));
  HADAL_TRY(message.content, read_content(*content, content_place, message.role));
  if (message.role == Role::kTool) {
    HADAL_TRY(message.tool_call_id, fields.string("tool_call_id"));
  }
  return message;
}

Result<RequestedTool> read_tool(const JsonValue& value, const Place& place) {
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  HADAL_CHECK(fields.choice("type", kFunction));
  HADAL_TRY(const JsonValue* function, fields.required("function"));
  const Place function_place(place, "function");
  HADAL_TRY(const Fields function_fields, Fields::of(*function, function_place));
  RequestedTool tool;
  HADAL_TRY(tool.name, function_fields.string("name"));
  HADAL_TRY(tool.description, function_fields.optional_string("description"));
  HADAL_TRY(tool.strict, function_fields.optional_bool("strict"));
  tool.parameters = function_fields.value("parameters");
  return tool;
}

Result<RequestedChoice> read_tool_choice(const JsonValue& value, const Place& place) {
  constexpr std::string_view kNames[] = {"auto", "none", "required"};
  RequestedChoice choice;
  if (value.is_string()) {
    for (size_t index = 0; index < std::size(kNames); ++index) {
      if (value.as_string() == kNames[index]) {
        choice.kind = static_cast<RequestedChoice::Kind>(index);
        return choice;
      }
    }
    return wrong_value(place, "`none`, `auto`, `required` or a function", value.as_string());
  }
  if (!value.is_object()) {
    return wrong_kind(place, "`none`, `auto`, `required` or a function", value);
  }
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  HADAL_CHECK(fields.choice("type", kFunction));
  HADAL_TRY(const JsonValue* function, fields.required("function"));
  const Place function_place(place, "function");
  HADAL_TRY(const Fields function_fields, Fields::of(*function, function_place));
  choice.kind = RequestedChoice::Kind::kNamed;
  HADAL_TRY(choice.name, function_fields.string("name"));
  return choice;
}

Result<ResponseFormat> read_response_format(const JsonValue& value, const Place& place) {
  constexpr std::string_view kTypes[] = {"text", "json_object", "json_schema", "regex"};
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  HADAL_TRY(const size_t type, fields.choice("type", kTypes));
  ResponseFormat format;
  format.given = true;
  format.kind = static_cast<ResponseFormat::Kind>(type);
  if (format.kind == ResponseFormat::Kind::kJsonSchema) {
    HADAL_TRY(const JsonValue* schema, fields.required("json_schema"));
    const Place schema_place(place, "json_schema");
    HADAL_TRY(const Fields schema_fields, Fields::of(*schema, schema_place));
    HADAL_CHECK(schema_fields.optional_string("name"));
    HADAL_CHECK(schema_fields.optional_string("description"));
    HADAL_TRY(format.schema, schema_fields.required("schema"));
    HADAL_TRY(const auto strict, schema_fields.optional_bool("strict"));
    format.strict = strict.value_or(false);
  } else if (format.kind == ResponseFormat::Kind::kRegex) {
    HADAL_TRY(format.regex, fields.string("regex"));
  }
  return format;
}

Result<void> read_stop(const Fields& fields, Request& request) {
  const JsonValue* stop = fields.value("stop");
  if (stop == nullptr) {
    return {};
  }
  const Place place(fields.place(), "stop");
  if (stop->is_string()) {
    request.stop.emplace_back(stop->as_string());
    return {};
  }
  if (!stop->is_array()) {
    return wrong_kind(place, "a string or a list of strings", *stop);
  }
  request.stop_is_list = true;
  for (size_t index = 0; index < stop->items().size(); ++index) {
    const JsonValue& item = stop->items()[index];
    if (!item.is_string()) {
      return wrong_kind(Place(place, index), "a string", item);
    }
    request.stop.emplace_back(item.as_string());
  }
  return {};
}

Result<void> read_thinking(const Fields& fields, Request& request) {
  HADAL_TRY(const auto effort, fields.optional_choice("reasoning_effort", kEffortNames));
  if (effort) {
    request.effort = static_cast<AskedEffort>(*effort);
  }
  const JsonValue* thinking = fields.value("thinking");
  if (thinking == nullptr) {
    return {};
  }
  constexpr std::string_view kTypes[] = {"adaptive", "enabled", "disabled"};
  constexpr size_t kDisabled = 2;
  const Place place(fields.place(), "thinking");
  HADAL_TRY(const Fields thinking_fields, Fields::of(*thinking, place));
  HADAL_TRY(const size_t type, thinking_fields.choice("type", kTypes));
  request.thinking = type != kDisabled;
  return {};
}

Result<void> read_sampling(const Fields& fields, Request& request) {
  HADAL_TRY(request.temperature, fields.optional_float("temperature"));
  HADAL_TRY(request.top_p, fields.optional_float("top_p"));
  HADAL_TRY(request.frequency_penalty, fields.optional_float("frequency_penalty"));
  HADAL_TRY(request.presence_penalty, fields.optional_float("presence_penalty"));
  HADAL_TRY(request.max_tokens, fields.optional_unsigned("max_tokens", kU32));
  HADAL_TRY(const auto max_completion_tokens, fields.optional_unsigned("max_completion_tokens", kU32));
  if (!request.max_tokens) {  // the newer name of the same limit
    request.max_tokens = max_completion_tokens;
  }
  HADAL_TRY(request.n, fields.optional_unsigned("n", kU8));
  HADAL_TRY(request.seed, fields.optional_unsigned("seed", UINT64_MAX));
  HADAL_TRY(const auto logprobs, fields.optional_bool("logprobs"));
  request.logprobs = logprobs.value_or(false);
  HADAL_TRY(request.top_logprobs, fields.optional_unsigned("top_logprobs", kU8));
  return {};
}

}  // namespace

Result<Request> read_request(const JsonValue& body) {
  constexpr std::string_view kUsed[] = {
      "model",
      "messages",
      "tools",
      "tool_choice",
      "parallel_tool_calls",
      "response_format",
      "thinking",
      "temperature",
      "reasoning_effort",
      "max_completion_tokens",
      "top_p",
      "max_tokens",
      "n",
      "frequency_penalty",
      "presence_penalty",
      "seed",
      "logprobs",
      "top_logprobs",
      "stop",
      "stream",
      "stream_options",
  };
  const Place root;
  HADAL_TRY(const Fields fields, Fields::of(body, root));
  Request request;
  HADAL_TRY(request.model, fields.string("model"));
  HADAL_TRY(const auto messages, fields.list("messages"));
  request.messages.reserve(messages.size());
  const Place messages_place(root, "messages");
  for (size_t index = 0; index < messages.size(); ++index) {
    HADAL_TRY(RequestMessage message, read_message(messages[index], Place(messages_place, index)));
    request.messages.push_back(std::move(message));
  }
  HADAL_TRY(const auto tools, fields.optional_list("tools"));
  if (tools) {
    const Place tools_place(root, "tools");
    request.tools.reserve(tools->size());
    for (size_t index = 0; index < tools->size(); ++index) {
      HADAL_TRY(RequestedTool tool, read_tool((*tools)[index], Place(tools_place, index)));
      request.tools.push_back(std::move(tool));
    }
  }
  if (const JsonValue* choice = fields.value("tool_choice")) {
    HADAL_TRY(request.tool_choice, read_tool_choice(*choice, Place(root, "tool_choice")));
  }
  HADAL_TRY(const auto parallel, fields.optional_bool("parallel_tool_calls"));
  request.parallel_tool_calls = parallel.value_or(true);
  if (const JsonValue* format = fields.value("response_format")) {
    HADAL_TRY(request.response_format, read_response_format(*format, Place(root, "response_format")));
  }
  HADAL_CHECK(read_thinking(fields, request));
  HADAL_CHECK(read_sampling(fields, request));
  HADAL_CHECK(read_stop(fields, request));
  HADAL_TRY(const auto stream, fields.optional_bool("stream"));
  request.stream = stream.value_or(false);
  if (const JsonValue* options = fields.value("stream_options")) {
    const Place options_place(root, "stream_options");
    HADAL_TRY(const Fields options_fields, Fields::of(*options, options_place));
    HADAL_TRY(const auto include_usage, options_fields.optional_bool("include_usage"));
    request.include_usage = include_usage.value_or(false);
  }
  request.ignored_fields = unknown_fields(body, kUsed);
  return request;
}

}  // namespace hadal::recipe::chat
