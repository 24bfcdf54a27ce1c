#include "recipe/conversation.h"

namespace hadal::recipe {
namespace {

std::string_view role_name(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
      return "tool";
    case Role::kLatestReminder:
      return "latest_reminder";
  }
  return "";
}

std::string_view effort_name(Effort effort) {
  switch (effort) {
    case Effort::kLow:
      return "low";
    case Effort::kHigh:
      return "high";
    case Effort::kXhigh:
      return "xhigh";
    case Effort::kMax:
      return "max";
  }
  return "";
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json describe_tools(const std::vector<ToolDefinition>& tools) {
  Json list = Json::array();
  for (const ToolDefinition& tool : tools) {
    list.push_back(Json{{"name", tool.name},
                        {"description", or_null(tool.description)},
                        {"parameters", to_json(tool.parameters)},
                        {"strict", or_null(tool.strict)},
                        {"defer_loading", tool.defer_loading}});
  }
  return list;
}

Json describe_message(const Message& message) {
  Json item{{"role", role_name(message.role)}, {"content", message.content}};
  if (message.role == Role::kAssistant) {
    item["reasoning_content"] = or_null(message.reasoning);
    Json& calls = item["tool_calls"];
    if (message.tool_calls) {
      calls = Json::array();
      for (const ToolCall& call : *message.tool_calls) {
        calls.push_back(Json{{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
      }
    }
    item["prefix"] = message.prefix;
  }
  if (message.role == Role::kTool) {
    item["tool_call_id"] = or_null(message.tool_call_id);
  }
  if (!message.images.empty()) {
    item["images"] = message.images.size();
  }
  if (!message.tools.empty()) {
    item["tools"] = describe_tools(message.tools);
  }
  return item;
}

}  // namespace

Json describe_conversation(const Conversation& conversation, bool with_messages) {
  Json out = Json::object();
  out["thinking_mode"] = conversation.thinking;
  out["tool_choice"] = conversation.tool_choice == ToolChoice::kNone       ? "none"
                       : conversation.tool_choice == ToolChoice::kRequired ? "required"
                                                                           : "auto";
  out["reasoning_effort"] = conversation.effort ? Json(effort_name(*conversation.effort)) : Json();
  out["response_format"] = conversation.json_object       ? "json_object"
                           : conversation.response_schema ? "json_schema"
                           : conversation.response_regex  ? "regex"
                                                          : "text";
  out["response_schema"] = conversation.response_schema ? to_json(*conversation.response_schema) : Json();
  out["response_regex"] = or_null(conversation.response_regex);
  if (with_messages) {
    Json& messages = out["messages"] = Json::array();
    for (const Message& message : conversation.messages) {
      messages.push_back(describe_message(message));
    }
    out["tools"] = describe_tools(conversation.tools);
  }
  return out;
}

Json to_json(const JsonValue& value) {
  switch (value.kind()) {
    case JsonValue::Kind::kNull:
      return nullptr;
    case JsonValue::Kind::kBool:
      return value.as_bool();
    case JsonValue::Kind::kInt:
      return value.as_int();
    case JsonValue::Kind::kUint:
      return value.as_uint();
    case JsonValue::Kind::kDouble:
      return value.as_double();
    case JsonValue::Kind::kString:
      return value.as_string();
    case JsonValue::Kind::kArray: {
      Json list = Json::array();
      for (const JsonValue& item : value.items()) {
        list.push_back(to_json(item));
      }
      return list;
    }
    case JsonValue::Kind::kObject: {
      // Filled through the underlying vector: the keys are unique already, and a look-up for each would make
      // large objects quadratic.
      Json::object_t object;
      object.reserve(value.members().size());
      for (const JsonMember& member : value.members()) {
        static_cast<Json::object_t::Container&>(object).emplace_back(std::string(member.key),
                                                                     to_json(member.value));
      }
      return object;
    }
  }
  return nullptr;
}

}  // namespace hadal::recipe
