#pragma once
// Rules that all protocols have for tools: names, schemas, and which of them may be called.

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "recipe/conversation.h"

namespace hadal::recipe {

/// A tool as a request declares it.
struct RequestedTool {
  std::string name;  ///< as the prompt shows it
  std::optional<std::string> description;
  const JsonValue* parameters = nullptr;  ///< nullptr: none given
  std::optional<bool> strict;
  bool defer_loading = false;
  bool fixed = false;         ///< a tool of our own, whose schema needs no check
  bool keeps_schema = false;  ///< `strict` is a wish for the output only: the schema is not written anew
};

struct RequestedChoice {
  enum class Kind : uint8_t { kAuto, kNone, kRequired, kNamed };
  Kind kind = Kind::kAuto;
  std::string name;  ///< kNamed
  bool while_thinking =
      false;  ///< kRequired may be combined with thinking: the call comes after the reasoning
};

/// A name of 1 to 128 letters, digits, `_` and `-`; otherwise `Invalid '<label>': ...`.
Result<void> check_tool_name(std::string_view name, std::string_view label);

/// Fails for two equal names: `Tool names must be unique.`
Result<void> check_unique_names(std::span<const std::string_view> names, std::string_view message);

/// Checks the tools in order, and writes those that are strict anew. Values are allocated in `arena`.
Result<std::vector<ToolDefinition>> define_tools(std::span<RequestedTool> tools, JsonArena& arena);

/// Sets the conversation's tools and choice: `none` leaves no tools, a named one only that tool. Without
/// tools every choice but `none` is `auto`.
Result<void> choose_tools(Conversation& conversation, std::vector<ToolDefinition> tools,
                          const RequestedChoice& choice);

/// Fails where some tools in force are strict and others not.
Result<void> check_strict_mix(std::span<const ToolDefinition> tools);

}  // namespace hadal::recipe
