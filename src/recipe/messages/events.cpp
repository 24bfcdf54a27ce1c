#include "recipe/messages/events.h"

#include <utility>

#include "recipe/json_text.h"
#include "recipe/messages/response.h"

namespace hadal::recipe {

namespace {

constexpr std::string_view kThinkingStart = R"({"type":"thinking","thinking":"","signature":""})";
constexpr std::string_view kTextStart = R"({"type":"text","text":""})";

}  // namespace

void MessagesGenerator::on_start() {
  Json event;
  event["type"] = "message_start";
  event["message"] = message_object(answer(), options(), Json::array());
  event["message"]["usage"] = messages_usage({.prompt_tokens = answer().usage.prompt_tokens,
                                              .cached_tokens = answer().usage.cached_tokens,
                                              .output_tokens = 0,
                                              .reasoning_tokens = {}});
  emit("message_start", json_text(event));
  if (begins_with_reasoning()) {
    open(Block::kThinking, kThinkingStart);
  }
}

void MessagesGenerator::on_reasoning(const AnswerItem&, const Delta& delta, bool) {
  if (block_ != Block::kThinking) {
    open(Block::kThinking, kThinkingStart);
  }
  emit_delta("thinking_delta", "thinking", delta.text);
}

void MessagesGenerator::on_content(const AnswerItem&, const Delta& delta, bool) {
  if (block_ != Block::kText) {
    open(Block::kText, kTextStart);
  }
  emit_delta("text_delta", "text", delta.text);
}

void MessagesGenerator::on_call(const AnswerItem& item) {
  std::string start = R"({"type":"tool_use","id":)";
  append_json_string(start, item.call_id);
  start += R"(,"name":)";
  append_json_string(start, item.name);
  open(Block::kToolUse, start + R"(,"input":{}})");
}

void MessagesGenerator::on_arguments(const AnswerItem&, std::string_view text) {
  emit_delta("input_json_delta", "partial_json", text);
}

void MessagesGenerator::on_finish() {
  close();
  Json event;
  event["type"] = "message_delta";
  event["delta"] = messages_stop(answer());
  event["usage"] = messages_usage(answer().usage);
  emit("message_delta", json_text(event));
  emit("message_stop", R"({"type":"message_stop"})");
}

Json MessagesGenerator::response() const {
  return messages_response(answer(), options(), begins_with_reasoning());
}

void MessagesGenerator::open(Block block, std::string_view start) {
  close();
  block_ = block;
  emit("content_block_start", R"({"type":"content_block_start","index":)" + std::to_string(num_blocks_) +
                                  R"(,"content_block":)" + std::string(start) + "}");
  if (num_blocks_++ == 0) {
    emit("ping", R"({"type":"ping"})");
  }
}

void MessagesGenerator::close() {
  if (block_ == Block::kNone) {
    return;
  }
  if (block_ == Block::kThinking) {
    emit_delta("signature_delta", "signature", options().signature.value_or(options().response_id));
  }
  block_ = Block::kNone;
  emit("content_block_stop",
       R"({"type":"content_block_stop","index":)" + std::to_string(num_blocks_ - 1) + "}");
}

void MessagesGenerator::emit_delta(std::string_view type, std::string_view key, std::string_view text) {
  std::string data = R"({"type":"content_block_delta","index":)" + std::to_string(num_blocks_ - 1);
  data.reserve(data.size() + text.size() + 96);
  data += R"(,"delta":{"type":")";
  data += type;
  data += R"(",")";
  data += key;
  data += R"(":)";
  append_json_string(data, text);
  data += "}}";
  emit("content_block_delta", std::move(data));
}

}  // namespace hadal::recipe
