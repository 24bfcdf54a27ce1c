#include "recipe/prompt/parts.h"

#include <algorithm>

namespace hadal::recipe {
namespace {

// `~` is the DSML token, `^` the space after it, `&` the name of the calls block, `{` and `}` the thinking
// tokens.
constexpr std::string_view kToolsHead =
    "## Tools\n"
    "\n"
    "You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "
    "\"<~^&>\" block like the following:\n"
    "\n"
    "<~^&>\n"
    "<~^invoke name=\"$TOOL_NAME\">\n"
    "<~^parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE</~^parameter>\n"
    "...\n"
    "</~^invoke>\n"
    "<~^invoke name=\"$TOOL_NAME2\">\n"
    "...\n"
    "</~^invoke>\n"
    "</~^&>\n"
    "\n"
    "String parameters should be specified as is and set `string=\"true\"`. For all other types (numbers, "
    "booleans, arrays, objects), pass the value in JSON format and set `string=\"false\"`.\n"
    "\n"
    "If thinking_mode is enabled (triggered by {), you MUST output your complete reasoning inside {...} "
    "BEFORE "
    "any tool calls or final response.\n"
    "\n"
    "Otherwise, output directly after } with tool calls or final response.\n"
    "\n"
    "### Available Tool Schemas\n"
    "\n";

void append_tag(PromptBuilder& prompt, std::string_view open, const DsmlStyle& style) {
  prompt.text(open);
  prompt.special(SpecialToken::kDsml);
  prompt.text(style.space);
}

void append_parameter(PromptBuilder& prompt, std::string_view key, const JsonValue& value,
                      const DsmlStyle& style) {
  append_tag(prompt, "<", style);
  prompt.text("parameter name=\"");
  prompt.text(key);
  if (value.is_string()) {
    prompt.text("\" string=\"true\">");
    prompt.text(value.as_string());
  } else {
    prompt.text("\" string=\"false\">");
    append_json(prompt.raw(), value, style.json);
  }
  append_tag(prompt, "</", style);
  prompt.text("parameter>");
}

/// The object that the arguments of a call are, also where a client encoded it twice; otherwise null.
JsonValue argument_object(std::string_view arguments, JsonArena& arena) {
  auto value = read_json(arguments, arena);
  if (value && value->is_string()) {
    value = read_json(value->as_string(), arena);
  }
  return value && value->is_object() ? *value : JsonValue();
}

}  // namespace

void append_tools_head(PromptBuilder& prompt, const DsmlStyle& style) {
  std::string_view rest = kToolsHead;
  while (true) {
    const size_t mark = rest.find_first_of("~^&{}");
    prompt.text(rest.substr(0, mark));
    if (mark == std::string_view::npos) {
      return;
    }
    switch (rest[mark]) {
      case '~':
        prompt.special(SpecialToken::kDsml);
        break;
      case '^':
        prompt.text(style.space);
        break;
      case '&':
        prompt.text(style.block);
        break;
      case '{':
        prompt.special(SpecialToken::kThinkStart);
        break;
      default:
        prompt.special(SpecialToken::kThinkEnd);
    }
    rest.remove_prefix(mark + 1);
  }
}

void append_tool_schema(PromptBuilder& prompt, const ToolDefinition& tool, JsonStyle style) {
  std::string& out = prompt.raw();
  out += "{\"name\": ";
  append_json_string(out, tool.name);
  out += ", \"description\": ";
  append_json_string(out, tool.description ? std::string_view(*tool.description) : "");
  out += ", \"parameters\": ";
  append_json(out, tool.parameters, style);
  out += '}';
}

void append_calls(PromptBuilder& prompt, std::span<const ToolCall> calls, const DsmlStyle& style) {
  append_calls_start(prompt, style);
  JsonArena arena;
  for (const ToolCall& call : calls) {
    append_tag(prompt, "<", style);
    prompt.text("invoke name=\"");
    prompt.text(call.name);
    prompt.text("\">\n");
    arena.clear();
    const JsonValue arguments = argument_object(call.arguments, arena);
    bool first = true;
    if (arguments.is_object()) {
      for (const JsonMember& member : arguments.members()) {
        prompt.text(first ? "" : "\n");
        first = false;
        append_parameter(prompt, member.key, member.value, style);
      }
    } else {
      first = false;
      append_parameter(prompt, "arguments", JsonValue::string(call.arguments), style);
    }
    prompt.text(first && !style.line_for_no_parameters ? "" : "\n");
    append_tag(prompt, "</", style);
    prompt.text("invoke>\n");
  }
  append_tag(prompt, "</", style);
  prompt.text(style.block);
  prompt.text(">");
}

void append_calls_start(PromptBuilder& prompt, const DsmlStyle& style) {
  prompt.text("\n\n");
  append_tag(prompt, "<", style);
  prompt.text(style.block);
  prompt.text(">\n");
}

void append_schema_demand(PromptBuilder& prompt, std::string_view schema) {
  prompt.text("\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n");
  prompt.text(schema);
}

}  // namespace hadal::recipe
