#include "recipe/messages/response.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace hadal::recipe {

namespace {

std::string_view stop_reason(AnswerFinish finish) {
  switch (finish) {
    case AnswerFinish::kStopSequence:
      return "stop_sequence";
    case AnswerFinish::kToolCalls:
      return "tool_use";
    case AnswerFinish::kLength:
      return "max_tokens";
    case AnswerFinish::kContentFilter:
      return "refusal";
    case AnswerFinish::kStop:
      break;
  }
  return "end_turn";
}

/// The arguments of a call as a value. Those of a call that was cut off are not JSON: nothing is shown of
/// them.
Json tool_input(const AnswerItem& item) {
  Json input = Json::parse(item.text, nullptr, false);
  if (input.is_object()) {
    return input;
  }
  if (!item.complete) {
    return Json::object();
  }
  return Json{{"arguments", item.text}};  // a number that no double holds
}

Json thinking_block(std::string text, const GeneratorOptions& options) {
  Json block;
  block["type"] = "thinking";
  block["thinking"] = std::move(text);
  block["signature"] = options.signature.value_or(options.response_id);
  return block;
}

}  // namespace

Json messages_usage(const AnswerUsage& usage) {
  Json json;
  json["input_tokens"] = usage.prompt_tokens - std::min(usage.cached_tokens, usage.prompt_tokens);
  json["cache_creation_input_tokens"] = 0;
  json["cache_read_input_tokens"] = usage.cached_tokens;
  json["output_tokens"] = usage.output_tokens;
  json["service_tier"] = "standard";
  return json;
}

Json messages_stop(const Answer& answer) {
  Json stop;
  stop["stop_reason"] = answer.finish ? Json(stop_reason(*answer.finish)) : Json(nullptr);
  const bool by_sequence = answer.finish == AnswerFinish::kStopSequence;
  stop["stop_sequence"] = by_sequence ? Json(answer.stop_sequence) : Json(nullptr);
  return stop;
}

Json message_object(const Answer& answer, const GeneratorOptions& options, Json content) {
  Json message;
  message["id"] = options.response_id;
  message["type"] = "message";
  message["role"] = "assistant";
  message["model"] = options.response_model;
  message["content"] = std::move(content);
  message.update(messages_stop(answer));
  message["usage"] = messages_usage(answer.usage);
  return message;
}

Json messages_response(const Answer& answer, const GeneratorOptions& options, bool begins_with_thinking) {
  Json content = Json::array();
  const bool thought = !answer.items.empty() && answer.items.front().kind == AnswerItem::Kind::kReasoning;
  if (begins_with_thinking && !thought) {
    content.push_back(thinking_block("", options));
  }
  for (const AnswerItem& item : answer.items) {
    Json block;
    switch (item.kind) {
      case AnswerItem::Kind::kReasoning:
        block = thinking_block(item.text, options);
        break;
      case AnswerItem::Kind::kContent:
        block["type"] = "text";
        block["text"] = item.text;
        break;
      case AnswerItem::Kind::kCall:
        block["type"] = "tool_use";
        block["id"] = item.call_id;
        block["name"] = item.name;
        block["input"] = tool_input(item);
        break;
    }
    content.push_back(std::move(block));
  }
  return message_object(answer, options, std::move(content));
}

}  // namespace hadal::recipe
