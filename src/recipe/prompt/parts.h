#pragma once
// Pieces that V4 and V4.1 prompts share up to details: tool schemas, calls in DSML, reply formats.

#include <span>
#include <string_view>

#include "recipe/conversation.h"
#include "recipe/json_text.h"
#include "recipe/prompt/builder.h"

namespace hadal::recipe {

/// How a model version spells tool markup.
struct DsmlStyle {
  std::string_view space;       ///< between the DSML token and a tag name
  std::string_view block;       ///< name of the tag around all calls of a turn
  bool line_for_no_parameters;  ///< whether a call without parameters has an empty line in it
  JsonStyle json;
};

inline constexpr DsmlStyle kDsmlV41{" ", "calls", true, JsonStyle::kPromptV41};
inline constexpr DsmlStyle kDsmlV4{"", "tool_calls", false, JsonStyle::kPromptV4};

/// How tools are called, up to the list of schemas.
void append_tools_head(PromptBuilder& prompt, const DsmlStyle& style);
inline constexpr std::string_view kToolsTail =
    "You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n";

/// One tool's schema: `{"name": ..., "description": ..., "parameters": ...}`.
void append_tool_schema(PromptBuilder& prompt, const ToolDefinition& tool, JsonStyle style);

/// The block of a turn's calls, with the blank line before it. Arguments that are a JSON object (or a JSON
/// string that holds one) become its parameters; any others one parameter `arguments` with the text as given.
void append_calls(PromptBuilder& prompt, std::span<const ToolCall> calls, const DsmlStyle& style);

/// What an answer that must call a tool begins with.
void append_calls_start(PromptBuilder& prompt, const DsmlStyle& style);

/// The demand to reply in a JSON schema.
void append_schema_demand(PromptBuilder& prompt, std::string_view schema);

}  // namespace hadal::recipe
