#include "recipe/settings.h"

#include <algorithm>

#include "recipe/json_text.h"

namespace hadal::recipe {
namespace {

constexpr std::pair<std::string_view, ModelVersion> kModels[] = {
    {"DeepSeek-V4-Pro", ModelVersion::kV4},
    {"DeepSeek-V4.1-Flash", ModelVersion::kV41},
};

void append_tool(std::string& out, const ToolDefinition& tool) {
  out += R"({"type":"function","function":{"name":)";
  append_json_string(out, tool.name);
  out += R"(,"description":)";
  if (tool.description) {
    append_json_string(out, *tool.description);
  } else {
    out += "null";
  }
  out += R"(,"parameters":)";
  append_json(out, tool.parameters, JsonStyle::kCompact);
  out += R"(,"strict":)";
  out += !tool.strict ? "null" : *tool.strict ? "true" : "false";
  out += tool.defer_loading ? R"(},"defer_loading":true})" : "}}";
}

std::optional<OutputConstraint> make_constraint(const ConvertedRequest& request) {
  const Conversation& conversation = request.conversation;
  OutputConstraint constraint;
  if (conversation.tools_in_force()) {
    constraint.kind = conversation.tool_choice == ToolChoice::kRequired
                          ? OutputConstraint::Kind::kToolCallRequired
                          : OutputConstraint::Kind::kToolCall;
    constraint.schema = "[";
    for (const ToolDefinition& tool : conversation.tools) {
      if (!request.callable || request.callable->contains(tool.name)) {
        constraint.schema += constraint.schema.size() > 1 ? "," : "";
        append_tool(constraint.schema, tool);
      }
    }
    constraint.schema += "]";
    return constraint;
  }
  if (conversation.json_object) {
    return constraint;
  }
  if (request.constraint_schema) {
    append_json(constraint.schema, *request.constraint_schema, JsonStyle::kCompact);
    return constraint;
  }
  if (conversation.response_regex) {
    constraint.kind = OutputConstraint::Kind::kRegex;
    constraint.schema = *conversation.response_regex;
    return constraint;
  }
  return std::nullopt;
}

}  // namespace

Result<ModelVersion> select_model(std::string_view name, const ConversionOptions& options) {
  for (const auto& [known, version] : kModels) {
    if (name == known) {
      return options.model_version.value_or(version);
    }
  }
  if (const auto alias = options.model_aliases.find(std::string(name));
      alias != options.model_aliases.end()) {
    return options.model_version.value_or(alias->second);
  }
  std::string names;
  for (const auto& [known, version] : kModels) {
    names += names.empty() ? "" : ", ";
    names += known;
  }
  for (const auto& [alias, version] : options.model_aliases) {
    names += ", ";
    names += alias;
  }
  return fail(ErrorCode::kNotFound, "The supported API model names are {}, but you passed {}.", names, name);
}

Thinking resolve_thinking(std::optional<bool> asked, std::optional<AskedEffort> effort,
                          const ConversionOptions& options) {
  Thinking thinking;
  thinking.on = asked.value_or(effort ? *effort != AskedEffort::kNone : options.default_thinking_mode);
  if (!thinking.on) {
    return thinking;
  }
  switch (effort.value_or(AskedEffort::kHigh)) {
    case AskedEffort::kMinimal:
    case AskedEffort::kLow:
      thinking.effort = Effort::kLow;
      break;
    case AskedEffort::kNone:
    case AskedEffort::kMedium:
    case AskedEffort::kHigh:
      thinking.effort = Effort::kHigh;
      break;
    case AskedEffort::kXhigh:
      thinking.effort = Effort::kXhigh;
      break;
    case AskedEffort::kUltra:
    case AskedEffort::kMax:
      thinking.effort = Effort::kMax;
      break;
  }
  return thinking;
}

Result<void> check_temperature(std::optional<float> temperature) {
  if (temperature && !(*temperature >= 0.0F && *temperature <= 2.0F)) {
    return fail(ErrorCode::kInvalidArgument,
                "Invalid temperature value, the valid range of temperature is [0, 2]");
  }
  return {};
}

Result<void> check_top_p(std::optional<float> top_p) {
  if (top_p && !(*top_p > 0.0F && *top_p <= 1.0F)) {
    return fail(ErrorCode::kInvalidArgument, "Invalid top_p value, the valid range of top_p is (0, 1.0]");
  }
  return {};
}

uint64_t max_tokens_bound(bool thinking, const ConversionOptions& options) {
  return thinking ? options.thinking_max_tokens_upper_bound : options.non_thinking_max_tokens_upper_bound;
}

Result<void> check_max_tokens(std::optional<uint64_t> max_tokens, bool thinking,
                              const ConversionOptions& options) {
  const uint64_t bound = max_tokens_bound(thinking, options);
  if (max_tokens && (*max_tokens < 1 || *max_tokens > bound)) {
    return fail(ErrorCode::kInvalidArgument,
                "Invalid max_tokens value, the valid range of max_tokens is [1, {}]", bound);
  }
  return {};
}

void set_sampling(InferenceParams& inference, std::optional<float> temperature, std::optional<float> top_p,
                  ModelVersion version, bool thinking, bool tools_in_force) {
  inference.temperature = thinking ? 1.0F : temperature.value_or(1.0F);
  if (version == ModelVersion::kV4) {
    inference.top_p = !thinking ? top_p.value_or(1.0F) : tools_in_force ? 0.95F : 1.0F;
  } else {
    inference.top_p = thinking ? std::max(top_p.value_or(1.0F), 0.95F) : 1.0F;
  }
}

Result<void> check_stop_sequences(std::span<const std::string> sequences, std::string_view name) {
  constexpr size_t kMost = 16;
  if (sequences.size() > kMost) {
    return fail(ErrorCode::kInvalidArgument, "Stop string array too long: {}", sequences.size());
  }
  for (size_t index = 0; index < sequences.size(); ++index) {
    if (sequences[index].empty()) {
      return fail(
          ErrorCode::kInvalidArgument,
          "Invalid '{}[{}]': empty string. Expected a string with minimum length 1, but got an empty string "
          "instead.",
          name, index);
    }
  }
  return {};
}

ThinkingStage continued_stage(const Message& turn) {
  if (!turn.content.empty()) {
    return ThinkingStage::kContentContinuation;
  }
  return turn.reasoning && !turn.reasoning->empty() ? ThinkingStage::kReasoningContinuation
                                                    : ThinkingStage::kReasoningStart;
}

namespace {

/// Whether the answer begins inside reasoning, where no call can stand yet.
bool starts_in_reasoning(const Conversation& conversation) {
  if (!conversation.thinking) {
    return false;
  }
  return conversation.messages.empty() || !conversation.messages.back().prefix ||
         continued_stage(conversation.messages.back()) != ThinkingStage::kContentContinuation;
}

}  // namespace

void finish_settings(ConvertedRequest& request) {
  Conversation& conversation = request.conversation;
  PreparedRequest& prepared = request.prepared;
  prepared.thinking = conversation.thinking;
  prepared.notices = request.notices.take();
  prepared.constraint = make_constraint(request);
  if (conversation.tool_choice == ToolChoice::kRequired && starts_in_reasoning(conversation)) {
    // The prompt cannot open the calls; the constraint demands them after the reasoning.
    conversation.tool_choice = ToolChoice::kAuto;
  }
  prepared.parsing.parse_tool_calls = conversation.tools_in_force();
  prepared.parsing.starts_in_tool_calls =
      conversation.tools_in_force() && conversation.tool_choice == ToolChoice::kRequired;
  prepared.parsing.parse_json_output = conversation.json_object;
  if (conversation.thinking) {
    const bool continues = !conversation.messages.empty() && conversation.messages.back().prefix;
    prepared.parsing.thinking_initial_stage =
        continues ? continued_stage(conversation.messages.back()) : ThinkingStage::kReasoningStart;
  }
  constexpr uint64_t kDirect = 8192;
  constexpr uint64_t kThinking = 65536;
  constexpr uint64_t kThinkingMost = 131072;
  prepared.default_max_tokens = !conversation.thinking                ? kDirect
                                : conversation.effort == Effort::kMax ? kThinkingMost
                                                                      : kThinking;
}

}  // namespace hadal::recipe
