#pragma once
// A conversation as the model will see it: what all three protocols are turned into, and what prompts are
// rendered from.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "recipe/json_value.h"
#include "recipe/prepared_request.h"

namespace hadal::recipe {

enum class Role : uint8_t { kSystem, kUser, kAssistant, kTool, kLatestReminder };
enum class ToolChoice : uint8_t { kAuto, kNone, kRequired };
enum class Effort : uint8_t { kLow, kHigh, kXhigh, kMax };

/// An image inside a message. `offset` is the byte in Message::content where its placeholder begins; the
/// placeholder's text (the spelling of the image token) is part of the content. kNowhere: a source without a
/// placeholder, only in conversations that were built by hand.
struct PlacedImage {
  static constexpr size_t kNowhere = static_cast<size_t>(-1);
  size_t offset = 0;
  ImageSource source;
};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  ///< JSON text, as given; need not be valid
};

struct ToolDefinition {
  std::string name;
  std::optional<std::string> description;
  JsonValue parameters;  ///< memory of Conversation::arena
  std::optional<bool> strict;
  bool defer_loading = false;
};

struct Message {
  Role role = Role::kUser;
  std::string content;
  std::vector<PlacedImage> images;                  ///< ordered by offset; not for assistants
  std::optional<std::string> reasoning;             ///< assistant
  std::optional<std::vector<ToolCall>> tool_calls;  ///< assistant
  bool prefix = false;                              ///< assistant, last message: to be continued
  std::optional<std::string> tool_call_id;          ///< tool
  std::vector<ToolDefinition> tools;                ///< system: definitions that become known here
};

/// Where the reference package loses or reorders something. All false gives its prompts; conversations from
/// protocol requests keep what the client sent (docs/protocol-compatibility.md).
struct FidelityOptions {
  bool keep_repeated_reminders = false;  ///< V4.1: a reminder directly after a reminder
  bool keep_call_order = false;          ///< V4: calls and results of a turn as given, not sorted by id
  /// V4.1 without declared tools: results of tools do not count as a new turn, so that the reasoning which
  /// led to the calls after the last user turn stays.
  bool keep_tool_loop_reasoning = false;
  /// V4.1 without declared tools: a turn to be continued that is the whole conversation keeps its reasoning,
  /// too, or begins with it if it is empty.
  bool keep_opening_reasoning = false;
};

struct Conversation {
  std::vector<Message> messages;
  std::vector<ToolDefinition> tools;
  bool thinking = true;
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::optional<Effort> effort;              ///< without it: high when thinking
  bool json_object = false;                  ///< reply with any JSON object
  std::optional<JsonValue> response_schema;  ///< as the client sent it; memory of `arena`
  std::optional<std::string> response_regex;
  FidelityOptions fidelity;
  /// Owns what JSON values here refer to, together with the text that was read.
  std::shared_ptr<JsonArena> arena = std::make_shared<JsonArena>();

  bool tools_in_force() const { return !tools.empty() && tool_choice != ToolChoice::kNone; }
};

/// The conversation in the shape of the goldens' `conversation`: settings always, `messages` and `tools` only
/// with `with_messages`.
Json describe_conversation(const Conversation& conversation, bool with_messages);

/// A deep copy as an ordinary JSON object.
Json to_json(const JsonValue& value);

}  // namespace hadal::recipe
