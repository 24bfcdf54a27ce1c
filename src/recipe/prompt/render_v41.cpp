#include "recipe/prompt/render_v41.h"

#include "recipe/prompt/parts.h"
#include "recipe/prompt/turns.h"

namespace hadal::recipe {
namespace {

class RendererV41 {
 public:
  RendererV41(Conversation& conversation, PromptBuilder& prompt)
      : conversation_(conversation),
        messages_(conversation.messages),
        prompt_(prompt),
        tools_in_force_(conversation.tools_in_force()),
        demands_format_(conversation.json_object || conversation.response_schema.has_value()),
        tool_loop_start_(tool_loop_start(conversation)) {}

  void render() {
    prompt_.special(SpecialToken::kBos);
    size_t index = render_head();
    while (index < messages_.size()) {
      switch (messages_[index].role) {
        case Role::kSystem:
          prompt_.special(SpecialToken::kSystem);
          render_system(messages_[index]);
          ++index;
          break;
        case Role::kLatestReminder:
          if (index == 0 || messages_[index - 1].role != Role::kLatestReminder ||
              conversation_.fidelity.keep_repeated_reminders) {
            prompt_.special(SpecialToken::kLatestReminder);
            prompt_.content(messages_[index]);
          }
          ++index;
          break;
        case Role::kUser:
        case Role::kTool:
          index = render_user_turn(index);
          break;
        case Role::kAssistant:
          render_assistant(index);
          ++index;
          break;
      }
    }
    if (messages_.empty() || !is_continued(messages_.size() - 1)) {
      prompt_.special(SpecialToken::kAssistant);
      prompt_.special(conversation_.thinking ? SpecialToken::kThinkStart : SpecialToken::kThinkEnd);
    }
    if (tools_in_force_ && conversation_.tool_choice == ToolChoice::kRequired) {
      append_calls_start(prompt_, kDsmlV41);
    }
  }

 private:
  bool is_continued(size_t index) const {
    return index + 1 == messages_.size() && messages_[index].role == Role::kAssistant &&
           messages_[index].prefix;
  }

  /// Effort, first system message, tools and format. Returns the first message that is left.
  size_t render_head() {
    const bool starts_with_system = !messages_.empty() && messages_[0].role == Role::kSystem;
    const bool shows_text = tools_in_force_ || demands_format_;
    if ((messages_.empty() && !shows_text) || !(conversation_.thinking || starts_with_system || shows_text)) {
      return 0;
    }
    prompt_.special(SpecialToken::kSystem);
    if (conversation_.thinking) {
      const Effort effort = conversation_.effort.value_or(Effort::kHigh);
      prompt_.text("Reasoning Effort: ");
      prompt_.text(effort == Effort::kLow ? "50" : effort == Effort::kMax ? "100" : "75");
      prompt_.text(" (range 1-100, the higher the value, the more thorough the reasoning)\n\n");
    }
    if (starts_with_system) {
      prompt_.content(messages_[0]);
    }
    if (tools_in_force_) {
      prompt_.text("\n\n");
      append_tools_head(prompt_, kDsmlV41);
      bool first = true;
      for (const ToolDefinition& tool : conversation_.tools) {
        if (!tool.defer_loading) {
          prompt_.text(first ? "" : "\n");
          first = false;
          append_tool_schema(prompt_, tool, JsonStyle::kPromptV41);
        }
      }
      prompt_.text("\n\n");
      prompt_.text(kToolsTail);
    }
    if (conversation_.json_object) {
      append_schema_demand(prompt_, "{\"type\": \"json_object\"}");
    } else if (conversation_.response_schema) {
      append_schema_demand(prompt_, "");
      append_json(prompt_.raw(), *conversation_.response_schema, JsonStyle::kPromptV41);
    }
    if (starts_with_system) {
      render_definitions(messages_[0]);
    }
    return starts_with_system ? 1 : 0;
  }

  void render_system(Message& message) {
    prompt_.content(message);
    render_definitions(message);
  }

  void render_definitions(const Message& message) {
    if (message.tools.empty()) {
      return;
    }
    prompt_.text("\n\n### Updated Tool Schemas\n\n");
    bool first = true;
    for (const ToolDefinition& tool : message.tools) {
      prompt_.text(first ? "" : "\n");
      first = false;
      append_tool_schema(prompt_, tool, JsonStyle::kPromptV41);
    }
  }

  /// Adjacent user and tool messages share one user turn. Returns the message after them.
  size_t render_user_turn(size_t begin) {
    size_t end = begin;
    while (end < messages_.size() &&
           (messages_[end].role == Role::kUser || messages_[end].role == Role::kTool)) {
      ++end;
    }
    const std::span<Message> turn = std::span(messages_).subspan(begin, end - begin);
    order_results(turn);
    prompt_.special(SpecialToken::kUser);
    bool first = true;
    for (Message& message : turn) {
      prompt_.text(first ? "" : "\n\n");
      first = false;
      if (message.role == Role::kTool) {
        prompt_.text("<tool_result>");
        prompt_.content(message);
        prompt_.text("</tool_result>");
      } else {
        prompt_.content(message);
      }
    }
    return end;
  }

  /// Results come in the order of the calls that they answer.
  void order_results(std::span<Message> turn) {
    if (last_calls_ == nullptr) {
      return;
    }
    const CallOrder order(*last_calls_);
    sort_tool_results(turn, [&](const Message& message) { return order.place(*message.tool_call_id); });
  }

  /// Where no tools are in force, history goes without its reasoning. A turn to be continued keeps it, and so
  /// do calls of the running tool loop.
  bool keeps_reasoning(size_t index) const {
    const Message& message = messages_[index];
    const bool has_reasoning = message.reasoning && !message.reasoning->empty();
    const FidelityOptions& fidelity = conversation_.fidelity;
    if (tools_in_force_) {
      return true;
    }
    if (is_continued(index)) {
      return index > 0 || (fidelity.keep_opening_reasoning && (has_reasoning || message.content.empty()));
    }
    return fidelity.keep_tool_loop_reasoning && index >= tool_loop_start_ && message.tool_calls &&
           has_reasoning;
  }

  void render_assistant(size_t index) {
    Message& message = messages_[index];
    const bool continued = is_continued(index);
    prompt_.special(SpecialToken::kAssistant);
    const bool shows_reasoning = conversation_.thinking && keeps_reasoning(index);
    if (shows_reasoning) {
      prompt_.special(SpecialToken::kThinkStart);
      prompt_.model_text(message.reasoning ? std::string_view(*message.reasoning) : "");
    }
    if (!(continued && shows_reasoning && message.content.empty())) {
      prompt_.special(SpecialToken::kThinkEnd);
    }
    prompt_.model_text(message.content);
    if (message.tool_calls && !message.tool_calls->empty()) {
      append_calls(prompt_, *message.tool_calls, kDsmlV41);
    }
    if (message.tool_calls) {
      last_calls_ = &*message.tool_calls;
    }
    if (!continued) {
      prompt_.special(SpecialToken::kEos);
    }
  }

  Conversation& conversation_;
  std::vector<Message>& messages_;
  PromptBuilder& prompt_;
  const bool tools_in_force_;
  const bool demands_format_;
  const size_t tool_loop_start_;
  const std::vector<ToolCall>* last_calls_ = nullptr;
};

}  // namespace

void render_v41(Conversation& conversation, PromptBuilder& prompt) {
  RendererV41(conversation, prompt).render();
}

}  // namespace hadal::recipe
