#include "recipe/messages/request.h"

#include "recipe/fields.h"
#include "recipe/messages/blocks.h"

namespace hadal::recipe::messages {
namespace {

constexpr uint64_t kU32 = UINT32_MAX;

Result<RequestMessage> read_message(const JsonValue& value, const Place& place) {
  constexpr std::string_view kRoles[] = {"user", "assistant", "system"};
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  HADAL_TRY(const size_t role, fields.choice("role", kRoles));
  RequestMessage message;
  message.role = static_cast<RequestMessage::Role>(role);
  HADAL_TRY(const JsonValue* content, fields.required("content"));
  const Place content_place(place, "content");
  if (content->is_string()) {
    message.text = content->as_string();
    return message;
  }
  const bool is_assistant = message.role == RequestMessage::Role::kAssistant;
  HADAL_TRY(message.blocks, read_blocks(*content, content_place,
                                        is_assistant ? BlockContext::kAssistant : BlockContext::kMessage));
  return message;
}

Result<std::optional<std::string>> read_system(const Fields& fields) {
  const JsonValue* system = fields.value("system");
  if (system == nullptr) {
    return std::nullopt;
  }
  if (system->is_string()) {
    return std::string(system->as_string());
  }
  const Place place(fields.place(), "system");
  HADAL_TRY(const std::vector<Block> blocks, read_blocks(*system, place, BlockContext::kSystem));
  std::string text;
  for (size_t index = 0; index < blocks.size(); ++index) {
    text += index == 0 ? "" : "\n\n";
    text += blocks[index].text;
  }
  return text;
}

Result<ToolField> read_tool(const JsonValue& value, const Place& place) {
  static const JsonValue kNoSchema;
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  ToolField field;
  if (fields.has("type")) {
    HADAL_TRY(field.type, fields.string("type"));
  }
  HADAL_TRY(field.tool.name, fields.string("name"));
  HADAL_TRY(field.tool.description, fields.optional_string("description"));
  HADAL_TRY(field.tool.strict, fields.optional_bool("strict"));
  HADAL_TRY(const auto defer, fields.optional_bool("defer_loading"));
  field.tool.defer_loading = defer.value_or(false);
  field.tool.parameters = fields.value("input_schema");
  if (field.tool.parameters == nullptr) {
    field.tool.parameters = &kNoSchema;
  }
  field.tool.keeps_schema = true;
  return field;
}

Result<ToolChoiceField> read_tool_choice(const JsonValue& value, const Place& place) {
  constexpr std::string_view kTypes[] = {"auto", "any", "tool", "none"};
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  HADAL_TRY(const size_t type, fields.choice("type", kTypes));
  ToolChoiceField choice;
  choice.kind = static_cast<ToolChoiceField::Kind>(type);
  if (choice.kind == ToolChoiceField::Kind::kTool) {
    HADAL_TRY(choice.name, fields.string("name"));
  }
  HADAL_TRY(const auto one, fields.optional_bool("disable_parallel_tool_use"));
  choice.at_most_one_call = one.value_or(false);
  return choice;
}

Result<void> read_thinking(const Fields& fields, Request& request) {
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
  for (const std::string_view unused : {"budget_tokens", "display"}) {
    if (thinking_fields.value(unused) != nullptr) {
      request.ignored_fields.push_back(fmt::format("thinking.{}", unused));
    }
  }
  return {};
}

Result<void> read_output_config(const Fields& fields, Request& request) {
  const JsonValue* config = fields.value("output_config");
  if (config == nullptr) {
    return {};
  }
  const Place place(fields.place(), "output_config");
  HADAL_TRY(const Fields config_fields, Fields::of(*config, place));
  HADAL_TRY(const auto effort, config_fields.optional_choice("effort", kEffortNames));
  if (effort) {
    request.effort = static_cast<AskedEffort>(*effort);
  }
  if (const JsonValue* format = config_fields.value("format")) {
    constexpr std::string_view kTypes[] = {"json_schema"};
    const Place format_place(place, "format");
    HADAL_TRY(const Fields format_fields, Fields::of(*format, format_place));
    HADAL_CHECK(format_fields.choice("type", kTypes));
    HADAL_TRY(request.output_schema, format_fields.required("schema"));
  }
  return {};
}

Result<void> read_sampling(const Fields& fields, Request& request) {
  HADAL_TRY(request.max_tokens, fields.optional_unsigned("max_tokens", kU32));
  HADAL_TRY(request.temperature, fields.optional_float("temperature"));
  HADAL_TRY(request.top_p, fields.optional_float("top_p"));
  // A top_k of less than 1 limits nothing; clients send it to say so.
  if (const JsonValue* top_k = fields.value("top_k")) {
    if (!top_k->is_integer()) {
      return wrong_kind(Place(fields.place(), "top_k"), "an integer", *top_k);
    }
    if (top_k->kind() == JsonValue::Kind::kUint && top_k->as_uint() > 0) {
      request.top_k = top_k->as_uint();
    }
  }
  HADAL_TRY(const auto stop, fields.optional_list("stop_sequences"));
  if (stop) {
    const Place place(fields.place(), "stop_sequences");
    for (size_t index = 0; index < stop->size(); ++index) {
      if (!(*stop)[index].is_string()) {
        return wrong_kind(Place(place, index), "a string", (*stop)[index]);
      }
      request.stop_sequences.emplace_back((*stop)[index].as_string());
    }
  }
  HADAL_TRY(const auto stream, fields.optional_bool("stream"));
  request.stream = stream.value_or(false);
  return {};
}

Result<void> check_metadata(const Fields& fields) {
  if (const JsonValue* metadata = fields.value("metadata")) {
    const Place place(fields.place(), "metadata");
    HADAL_TRY(const Fields metadata_fields, Fields::of(*metadata, place));
    HADAL_CHECK(metadata_fields.optional_string("user_id"));
  }
  return {};
}

}  // namespace

Result<Request> read_request(const JsonValue& body) {
  constexpr std::string_view kUsed[] = {
      "model", "messages",    "system", "tools",         "tool_choice", "thinking", "max_tokens",
      "top_p", "temperature", "top_k",  "output_config", "stream",      "metadata", "stop_sequences"};
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
  HADAL_TRY(request.system, read_system(fields));
  HADAL_TRY(const auto tools, fields.optional_list("tools"));
  if (tools) {
    const Place tools_place(root, "tools");
    request.tools.reserve(tools->size());
    for (size_t index = 0; index < tools->size(); ++index) {
      HADAL_TRY(ToolField tool, read_tool((*tools)[index], Place(tools_place, index)));
      request.tools.push_back(std::move(tool));
    }
  }
  if (const JsonValue* choice = fields.value("tool_choice")) {
    HADAL_TRY(request.tool_choice, read_tool_choice(*choice, Place(root, "tool_choice")));
  }
  request.ignored_fields = unknown_fields(body, kUsed);
  HADAL_CHECK(read_thinking(fields, request));
  HADAL_CHECK(read_output_config(fields, request));
  HADAL_CHECK(read_sampling(fields, request));
  HADAL_CHECK(check_metadata(fields));
  return request;
}

}  // namespace hadal::recipe::messages
