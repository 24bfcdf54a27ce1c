#include "recipe/responses/events.h"

#include <utility>

#include "recipe/json_text.h"
#include "recipe/logprobs.h"

namespace hadal::recipe {

namespace {

/// What the output needs of a request; its prompt may be large.
PreparedRequest without_prompt(const PreparedRequest& request) {
  PreparedRequest rest;
  rest.namespace_tool_map = request.namespace_tool_map;
  rest.custom_tools = request.custom_tools;
  rest.tool_search = request.tool_search;
  rest.echo = request.echo;
  return rest;
}

}  // namespace

ResponsesGenerator::ResponsesGenerator(const PreparedRequest& request, GeneratorOptions options,
                                       std::shared_ptr<const tokenizer::Tokenizer> tokenizer)
    : GeneratorBase(request, std::move(options), std::move(tokenizer)), request_(without_prompt(request)) {}

void ResponsesGenerator::on_start() {
  emit_response("response.created");
  emit_response("response.in_progress");
}

void ResponsesGenerator::on_reasoning(const AnswerItem&, const Delta& delta, bool begins) {
  if (begins) {
    close_item(ResponseStatus::kCompleted, false);
    open_item(Open::kReasoning, "rs_",
              response_reasoning_item(options(), index_, ResponseStatus::kInProgress, nullptr));
    open_part(response_reasoning_part(""));
  }
  emit_delta("response.reasoning_text.delta", delta.text, true);
}

void ResponsesGenerator::on_content(const AnswerItem&, const Delta& delta, bool begins) {
  if (begins) {
    close_item(ResponseStatus::kCompleted, false);
    open_item(Open::kMessage, "msg_",
              response_message_item(options(), index_, ResponseStatus::kInProgress, "final_answer", nullptr));
    open_part(response_text_part("", Json::array()));
  }
  std::string logprobs = "[]";
  if (!delta.tokens.empty()) {
    logprobs.clear();
    append_logprobs(logprobs, delta.tokens, *tokenizer());
  }
  emit_delta("response.output_text.delta", delta.text, true, logprobs);
}

void ResponsesGenerator::on_call(const AnswerItem& item) {
  close_item(ResponseStatus::kCompleted, true);
  custom_ = CustomInput();
  custom_input_.clear();
  const Json json = response_call_item(request_, options(), index_, ResponseStatus::kInProgress, item, "");
  open_item(Open::kCall, "", json);
}

void ResponsesGenerator::on_arguments(const AnswerItem& item, std::string_view text) {
  switch (response_call_kind(request_, item.name)) {
    case ResponseCallKind::kFunction:
      emit_delta("response.function_call_arguments.delta", text, false);
      return;
    case ResponseCallKind::kCustom: {
      const std::string input = custom_.push(text);
      if (!input.empty()) {
        custom_input_ += input;
        emit_delta("response.custom_tool_call_input.delta", input, false);
      }
      return;
    }
    case ResponseCallKind::kToolSearch:
      return;  // its arguments are shown whole
  }
}

void ResponsesGenerator::on_finish() {
  const bool cut = incomplete(*answer().finish);
  close_item(cut ? ResponseStatus::kIncomplete : ResponseStatus::kCompleted, false);
  emit_response(cut ? "response.incomplete" : "response.completed");
}

Json ResponsesGenerator::response() const {
  return response_object(request_, options(), answer(), output_);
}

void ResponsesGenerator::open_item(Open open, std::string_view id_prefix, const Json& item) {
  open_ = open;
  item_ = answer().items.size() - 1;
  item_id_ =
      id_prefix.empty() ? item["id"].get<std::string>() : response_item_id(id_prefix, options(), index_);
  Json event;
  event["type"] = "response.output_item.added";
  event["item"] = item;
  event["output_index"] = index_;
  event["sequence_number"] = sequence_number_++;
  emit("response.output_item.added", json_text(event));
}

void ResponsesGenerator::open_part(const Json& part) {
  emit_item_event("response.content_part.added", {{"part", part}}, true);
}

void ResponsesGenerator::close_item(ResponseStatus status, bool next_is_call) {
  if (open_ == Open::kNone) {
    return;
  }
  const AnswerItem& item = answer().items[item_];
  if (open_ == Open::kCall) {
    close_call(item, item.complete ? status : ResponseStatus::kIncomplete);
  } else {
    close_text(item, status, next_is_call);
  }
  Json event;
  event["type"] = "response.output_item.done";
  event["item"] = output_.back();
  event["output_index"] = index_;
  event["sequence_number"] = sequence_number_++;
  emit("response.output_item.done", json_text(event));
  open_ = Open::kNone;
  ++index_;
}

void ResponsesGenerator::close_text(const AnswerItem& item, ResponseStatus status, bool next_is_call) {
  if (open_ == Open::kReasoning) {
    const Json part = response_reasoning_part(item.text);
    emit_item_event("response.reasoning_text.done", {{"text", item.text}}, true);
    emit_item_event("response.content_part.done", {{"part", part}}, true);
    output_.push_back(response_reasoning_item(options(), index_, status, &part));
    return;
  }
  const Json logprobs = item.tokens.empty() ? Json::array() : logprobs_json(item.tokens, *tokenizer());
  const Json part = response_text_part(item.text, logprobs);
  emit_item_event("response.output_text.done", {{"logprobs", logprobs}, {"text", item.text}}, true);
  emit_item_event("response.content_part.done", {{"part", part}}, true);
  output_.push_back(
      response_message_item(options(), index_, status, next_is_call ? "commentary" : "final_answer", &part));
}

void ResponsesGenerator::close_call(const AnswerItem& item, ResponseStatus status) {
  switch (response_call_kind(request_, item.name)) {
    case ResponseCallKind::kFunction:
      emit_item_event("response.function_call_arguments.done", {{"arguments", item.text}}, false);
      break;
    case ResponseCallKind::kCustom: {
      const std::string rest = custom_.cut_off();
      if (!rest.empty()) {
        custom_input_ += rest;
        emit_delta("response.custom_tool_call_input.delta", rest, false);
      }
      emit_item_event("response.custom_tool_call_input.done", {{"input", custom_input_}}, false);
      break;
    }
    case ResponseCallKind::kToolSearch:
      break;
  }
  output_.push_back(response_call_item(request_, options(), index_, status, item, custom_input_));
}

void ResponsesGenerator::emit_response(std::string type) {
  Json event;
  event["type"] = type;
  event["response"] = response();
  event["sequence_number"] = sequence_number_++;
  emit(std::move(type), json_text(event));
}

void ResponsesGenerator::emit_delta(std::string_view type, std::string_view text, bool in_part,
                                    std::string_view logprobs) {
  std::string data = R"({"type":")";
  data.reserve(type.size() + text.size() + item_id_.size() + logprobs.size() + 128);
  data += type;
  data += in_part ? R"(","content_index":0,"delta":)" : R"(","delta":)";
  append_json_string(data, text);
  data += R"(,"item_id":)";
  append_json_string(data, item_id_);
  if (!logprobs.empty()) {
    data += R"(,"logprobs":)";
    data += logprobs;
  }
  data += R"(,"output_index":)" + std::to_string(index_);
  data += R"(,"sequence_number":)" + std::to_string(sequence_number_++) + "}";
  emit(std::string(type), std::move(data));
}

void ResponsesGenerator::emit_item_event(std::string type, Json fields, bool in_part) {
  Json event;
  event["type"] = type;
  if (in_part) {
    event["content_index"] = 0;
  }
  event.update(fields);
  event["item_id"] = item_id_;
  event["output_index"] = index_;
  event["sequence_number"] = sequence_number_++;
  emit(std::move(type), json_text(event));
}

}  // namespace hadal::recipe
