#include "recipe/responses/request.h"

namespace hadal::recipe::responses {
namespace {

constexpr uint64_t kU8 = UINT8_MAX;
constexpr uint64_t kU32 = UINT32_MAX;
constexpr std::string_view kLevels[] = {"low", "medium", "high"};

Result<FunctionField> read_function(const Fields& fields) {
  FunctionField function;
  HADAL_TRY(function.name, fields.string("name"));
  HADAL_TRY(function.description, fields.optional_string("description"));
  HADAL_TRY(function.strict, fields.optional_bool("strict"));
  function.parameters = fields.value("parameters");
  return function;
}

Result<void> check_web_search(const Fields& fields) {
  HADAL_CHECK(fields.optional_choice("search_context_size", kLevels));
  if (const JsonValue* location = fields.value("user_location")) {
    const Place place(fields.place(), "user_location");
    HADAL_TRY(const Fields location_fields, Fields::of(*location, place));
    for (const std::string_view key : {"city", "country", "region", "timezone"}) {
      HADAL_CHECK(location_fields.optional_string(key));
    }
  }
  return {};
}

Result<ToolChoiceField::Name> read_name(const Fields& fields) {
  ToolChoiceField::Name name;
  HADAL_TRY(name.name, fields.string("name"));
  HADAL_TRY(name.name_space, fields.optional_string("namespace"));
  return name;
}

Result<void> read_allowed_tools(const Fields& fields, ToolChoiceField& choice) {
  constexpr std::string_view kModes[] = {"auto", "required"};
  HADAL_TRY(const size_t mode, fields.choice("mode", kModes));
  choice.kind = ToolChoiceField::Kind::kAllowed;
  choice.must_call = mode == 1;
  HADAL_TRY(const auto tools, fields.list("tools"));
  const Place place(fields.place(), "tools");
  for (size_t index = 0; index < tools.size(); ++index) {
    constexpr std::string_view kTypes[] = {"function", "custom"};
    const Place tool_place(place, index);
    HADAL_TRY(const Fields tool, Fields::of(tools[index], tool_place));
    HADAL_CHECK(tool.choice("type", kTypes));
    HADAL_TRY(ToolChoiceField::Name name, read_name(tool));
    choice.allowed.push_back(name);
  }
  return {};
}

Result<ToolChoiceField> read_tool_choice(const JsonValue& value, const Place& place) {
  constexpr std::string_view kModes[] = {"auto", "none", "required"};
  constexpr std::string_view kTypes[] = {"function", "custom", "web_search", "web_search_2025_08_26",
                                         "allowed_tools"};
  constexpr std::string_view kExpected = "`none`, `auto`, `required` or an object";
  ToolChoiceField choice;
  choice.json = &value;
  if (value.is_string()) {
    for (size_t index = 0; index < std::size(kModes); ++index) {
      if (value.as_string() == kModes[index]) {
        choice.kind = static_cast<ToolChoiceField::Kind>(index);
        return choice;
      }
    }
    return wrong_value(place, kExpected, value.as_string());
  }
  if (!value.is_object()) {
    return wrong_kind(place, kExpected, value);
  }
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  HADAL_TRY(const size_t type, fields.choice("type", kTypes));
  switch (type) {
    case 0:
    case 1: {
      choice.kind = type == 0 ? ToolChoiceField::Kind::kFunction : ToolChoiceField::Kind::kCustom;
      HADAL_TRY(choice.name, read_name(fields));
      break;
    }
    case 2:
    case 3:
      choice.kind = ToolChoiceField::Kind::kWebSearch;
      break;
    default:
      HADAL_CHECK(read_allowed_tools(fields, choice));
  }
  return choice;
}

Result<void> read_reasoning(const Fields& fields, Request& request) {
  const JsonValue* reasoning = fields.value("reasoning");
  if (reasoning == nullptr) {
    return {};
  }
  constexpr std::string_view kSummaries[] = {"auto", "concise", "detailed"};
  const Place place(fields.place(), "reasoning");
  HADAL_TRY(const Fields reasoning_fields, Fields::of(*reasoning, place));
  HADAL_TRY(const auto effort, reasoning_fields.optional_choice("effort", kEffortNames));
  if (effort) {
    request.effort = static_cast<AskedEffort>(*effort);
  }
  HADAL_TRY(const auto summary, reasoning_fields.optional_choice("summary", kSummaries));
  if (summary) {
    request.summary = kSummaries[*summary];
  }
  return {};
}

Result<FormatField> read_format(const JsonValue& value, const Place& place) {
  constexpr std::string_view kTypes[] = {"text", "json_schema", "json_object"};
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  HADAL_TRY(const size_t type, fields.choice("type", kTypes));
  FormatField format;
  format.kind = static_cast<FormatField::Kind>(type);
  if (format.kind == FormatField::Kind::kJsonSchema) {
    HADAL_TRY(format.name, fields.string("name"));
    HADAL_TRY(format.schema, fields.required("schema"));
    HADAL_TRY(format.description, fields.optional_string("description"));
    HADAL_TRY(format.strict, fields.optional_bool("strict"));
  }
  return format;
}

Result<void> read_text(const Fields& fields, Request& request) {
  const JsonValue* text = fields.value("text");
  if (text == nullptr) {
    return {};
  }
  const Place place(fields.place(), "text");
  HADAL_TRY(const Fields text_fields, Fields::of(*text, place));
  HADAL_TRY(const auto verbosity, text_fields.optional_choice("verbosity", kLevels));
  if (verbosity) {
    request.verbosity = kLevels[*verbosity];
  }
  if (const JsonValue* format = text_fields.object().find("format")) {
    HADAL_TRY(request.format, read_format(*format, Place(place, "format")));
  }
  return {};
}

Result<void> read_input(const Fields& fields, Request& request) {
  HADAL_TRY(request.instructions, fields.optional_string("instructions"));
  const JsonValue* input = fields.value("input");
  if (input == nullptr) {
    return {};
  }
  request.input_json = input;
  const Place place(fields.place(), "input");
  if (input->is_string()) {
    request.input_text = input->as_string();
    return {};
  }
  if (!input->is_array()) {
    return wrong_kind(place, "a string or a list of items", *input);
  }
  std::vector<Item>& items = request.input.emplace();
  items.reserve(input->items().size());
  for (size_t index = 0; index < input->items().size(); ++index) {
    HADAL_TRY(Item item, read_item(input->items()[index], Place(place, index)));
    items.push_back(std::move(item));
  }
  return {};
}

/// What this side cannot do, and would change the meaning of the request if it were left out.
std::string_view find_unsupported(const Fields& fields) {
  for (const std::string_view key : {"conversation", "prompt"}) {
    if (fields.value(key) != nullptr) {
      return key;
    }
  }
  const JsonValue* background = fields.value("background");
  return background != nullptr && background->is_bool() && background->as_bool() ? "background"
                                                                                 : std::string_view();
}

}  // namespace

Result<ToolField> read_tool(const JsonValue& value, const Place& place) {
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  ToolField tool;
  tool.json = &value;
  HADAL_TRY(tool.type, fields.string("type"));
  if (tool.type == "function") {
    HADAL_TRY(tool.function, read_function(fields));
  } else if (tool.type == "namespace") {
    tool.kind = ToolField::Kind::kNamespace;
    HADAL_TRY(tool.function.name, fields.string("name"));
    HADAL_TRY(tool.function.description, fields.optional_string("description"));
    HADAL_TRY(const auto tools, fields.list("tools"));
    const Place tools_place(place, "tools");
    for (size_t index = 0; index < tools.size(); ++index) {
      constexpr std::string_view kTypes[] = {"function", "custom"};
      const Place inner_place(tools_place, index);
      HADAL_TRY(const Fields inner_fields, Fields::of(tools[index], inner_place));
      HADAL_CHECK(inner_fields.choice("type", kTypes));
      HADAL_TRY(ToolField inner, read_tool(tools[index], inner_place));
      tool.tools.push_back(std::move(inner));
    }
  } else if (tool.type == "custom") {
    tool.kind = ToolField::Kind::kCustom;
    HADAL_TRY(tool.function.name, fields.string("name"));
    HADAL_TRY(tool.function.description, fields.optional_string("description"));
    tool.format = fields.value("format");
  } else if (tool.type == "tool_search") {
    tool.kind = ToolField::Kind::kToolSearch;
    HADAL_TRY(tool.execution, fields.optional_string("execution"));
    HADAL_TRY(tool.function.description, fields.optional_string("description"));
    tool.function.name = "tool_search";
    tool.function.parameters = fields.value("parameters");
  } else if (tool.type.starts_with("web_search")) {
    tool.kind = ToolField::Kind::kWebSearch;
    HADAL_CHECK(check_web_search(fields));
  } else {
    tool.kind = ToolField::Kind::kUnsupported;
  }
  return tool;
}

Result<Request> read_request(const JsonValue& body) {
  constexpr std::string_view kUsed[] = {"model",
                                        "instructions",
                                        "input",
                                        "tools",
                                        "tool_choice",
                                        "parallel_tool_calls",
                                        "reasoning",
                                        "text",
                                        "temperature",
                                        "top_p",
                                        "user",
                                        "top_logprobs",
                                        "max_output_tokens",
                                        "stream",
                                        "conversation",
                                        "previous_response_id",
                                        "prompt",
                                        "background"};
  const Place root;
  HADAL_TRY(const Fields fields, Fields::of(body, root));
  Request request;
  HADAL_TRY(request.model, fields.string("model"));
  HADAL_TRY(request.previous_response_id, fields.optional_string("previous_response_id"));
  HADAL_CHECK(read_input(fields, request));
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
    const Place place(root, "tool_choice");
    HADAL_TRY(request.tool_choice, read_tool_choice(*choice, place));
    if (request.tool_choice.kind == ToolChoiceField::Kind::kAllowed && request.tools.empty()) {
      return wrong_value(Place(place, "type"), "a choice that can be met without tools", "allowed_tools");
    }
  }
  if (const JsonValue* parallel = fields.value("parallel_tool_calls");
      parallel != nullptr && parallel->is_bool()) {
    request.parallel_tool_calls = parallel->as_bool();
  }
  HADAL_CHECK(read_reasoning(fields, request));
  HADAL_CHECK(read_text(fields, request));
  HADAL_TRY(request.temperature, fields.optional_float("temperature"));
  HADAL_TRY(request.top_p, fields.optional_float("top_p"));
  HADAL_TRY(request.top_logprobs, fields.optional_unsigned("top_logprobs", kU8));
  HADAL_TRY(request.max_output_tokens, fields.optional_unsigned("max_output_tokens", kU32));
  HADAL_TRY(request.user, fields.optional_string("user"));
  HADAL_TRY(const auto stream, fields.optional_bool("stream"));
  request.stream = stream.value_or(false);
  request.unsupported_field = find_unsupported(fields);
  request.ignored_fields = unknown_fields(body, kUsed);
  return request;
}

}  // namespace hadal::recipe::responses
