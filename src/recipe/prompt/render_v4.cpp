#include "recipe/prompt/render_v4.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "recipe/prompt/parts.h"
#include "recipe/prompt/turns.h"

namespace hadal::recipe {
namespace {

constexpr std::string_view kHighEffort =
    "Reasoning Effort: Absolute maximum with no shortcuts permitted.\n"
    "You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the "
    "root "
    "cause, rigorously stress-testing your logic against all potential paths, edge cases, and adversarial "
    "scenarios.\n"
    "Explicitly write out your entire deliberation process, documenting every intermediate step, considered "
    "alternative, and rejected hypothesis to ensure absolutely no assumption is left unchecked.\n"
    "\n";

constexpr std::string_view kMaxEffort =
    "Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.\n"
    "You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: exhaustively "
    "decompose the problem into its most fundamental components, trace every causal chain to its root, and "
    "resolve the underlying cause rather than any surface symptom.\n"
    "Do not stop reasoning until you have independently verified the solution from multiple angles and are "
    "certain that no assumption remains unchecked and no error remains undiscovered.\n"
    "\n";

class RendererV4 {
 public:
  RendererV4(Conversation& conversation, PromptBuilder& prompt)
      : conversation_(conversation),
        messages_(conversation.messages),
        prompt_(prompt),
        tools_in_force_(conversation.tools_in_force()) {}

  void render() {
    prompt_.special(SpecialToken::kBos);
    render_head();
    // System messages stand in the head; the turns go on around them.
    std::erase_if(messages_, [](const Message& message) { return message.role == Role::kSystem; });
    merge_users();
    for (size_t index = 0; index < messages_.size(); ++index) {
      switch (messages_[index].role) {
        case Role::kSystem:
          break;
        case Role::kLatestReminder:
          prompt_.special(SpecialToken::kLatestReminder);
          prompt_.content(messages_[index]);
          open_turn_ = OpenTurn::kNone;
          break;
        case Role::kUser:
          render_user(messages_[index]);
          break;
        case Role::kTool:
          render_result(messages_[index]);
          break;
        case Role::kAssistant:
          render_assistant(index);
          open_turn_ = OpenTurn::kNone;
          break;
      }
    }
    if (messages_.empty() || !is_continued(messages_.size() - 1)) {
      prompt_.special(SpecialToken::kAssistant);
      prompt_.special(conversation_.thinking ? SpecialToken::kThinkStart : SpecialToken::kThinkEnd);
    }
    if (tools_in_force_ && conversation_.tool_choice == ToolChoice::kRequired) {
      append_calls_start(prompt_, kDsmlV4);
    }
  }

 private:
  enum class OpenTurn { kNone, kUser, kResults };

  bool is_continued(size_t index) const {
    return index + 1 == messages_.size() && messages_[index].role == Role::kAssistant &&
           messages_[index].prefix;
  }

  /// Effort, all system messages, tools and format.
  void render_head() {
    if (conversation_.thinking) {
      const Effort effort = conversation_.effort.value_or(Effort::kHigh);
      if (effort != Effort::kLow) {
        prompt_.text(effort == Effort::kMax ? kMaxEffort : kHighEffort);
      }
    }
    bool first = true;
    for (Message& message : messages_) {
      if (message.role == Role::kSystem && !message.content.empty()) {
        prompt_.text(first ? "" : "\n\n");
        first = false;
        prompt_.content(message);
      }
    }
    if (tools_in_force_) {
      prompt_.text("\n\n");
      append_tools_head(prompt_, kDsmlV4);
      for (const ToolDefinition& tool : conversation_.tools) {
        if (!tool.defer_loading) {
          append_tool_schema(prompt_, tool, JsonStyle::kPromptV4);
          prompt_.text("\n");
        }
      }
      prompt_.text("\n");
      prompt_.text(kToolsTail);
    }
    if (conversation_.json_object) {
      prompt_.text(
          "\n\nYou are a helpful assistant designed to output JSON.\n## Response Format:\n\n"
          "Reply with JSON object ONLY.");
    } else if (conversation_.response_schema) {
      append_schema_demand(prompt_, "");
      append_json(prompt_.raw(), *conversation_.response_schema, JsonStyle::kPromptV4);
    }
  }

