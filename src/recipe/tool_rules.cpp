#include "recipe/tool_rules.h"

#include <algorithm>
#include <set>

#include "recipe/schema/check.h"
#include "recipe/schema/strict.h"

namespace hadal::recipe {

Result<void> check_tool_name(std::string_view name, std::string_view label) {
  constexpr size_t kLongest = 128;
  if (name.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "Invalid '{}': empty string. Expected a string with minimum length 1, but got an empty "
                "string instead.",
                label);
  }
  if (name.size() > kLongest) {
    return fail(ErrorCode::kInvalidArgument,
                "Invalid '{}': string too long. Expected a string with maximum length {}, but got a string "
                "with length "
                "{} instead.",
                label, kLongest, name.size());
  }
  const bool matches = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  if (!matches) {
    return fail(ErrorCode::kInvalidArgument,
                "Invalid '{}': string does not match pattern. Expected a string that matches the pattern "
                "'^[a-zA-Z0-9_-]+$'.",
                label);
  }
  return {};
}

Result<void> check_unique_names(std::span<const std::string_view> names, std::string_view message) {
  const std::set<std::string_view> seen(names.begin(), names.end());
  if (seen.size() != names.size()) {
    return fail(ErrorCode::kInvalidArgument, "{}", message);
  }
  return {};
}

Result<std::vector<ToolDefinition>> define_tools(std::span<RequestedTool> tools, JsonArena& arena) {
  std::vector<ToolDefinition> definitions;
  definitions.reserve(tools.size());
  std::set<std::string_view> names;
  for (RequestedTool& tool : tools) {
    ToolDefinition definition;
    definition.name = std::move(tool.name);
    definition.description = std::move(tool.description);
    definition.strict = tool.strict;
    definition.defer_loading = tool.defer_loading;
    definitions.push_back(std::move(definition));
    ToolDefinition& kept = definitions.back();
    if (!names.insert(kept.name).second) {
      return fail(ErrorCode::kInvalidArgument, "Tool names must be unique.");
    }
    kept.parameters = tool.parameters != nullptr ? *tool.parameters : JsonValue::object({});
    if (tool.fixed) {
      continue;
    }
    if (tool.strict.value_or(false) && !tool.keeps_schema) {
      HADAL_TRY(kept.parameters, strict_tool_parameters(tool.parameters, arena));
    } else if (tool.parameters != nullptr) {
      if (auto checked = check_tool_schema(kept.parameters); !checked) {
        return fail(ErrorCode::kInvalidArgument, "Invalid schema for function '{}': {}", kept.name,
                    checked.error().message);
      }
    }
  }
  return definitions;
}

Result<void> choose_tools(Conversation& conversation, std::vector<ToolDefinition> tools,
                          const RequestedChoice& choice) {
  using Kind = RequestedChoice::Kind;
  if (choice.kind == Kind::kNone) {
    conversation.tool_choice = ToolChoice::kNone;
    return {};
  }
  conversation.tool_choice = ToolChoice::kAuto;
  if (tools.empty()) {
    return {};
  }
  if (choice.kind == Kind::kNamed) {
    const auto named = std::find_if(tools.begin(), tools.end(),
                                    [&](const ToolDefinition& tool) { return tool.name == choice.name; });
    if (named == tools.end()) {
      return fail(
          ErrorCode::kInvalidArgument,
          "Invalid value for 'tool_call': no function named '{}' was specified in the 'tools' parameter.",
          choice.name);
    }
    std::iter_swap(tools.begin(), named);
    tools.erase(std::next(tools.begin()), tools.end());
  }
  if (choice.kind == Kind::kNamed || choice.kind == Kind::kRequired) {
    if (conversation.thinking && !choice.while_thinking) {
      return fail(ErrorCode::kInvalidArgument, "Thinking mode does not support this tool_choice");
    }
    conversation.tool_choice = ToolChoice::kRequired;
  }
  conversation.tools = std::move(tools);
  return {};
}

Result<void> check_strict_mix(std::span<const ToolDefinition> tools) {
  const auto is_strict = [](const ToolDefinition& tool) { return tool.strict.value_or(false); };
  if (std::any_of(tools.begin(), tools.end(), is_strict) &&
      !std::all_of(tools.begin(), tools.end(), is_strict)) {
    return fail(ErrorCode::kInvalidArgument,
                "Cannot use strict tool with non-strict tool in the same request");
  }
  return {};
}

}  // namespace hadal::recipe
