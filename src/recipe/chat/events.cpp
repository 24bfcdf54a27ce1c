#include "recipe/chat/events.h"

#include <utility>

#include "recipe/chat/response.h"
#include "recipe/json_text.h"
#include "recipe/logprobs.h"

namespace hadal::recipe {

ChatGenerator::ChatGenerator(const PreparedRequest& request, GeneratorOptions generator_options,
                             std::shared_ptr<const tokenizer::Tokenizer> tokenizer)
    : GeneratorBase(request, std::move(generator_options), std::move(tokenizer)),
      usage_in_own_chunk_(request.stream && request.include_usage && !options().as_reference),
      chunks_have_usage_(!request.stream || request.include_usage) {
  Json head;
  head["id"] = options().response_id;
  head["object"] = "chat.completion.chunk";
  head["created"] = options().created_unix_seconds;
  head["model"] = options().response_model;
  head["system_fingerprint"] =
      options().system_fingerprint.empty() ? Json(nullptr) : Json(options().system_fingerprint);
  chunk_begin_ = json_text(head);
  chunk_begin_.back() = ',';
}

void ChatGenerator::on_start() {
  emit_delta(begins_with_reasoning() ? R"({"role":"assistant","content":null,"reasoning_content":""})"
             : thinking()            ? R"({"role":"assistant","content":"","reasoning_content":null})"
                                     : R"({"role":"assistant","content":""})");
}

void ChatGenerator::on_reasoning(const AnswerItem&, const Delta& delta, bool) {
  std::string text = R"({"content":null,"reasoning_content":)";
  append_json_string(text, delta.text);
  emit_delta(text + "}", logprobs("reasoning_content", delta));
}

void ChatGenerator::on_content(const AnswerItem&, const Delta& delta, bool begins) {
  std::string text = R"({"content":)";
  if (begins && has_content_) {
    append_json_string(text, std::string(kChatContentSeparator) + std::string(delta.text));
  } else {
    append_json_string(text, delta.text);
  }
  has_content_ = true;
  emit_delta(text + (thinking() ? R"(,"reasoning_content":null})" : "}"), logprobs("content", delta));
}

void ChatGenerator::on_call(const AnswerItem& item) {
  std::string text = R"({"tool_calls":[{"index":)" + std::to_string(num_calls_++) + R"(,"id":)";
  append_json_string(text, item.call_id);
  text += R"(,"type":"function","function":{"name":)";
  append_json_string(text, item.name);
  emit_delta(text + R"(,"arguments":""}}]})");
}

void ChatGenerator::on_arguments(const AnswerItem&, std::string_view arguments) {
  std::string text =
      R"({"tool_calls":[{"index":)" + std::to_string(num_calls_ - 1) + R"(,"function":{"arguments":)";
  append_json_string(text, arguments);
  emit_delta(text + "}}]}");
}

void ChatGenerator::on_finish() {
  const std::string finish = "\"" + std::string(chat_finish_reason(*answer().finish)) + "\"";
  const std::string usage = json_text(chat_usage(answer().usage));
  emit_chunk(thinking() ? R"({"content":"","reasoning_content":null})" : R"({"content":""})", "null", finish,
             usage_in_own_chunk_ ? "null" : usage);
  if (usage_in_own_chunk_) {
    emit("", chunk_begin_ + R"("choices":[],"usage":)" + usage + "}");
  }
}

Json ChatGenerator::response() const {
  return chat_response(answer(), options(), begins_with_reasoning(), tokenizer());
}

void ChatGenerator::emit_delta(std::string_view delta, std::string_view logprobs) {
  emit_chunk(delta, logprobs, "null", chunks_have_usage_ ? "null" : "");
}

void ChatGenerator::emit_chunk(std::string_view delta, std::string_view logprobs,
                               std::string_view finish_reason, std::string_view usage) {
  std::string data;
  data.reserve(chunk_begin_.size() + delta.size() + logprobs.size() + usage.size() + 96);
  data += chunk_begin_;
  data += R"("choices":[{"index":0,"delta":)";
  data += delta;
  data += R"(,"logprobs":)";
  data += logprobs;
  data += R"(,"finish_reason":)";
  data += finish_reason;
  data += "}]";
  if (!usage.empty()) {
    data += R"(,"usage":)";
    data += usage;
  }
  data += '}';
  emit("", std::move(data));
}

std::string ChatGenerator::logprobs(std::string_view key, const Delta& delta) const {
  if (delta.tokens.empty()) {
    return "null";
  }
  std::string text = "{\"" + std::string(key) + "\":";
  append_logprobs(text, delta.tokens, *tokenizer());
  return text + "}";
}

}  // namespace hadal::recipe
