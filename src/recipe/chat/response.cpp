#include "recipe/chat/response.h"

#include <string>
#include <utility>
#include <vector>

#include "recipe/logprobs.h"

namespace hadal::recipe {

Json chat_usage(const AnswerUsage& usage) {
  Json json;
  json["prompt_tokens"] = usage.prompt_tokens;
  json["completion_tokens"] = usage.output_tokens;
  json["total_tokens"] = usage.prompt_tokens + usage.output_tokens;
  json["prompt_tokens_details"]["cached_tokens"] = usage.cached_tokens;
  if (usage.reasoning_tokens) {
    json["completion_tokens_details"]["reasoning_tokens"] = *usage.reasoning_tokens;
  }
  json["prompt_cache_hit_tokens"] = usage.cached_tokens;
  json["prompt_cache_miss_tokens"] = usage.prompt_tokens - std::min(usage.cached_tokens, usage.prompt_tokens);
  return json;
}

std::string_view chat_finish_reason(AnswerFinish finish) {
  switch (finish) {
    case AnswerFinish::kToolCalls:
      return "tool_calls";
    case AnswerFinish::kLength:
      return "length";
    case AnswerFinish::kContentFilter:
      return "content_filter";
    case AnswerFinish::kStop:
    case AnswerFinish::kStopSequence:
      break;
  }
  return "stop";
}

Json chat_response(const Answer& answer, const GeneratorOptions& options, bool thinking,
                   const tokenizer::Tokenizer* tokenizer) {
  std::string content;
  std::string reasoning;
  Json calls = Json::array();
  std::vector<OutputTokenInfo> content_tokens;
  std::vector<OutputTokenInfo> reasoning_tokens;
  bool has_content = false;
  for (const AnswerItem& item : answer.items) {
    switch (item.kind) {
      case AnswerItem::Kind::kReasoning:
        reasoning += item.text;
        reasoning_tokens.insert(reasoning_tokens.end(), item.tokens.begin(), item.tokens.end());
        break;
      case AnswerItem::Kind::kContent:
        content += has_content ? kChatContentSeparator : "";
        content += item.text;
        has_content = true;
        content_tokens.insert(content_tokens.end(), item.tokens.begin(), item.tokens.end());
        break;
      case AnswerItem::Kind::kCall: {
        Json call;
        if (options.as_reference) {
          call["index"] = calls.size();
        }
        call["id"] = item.call_id;
        call["type"] = "function";
        call["function"]["name"] = item.name;
        call["function"]["arguments"] = item.text;
        calls.push_back(std::move(call));
        break;
      }
    }
  }
  Json message;
  message["role"] = "assistant";
  const bool no_content = content.empty() && !calls.empty() && !options.as_reference;
  message["content"] = no_content ? Json(nullptr) : Json(std::move(content));
  if (thinking || !reasoning.empty()) {
    message["reasoning_content"] = std::move(reasoning);
  }
  if (!calls.empty()) {
    message["tool_calls"] = std::move(calls);
  }
  Json logprobs;
  if (!content_tokens.empty()) {
    logprobs["content"] = logprobs_json(content_tokens, *tokenizer);
  }
  if (!reasoning_tokens.empty()) {
    logprobs["reasoning_content"] = logprobs_json(reasoning_tokens, *tokenizer);
  }
  Json choice;
  choice["index"] = 0;
  choice["message"] = std::move(message);
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = answer.finish ? Json(chat_finish_reason(*answer.finish)) : Json(nullptr);

  Json response;
  response["id"] = options.response_id;
  response["object"] = "chat.completion";
  response["created"] = options.created_unix_seconds;
  response["model"] = options.response_model;
  response["choices"] = Json::array({std::move(choice)});
  response["usage"] = chat_usage(answer.usage);
  response["system_fingerprint"] =
      options.system_fingerprint.empty() ? Json(nullptr) : Json(options.system_fingerprint);
  return response;
}

}  // namespace hadal::recipe
