#include "recipe/responses/echo.h"

#include <array>
#include <charconv>

#include "recipe/conversation.h"
#include "recipe/responses/apply_patch.h"

namespace hadal::recipe::responses {
namespace {

Json or_null(const std::optional<std::string_view>& text) {
  return text ? Json(*text) : Json();
}

/// The double that prints like the float that the client wrote.
double as_written(float value) {
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  double result = value;
  std::from_chars(buffer.data(), end, result);
  return result;
}

Json echo_function(const FunctionField& function) {
  return Json{{"type", "function"},
              {"name", function.name},
              {"description", or_null(function.description)},
              {"parameters", function.parameters != nullptr ? to_json(*function.parameters) : Json()},
              {"strict", function.strict ? Json(*function.strict) : Json()}};
}

Json echo_web_search(const ToolField& tool) {
  const auto field = [](const JsonValue* object, std::string_view key) {
    const JsonValue* value = object != nullptr ? object->find(key) : nullptr;
    return value != nullptr ? to_json(*value) : Json();
  };
  Json out{{"type", tool.type},
           {"search_context_size", field(tool.json, "search_context_size")},
           {"user_location", nullptr}};
  const JsonValue* location = tool.json->find("user_location");
  if (location != nullptr && location->is_object()) {
    Json& place = out["user_location"] = Json::object();
    for (const char* key : {"city", "country", "region", "timezone"}) {
      place[key] = field(location, key);
    }
  }
  return out;
}

Json echo_custom(const ToolField& tool) {
  Json out{{"type", "custom"}, {"name", tool.function.name}};
  if (tool.function.name != kApplyPatchName) {
    out["description"] = or_null(tool.function.description);
    out["format"] = tool.format != nullptr ? to_json(*tool.format) : Json{{"type", "text"}};
  }
  return out;
}

Json echo_tools(const std::vector<ToolField>& tools) {
  Json list = Json::array();
  for (const ToolField& tool : tools) {
    switch (tool.kind) {
      case ToolField::Kind::kFunction:
        list.push_back(echo_function(tool.function));
        break;
      case ToolField::Kind::kNamespace: {
        Json inner = Json::array();
        for (const ToolField& function : tool.tools) {
          inner.push_back(echo_function(function.function));
        }
        list.push_back(Json{{"type", "namespace"},
                            {"name", tool.function.name},
                            {"description", or_null(tool.function.description)},
                            {"tools", std::move(inner)}});
        break;
      }
      case ToolField::Kind::kCustom:
        list.push_back(echo_custom(tool));
        break;
      case ToolField::Kind::kToolSearch:
        list.push_back(
            Json{{"type", "tool_search"},
                 {"execution", or_null(tool.execution)},
                 {"description", or_null(tool.function.description)},
                 {"parameters",
                  tool.function.parameters != nullptr ? to_json(*tool.function.parameters) : Json()}});
        break;
      case ToolField::Kind::kWebSearch:
        if (!tool.type.starts_with("web_search_preview")) {
          list.push_back(echo_web_search(tool));
        }
        break;
      case ToolField::Kind::kUnsupported:
        break;
    }
  }
  return list;
}

Json echo_tool_choice(const ToolChoiceField& choice) {
  using Kind = ToolChoiceField::Kind;
  switch (choice.kind) {
    case Kind::kFunction:
    case Kind::kCustom: {
      Json out{{"type", choice.kind == Kind::kFunction ? "function" : "custom"}, {"name", choice.name.name}};
      if (choice.name.name_space) {
        out["namespace"] = *choice.name.name_space;
      }
      return out;
    }
    case Kind::kWebSearch:
      return Json{{"type", choice.json->find("type")->as_string()}};
    case Kind::kAllowed:
      return to_json(*choice.json);
    default:
      return choice.json != nullptr ? to_json(*choice.json) : Json("auto");
  }
}

Json echo_format(const FormatField& format) {
  switch (format.kind) {
    case FormatField::Kind::kText:
      break;
    case FormatField::Kind::kJsonObject:
      return Json{{"type", "json_object"}};
    case FormatField::Kind::kJsonSchema:
      return Json{{"type", "json_schema"},
                  {"name", format.name},
                  {"schema", to_json(*format.schema)},
                  {"description", or_null(format.description)},
                  {"strict", format.strict ? Json(*format.strict) : Json()}};
  }
  return Json{{"type", "text"}};
}

}  // namespace

Json make_echo(const Request& request) {
  Json echo = Json::object();
  echo["instructions"] = or_null(request.instructions);
  echo["max_output_tokens"] = request.max_output_tokens ? Json(*request.max_output_tokens) : Json();
  echo["reasoning"] =
      Json{{"effort", request.effort ? Json(kEffortNames[static_cast<size_t>(*request.effort)]) : Json()},
           {"summary", or_null(request.summary)}};
  echo["temperature"] = as_written(request.temperature.value_or(1.0F));
  echo["text"] = Json{{"format", echo_format(request.format)}, {"verbosity", or_null(request.verbosity)}};
  echo["tool_choice"] = echo_tool_choice(request.tool_choice);
  echo["tools"] = echo_tools(request.tools);
  echo["top_logprobs"] = request.top_logprobs.value_or(0);
  echo["top_p"] = as_written(request.top_p.value_or(1.0F));
  echo["user"] = or_null(request.user);
  return echo;
}

}  // namespace hadal::recipe::responses
