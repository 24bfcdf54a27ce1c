#include "recipe/responses/response.h"

#include <utility>

namespace hadal::recipe {

namespace {

constexpr const char* kToolSearch = "tool_search";

Json usage_json(const AnswerUsage& usage) {
  Json json;
  json["input_tokens"] = usage.prompt_tokens;
  json["input_tokens_details"]["cached_tokens"] = usage.cached_tokens;
  json["output_tokens"] = usage.output_tokens;
  json["output_tokens_details"]["reasoning_tokens"] = usage.reasoning_tokens.value_or(0);
  json["total_tokens"] = usage.prompt_tokens + usage.output_tokens;
  return json;
}

Json incomplete_details(const Answer& answer) {
  if (!answer.finish || !incomplete(*answer.finish)) {
    return nullptr;
  }
  return {{"reason", *answer.finish == AnswerFinish::kLength ? "max_output_tokens" : "content_filter"}};
}

}  // namespace

std::string_view response_status_name(ResponseStatus status) {
  switch (status) {
    case ResponseStatus::kCompleted:
      return "completed";
    case ResponseStatus::kIncomplete:
      return "incomplete";
    case ResponseStatus::kInProgress:
      break;
  }
  return "in_progress";
}

ResponseCallKind response_call_kind(const PreparedRequest& request, const std::string& name) {
  if (request.custom_tools.contains(name)) {
    return ResponseCallKind::kCustom;
  }
  return request.tool_search && name == kToolSearch ? ResponseCallKind::kToolSearch
                                                    : ResponseCallKind::kFunction;
}

std::string response_item_id(std::string_view prefix, const GeneratorOptions& options, uint64_t index) {
  return std::string(prefix) + options.response_id + "_" + std::to_string(index);
}

Json response_reasoning_part(std::string_view text) {
  Json part;
  part["type"] = "reasoning_text";
  part["text"] = text;
  return part;
}

Json response_text_part(std::string_view text, Json logprobs) {
  Json part;
  part["type"] = "output_text";
  part["annotations"] = Json::array();
  part["logprobs"] = std::move(logprobs);
  part["text"] = text;
  return part;
}

Json response_reasoning_item(const GeneratorOptions& options, uint64_t index, ResponseStatus status,
                             const Json* part) {
  Json item;
  item["type"] = "reasoning";
  item["id"] = response_item_id("rs_", options, index);
  item["status"] = response_status_name(status);
  item["content"] = part == nullptr ? Json::array() : Json::array({*part});
  item["summary"] = Json::array();
  item["encrypted_content"] = options.response_id + "-" + std::to_string(index);
  return item;
}

Json response_message_item(const GeneratorOptions& options, uint64_t index, ResponseStatus status,
                           std::string_view phase, const Json* part) {
  Json item;
  item["type"] = "message";
  item["id"] = response_item_id("msg_", options, index);
  item["status"] = response_status_name(status);
  item["role"] = "assistant";
  item["phase"] = phase;
  item["content"] = part == nullptr ? Json::array() : Json::array({*part});
  return item;
}

Json response_call_item(const PreparedRequest& request, const GeneratorOptions& options, uint64_t index,
                        ResponseStatus status, const AnswerItem& item, std::string_view input) {
  const ResponseCallKind kind = response_call_kind(request, item.name);
  const bool done = status != ResponseStatus::kInProgress;
  Json json;
  json["type"] = kind == ResponseCallKind::kFunction ? "function_call"
                 : kind == ResponseCallKind::kCustom ? "custom_tool_call"
                                                     : "tool_search_call";
  json["id"] = response_item_id(kind == ResponseCallKind::kFunction ? "fc_"
                                : kind == ResponseCallKind::kCustom ? "ctc_"
                                                                    : "tsc_",
                                options, index);
  json["status"] = response_status_name(status);
  json["call_id"] = item.call_id;
  if (kind == ResponseCallKind::kToolSearch) {
    json["execution"] = "client";
    Json arguments = done ? Json::parse(item.text, nullptr, false) : Json::object();
    json["arguments"] = arguments.is_object() ? std::move(arguments) : Json::object();
    return json;
  }
  const auto mapped = request.namespace_tool_map.find(item.name);
  if (mapped == request.namespace_tool_map.end()) {
    json["name"] = item.name;
  } else {
    json["name"] = mapped->second.second;
    json["namespace"] = mapped->second.first;
  }
  if (kind == ResponseCallKind::kCustom) {
    json["input"] = done ? input : "";
  } else {
    json["arguments"] = done ? item.text : "";
  }
  return json;
}

Json response_object(const PreparedRequest& request, const GeneratorOptions& options, const Answer& answer,
                     Json output) {
  const auto echo = [&](const char* key, Json otherwise) {
    const auto found = request.echo.is_object() ? request.echo.find(key) : request.echo.end();
    return found == request.echo.end() || found->is_null() ? otherwise : *found;
  };
  const ResponseStatus status = !answer.finish               ? ResponseStatus::kInProgress
                                : incomplete(*answer.finish) ? ResponseStatus::kIncomplete
                                                             : ResponseStatus::kCompleted;
  Json completed_at;
  if (answer.finish) {
    completed_at = options.clock ? options.clock() : options.created_unix_seconds;
  }
  Json response;
  response["id"] = options.response_id;
  response["object"] = "response";
  response["created_at"] = options.created_unix_seconds;
  response["status"] = response_status_name(status);
  response["background"] = false;
  response["completed_at"] = std::move(completed_at);
  response["content_filters"] = nullptr;
  response["error"] = nullptr;
  response["frequency_penalty"] = 0.0;
  response["incomplete_details"] = incomplete_details(answer);
  response["instructions"] = echo("instructions", nullptr);
  response["max_output_tokens"] = echo("max_output_tokens", nullptr);
  response["max_tool_calls"] = nullptr;
  response["model"] = options.response_model;
  response["moderation"] = nullptr;
  response["output"] = std::move(output);
  response["parallel_tool_calls"] = true;
  response["presence_penalty"] = 0.0;
  response["previous_response_id"] = echo("previous_response_id", nullptr);
  response["prompt_cache_key"] = nullptr;
  response["prompt_cache_retention"] = nullptr;
  response["reasoning"] = echo("reasoning", {{"effort", nullptr}, {"summary", nullptr}});
  response["safety_identifier"] = nullptr;
  response["service_tier"] = "default";
  response["store"] = echo("store", false);
  response["temperature"] = echo("temperature", 1.0);
  response["text"] = echo("text", {{"format", {{"type", "text"}}}, {"verbosity", nullptr}});
  response["tool_choice"] = echo("tool_choice", "auto");
  response["tools"] = echo("tools", Json::array());
  response["top_logprobs"] = echo("top_logprobs", 0);
  response["top_p"] = echo("top_p", 1.0);
  response["truncation"] = "disabled";
  response["usage"] = answer.finish ? usage_json(answer.usage) : Json(nullptr);
  response["user"] = echo("user", nullptr);
  response["metadata"] = Json::object();
  return response;
}

}  // namespace hadal::recipe