  /// Makes one message of adjacent user messages; empty ones leave no trace in it.
  void merge_users() {
    size_t kept = 0;
    for (size_t index = 0; index < messages_.size(); ++index) {
      Message& message = messages_[index];
      if (message.role == Role::kUser && kept > 0 && messages_[kept - 1].role == Role::kUser) {
        append(messages_[kept - 1], message);
        continue;
      }
      if (kept != index) {
        messages_[kept] = std::move(message);
      }
      ++kept;
    }
    messages_.resize(kept);
  }

  static void append(Message& message, Message& next) {
    if (next.content.empty()) {
      return;
    }
    if (!message.content.empty()) {
      message.content += "\n\n";
    }
    const size_t offset = message.content.size();
    message.content += next.content;
    for (PlacedImage& image : next.images) {
      image.offset += image.offset == PlacedImage::kNowhere ? 0 : offset;
      message.images.push_back(std::move(image));
    }
  }

  void render_user(Message& message) {
    if (open_turn_ == OpenTurn::kNone) {
      prompt_.special(SpecialToken::kUser);
    } else {
      prompt_.text("\n\n");
    }
    prompt_.content(message);
    open_turn_ = OpenTurn::kUser;
  }

  void render_result(Message& message) {
    if (open_turn_ == OpenTurn::kResults) {
      prompt_.text("\n\n");
    } else {
      prompt_.special(SpecialToken::kUser);
    }
    prompt_.text("<tool_result>");
    prompt_.content(message);
    prompt_.text("</tool_result>");
    open_turn_ = OpenTurn::kResults;
  }

  /// Brings the results of a turn, which are the messages after it, in the order of its calls. Where calls go
  /// by their ids, so do the results, and other messages in their place come after them. Fewer messages than
  /// calls stay as they are.
  void order_results(size_t turn) {
    const bool by_id = !conversation_.fidelity.keep_call_order;
    std::vector<ToolCall>& calls = *messages_[turn].tool_calls;
    if (by_id) {
      std::stable_sort(calls.begin(), calls.end(),
                       [](const ToolCall& a, const ToolCall& b) { return a.id < b.id; });
    }
    if (messages_.size() - turn - 1 < calls.size()) {
      return;
    }
    const auto first = messages_.begin() + static_cast<ptrdiff_t>(turn) + 1;
    const auto last = first + static_cast<ptrdiff_t>(calls.size());
    const CallOrder order(by_id ? std::span<const ToolCall>() : calls);
    const auto key = [&](const Message& message) {
      const std::string_view id = message.tool_call_id ? std::string_view(*message.tool_call_id) : "";
      return std::tuple(message.role != Role::kTool,
                        by_id ? message.tool_call_id.has_value() : order.place(id), by_id ? id : "");
    };
    const auto before = [&](const Message& a, const Message& b) { return key(a) < key(b); };
    if (!std::is_sorted(first, last, before)) {
      std::stable_sort(first, last, before);
    }
  }

  void render_assistant(size_t index) {
    Message& message = messages_[index];
    const bool continued = is_continued(index);
    prompt_.special(SpecialToken::kAssistant);
    // Reasoning shows by its presence: conversions remove it where thinking is off.
    const bool shows_reasoning = message.reasoning && (tools_in_force_ || continued);
    if (shows_reasoning) {
      prompt_.special(SpecialToken::kThinkStart);
      prompt_.model_text(*message.reasoning);
    }
    if (!(continued && conversation_.thinking && message.content.empty())) {
      prompt_.special(SpecialToken::kThinkEnd);
    }
    prompt_.model_text(message.content);
    if (message.tool_calls) {
      order_results(index);
      append_calls(prompt_, *message.tool_calls, kDsmlV4);
    }
    if (!continued) {
      prompt_.special(SpecialToken::kEos);
    }
  }

  Conversation& conversation_;
  std::vector<Message>& messages_;
  PromptBuilder& prompt_;
  const bool tools_in_force_;
  OpenTurn open_turn_ = OpenTurn::kNone;
};

}  // namespace

void render_v4(Conversation& conversation, PromptBuilder& prompt) {
  RendererV4(conversation, prompt).render();
}

}  // namespace hadal::recipe
