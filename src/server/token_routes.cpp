#include "server/token_routes.h"

#include <array>

#include "server/completion_request.h"
#include "server/conversation_request.h"
#include "server/json_body.h"
#include "server/json_text.h"

namespace hadal::server {
namespace {

HttpResponse refusal(const Error& error) {
  return error_response(ErrorStyle::kOpenAi, public_error(error));
}

/// The optional "model" of a body must be one that is served.
std::optional<HttpResponse> check_model(const Json& body, const ModelService& model) {
  const auto name = string_member(body, "model");
  if (!name) {
    return refusal(name.error());
  }
  if (*name) {
    if (const auto unknown = check_model_name(**name, model)) {
      return error_response(ErrorStyle::kOpenAi, *unknown);
    }
  }
  return std::nullopt;
}

HttpResponse token_response(const std::vector<int32_t>& ids, bool with_strings, const ModelService& model) {
  HttpResponse response;
  std::string& out = response.body;
  out = "{\"count\":";
  append_json_integer(out, static_cast<int64_t>(ids.size()));
  out += ",\"max_model_len\":";
  append_json_integer(out, model.context_limit);
  out += ",\"tokens\":[";
  for (size_t i = 0; i < ids.size(); ++i) {
    out += i == 0 ? "" : ",";
    append_json_integer(out, ids[i]);
  }
  out += ']';
  if (with_strings) {
    out += ",\"token_strs\":[";
    for (size_t i = 0; i < ids.size(); ++i) {
      out += i == 0 ? "" : ",";
      append_json_string(out, model.tokenizer->decode(std::array{ids[i]}));
    }
    out += ']';
  }
  out += '}';
  return response;
}

}  // namespace

HttpResponse tokenize(std::string_view body, const ModelService& model, const RequestPolicy& policy) {
  const Json members = pick_members(body, {"messages", "return_token_strs"});
  if (members.contains("messages")) {
    const auto with_strings = bool_member(members, "return_token_strs");
    if (!with_strings) {
      return refusal(with_strings.error());
    }
    const auto ids = read_conversation_prompt(recipe::Protocol::kChat, body, model, policy);
    return ids ? token_response(*ids, with_strings->value_or(false), model) : ids.error();
  }
  const auto parsed = parse_json_object(body);
  if (!parsed) {
    return refusal(parsed.error());
  }
  if (auto unknown = check_model(*parsed, model)) {
    return std::move(*unknown);
  }
  const auto prompt = string_member(*parsed, "prompt");
  const auto add_special = bool_member(*parsed, "add_special_tokens");
  const auto with_strings = bool_member(*parsed, "return_token_strs");
  for (const Error* error : {prompt ? nullptr : &prompt.error(), add_special ? nullptr : &add_special.error(),
                             with_strings ? nullptr : &with_strings.error()}) {
    if (error != nullptr) {
      return refusal(*error);
    }
  }
  if (!*prompt) {
    return refusal({ErrorCode::kInvalidArgument, "prompt: missing; expected a string (or messages)"});
  }
  std::vector<int32_t> ids;
  if (add_special->value_or(true) && model.bos_token_id) {
    ids.push_back(*model.bos_token_id);
  }
  model.tokenizer->encode_with_special(**prompt, ids);
  return token_response(ids, with_strings->value_or(false), model);
}

HttpResponse detokenize(std::string_view body, const ModelService& model) {
  const auto parsed = parse_json_object(body);
  if (!parsed) {
    return refusal(parsed.error());
  }
  if (auto unknown = check_model(*parsed, model)) {
    return std::move(*unknown);
  }
  const auto skip_special = bool_member(*parsed, "skip_special_tokens");
  if (!skip_special) {
    return refusal(skip_special.error());
  }
  const auto tokens = parsed->find("tokens");
  if (tokens == parsed->end()) {
    return refusal({ErrorCode::kInvalidArgument, "tokens: missing; expected an array of token ids"});
  }
  const auto ids =
      token_ids(*tokens, "tokens", std::max<int64_t>(model.vocab_size, model.tokenizer->vocab_size()));
  if (!ids) {
    return refusal(ids.error());
  }
  HttpResponse response;
  response.body = "{\"prompt\":";
  append_json_string(response.body, model.tokenizer->decode(*ids, skip_special->value_or(false)));
  response.body += '}';
  return response;
}

HttpResponse count_tokens(std::string_view body, const ModelService& model, const RequestPolicy& policy) {
  const auto ids = read_conversation_prompt(recipe::Protocol::kMessages, body, model, policy);
  if (!ids) {
    return ids.error();
  }
  HttpResponse response;
  response.body = "{\"input_tokens\":";
  append_json_integer(response.body, static_cast<int64_t>(ids->size()));
  response.body += '}';
  return response;
}

}  // namespace hadal::server
