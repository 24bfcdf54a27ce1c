#include "server/conversation_request.h"

#include <algorithm>

#include <fmt/format.h>

#include "recipe/prompt/encode.h"
#include "server/access.h"
#include "server/completion_request.h"
#include "server/json_body.h"
#include "server/queue_fields.h"
#include "server/sampling_fields.h"
#include "server/unsupported_fields.h"

namespace hadal::server {
namespace {

using recipe::OutputConstraint;
using recipe::Protocol;

ErrorStyle style_of(Protocol protocol) {
  return protocol == Protocol::kMessages ? ErrorStyle::kAnthropic : ErrorStyle::kOpenAi;
}

UnsupportedFieldsOf fields_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::kChat:
      return UnsupportedFieldsOf::kChat;
    case Protocol::kMessages:
      return UnsupportedFieldsOf::kMessages;
    case Protocol::kResponses:
      break;
  }
  return UnsupportedFieldsOf::kResponses;
}

/// Where the protocol says what form the text of the answer must have.
struct FormatField {
  const char* name;   ///< for errors
  const char* outer;  ///< top-level member
  const char* inner;  ///< member of it that holds the format; null if it is the format itself
};

FormatField format_field(Protocol protocol) {
  switch (protocol) {
    case Protocol::kChat:
      return {"response_format", "response_format", nullptr};
    case Protocol::kMessages:
      return {"output_config.format", "output_config", "format"};
    case Protocol::kResponses:
      break;
  }
  return {"text.format", "text", "format"};
}

tl::unexpected<HttpResponse> refuse(Protocol protocol, const ApiError& error) {
  return tl::make_unexpected(error_response(style_of(protocol), error));
}

tl::unexpected<HttpResponse> refuse_constraint(Protocol protocol, std::string_view field) {
  return refuse(protocol,
                {400,
                 fmt::format("{}: constrained decoding is not available in this build, so the form of the "
                             "output cannot be guaranteed",
                             field),
                 "unsupported_parameter", std::string(field)});
}

/// The members of the body that the recipe's reading does not show.
Json pick_own_members(Protocol protocol, std::string_view body) {
  std::vector<std::string_view> names = unsupported_field_names(fields_of(protocol));
  names.insert(names.end(), {"response_format", "output_config", "text", "include", "cache_salt", "priority",
                             "user", "metadata", "thinking", "thinking_budget"});
  const auto& sampling = sampling_field_names();
  names.insert(names.end(), sampling.begin(), sampling.end());
  return pick_members(body, names);
}

/// The type of a format that the body asks for, if it is another than text.
bool wants_format(Protocol protocol, const Json& members) {
  const FormatField field = format_field(protocol);
  const auto outer = members.find(field.outer);
  if (outer == members.end() || !outer->is_object()) {
    return false;
  }
  const Json* format = &*outer;
  if (field.inner != nullptr) {
    const auto inner = outer->find(field.inner);
    if (inner == outer->end() || !inner->is_object()) {
      return false;
    }
    format = &*inner;
  }
  return format->value("type", Json()) != "text";
}

ResponseOr<recipe::PreparedRequest> prepare(Protocol protocol, std::string_view body,
                                            const ModelService& model, const RequestPolicy& policy,
                                            ConversationContext context) {
  recipe::ConversionOptions options;
  options.keep_input = context.keep_input;
  options.previous_items = std::move(context.previous_items);
  options.default_thinking_mode = policy.default_thinking;
  options.required_call_while_thinking = true;
  for (const std::string& name : model.names) {
    options.model_aliases.emplace(name, recipe::ModelVersion::kV41);
  }
  auto prepared = recipe::prepare_request(protocol, body, options);
  if (!prepared) {
    // The recipe refuses unknown models with 400 and a text of its own; clients look for 404 and this code.
    const Json members = pick_members(body, {"model"});
    const auto name = members.find("model");
    if (name != members.end() && name->is_string()) {
      if (const auto unknown = check_model_name(name->get_ref<const std::string&>(), model)) {
        return refuse(protocol, *unknown);
      }
    }
    HttpResponse response;
    response.status = prepared.error().status_code;
    response.body = std::move(prepared.error().body);
    return tl::make_unexpected(std::move(response));
  }
  if (const auto unknown = check_model_name(prepared->model, model)) {
    return refuse(protocol, *unknown);
  }
  if (!prepared->prompt.images.empty()) {
    const std::string& path = prepared->prompt.images[0].path;
    return refuse(protocol,
                  {400, fmt::format("{}: images are not supported by this build, only text is", path),
                   "unsupported_content", path});
  }
  return std::move(*prepared);
}

/// Refuses what only constrained decoding could promise. Tools with a free choice need none.
ResponseOr<void> check_constraint(Protocol protocol, const recipe::PreparedRequest& prepared,
                                  const Json& members) {
  if (prepared.constraint) {
    switch (prepared.constraint->kind) {
      case OutputConstraint::Kind::kJson:
      case OutputConstraint::Kind::kRegex:
        return refuse_constraint(protocol, format_field(protocol).name);
      case OutputConstraint::Kind::kToolCallRequired:
        return refuse_constraint(protocol, "tool_choice");
      case OutputConstraint::Kind::kToolCall:
        if (prepared.constraint->schema.find("\"strict\":true") != std::string::npos) {
          const Json tools = Json::parse(prepared.constraint->schema, nullptr, /*allow_exceptions=*/false);
          const bool is_strict =
              tools.is_array() && std::any_of(tools.begin(), tools.end(), [](const Json& tool) {
                const auto function = tool.is_object() ? tool.find("function") : tool.end();
                return tool.is_object() && function != tool.end() && function->is_object() &&
                       function->value("strict", Json()) == true;
              });
          if (is_strict) {
            return refuse_constraint(protocol, "tools[].strict");
          }
        }
        break;
    }
  }
  // With tools the recipe drops the format.
  if (wants_format(protocol, members)) {
    return refuse_constraint(protocol, format_field(protocol).name);
  }
  return {};
}

/// The budget counts while the prompt has opened the thinking part.
Result<void> set_thinking_budget(const Json& members, const recipe::PreparedRequest& prepared,
                                 const ModelService& model, engine::SamplingParams& sampling) {
  HADAL_TRY(const auto budget, read_thinking_budget(members));
  const auto stage = prepared.parsing.thinking_initial_stage;
  if (!budget || (stage != recipe::ThinkingStage::kReasoningStart &&
                  stage != recipe::ThinkingStage::kReasoningContinuation)) {
    return {};
  }
  const recipe::SpecialTokens tokens;
  const std::string& spelling = tokens[recipe::SpecialToken::kThinkEnd];
  const auto end = model.tokenizer->token_id(spelling);
  if (!end) {
    return fail(ErrorCode::kUnsupported, "thinking_budget: the tokenizer has no token {}", spelling);
  }
  sampling.thinking_budget = *budget;
  sampling.thinking_end_token = *end;
  return {};
}

ResponseOr<std::vector<int32_t>> encode(Protocol protocol, const recipe::PreparedRequest& prepared,
                                        const ModelService& model) {
  auto ids = recipe::encode_prompt(prepared.prompt, *model.tokenizer);
  if (!ids) {
    return refuse(protocol, public_error(ids.error()));
  }
  return std::move(*ids);
}

/// Responses: `include` asks for the log-probabilities of the text. What else it may ask for is always there,
/// or is of tools that this server does not run.
bool includes_logprobs(const Json& members) {
  const auto include = members.find("include");
  return include != members.end() && include->is_array() &&
         std::find(include->begin(), include->end(), "message.output_text.logprobs") != include->end();
}

/// The phrases by which clients of Messages know an overflow: they ask again with fewer max_tokens, or
/// shorten the history. There is no code for it in that protocol.
std::string overflow_lead(Protocol protocol, uint64_t prompt_tokens, uint64_t max_tokens, uint64_t limit) {
  if (protocol != Protocol::kMessages) {
    return {};
  }
  return prompt_tokens >= limit
             ? fmt::format("prompt is too long: {} tokens > {} maximum. ", prompt_tokens, limit)
             : fmt::format("input length and `max_tokens` exceed context limit: {} + {} > {}. ",
                           prompt_tokens, max_tokens, limit);
}

}  // namespace

ResponseOr<ConversationRequest> read_conversation_request(Protocol protocol, std::string_view body,
                                                          const ModelService& model,
                                                          const RequestPolicy& policy,
                                                          ConversationContext context) {
  auto prepared = prepare(protocol, body, model, policy, std::move(context));
  if (!prepared) {
    return tl::make_unexpected(std::move(prepared.error()));
  }
  const Json members = pick_own_members(protocol, body);
  if (!policy.ignore_unsupported) {
    if (const auto refusal = find_unsupported_field(fields_of(protocol), members)) {
      return refuse(protocol, *refusal);
    }
  }
  if (!model.is_scripted) {
    if (auto allowed = check_constraint(protocol, *prepared, members); !allowed) {
      return tl::make_unexpected(std::move(allowed.error()));
    }
  }

  ConversationRequest result;
  engine::SamplingParams& sampling = result.request.sampling;
  if (const auto read = read_sampling_fields(members, model, sampling); !read) {
    return refuse(protocol, public_error(read.error()));
  }
  if (const auto read = read_queue_fields(members, result.request); !read) {
    return refuse(protocol, public_error(read.error()));
  }
  if (prepared->inference.top_k) {
    sampling.top_k = static_cast<int64_t>(std::min<uint64_t>(*prepared->inference.top_k, INT32_MAX));
  }
  if (const auto read = set_thinking_budget(members, *prepared, model, sampling); !read) {
    return refuse(protocol, public_error(read.error()));
  }
  const recipe::InferenceParams& inference = prepared->inference;
  sampling.temperature = static_cast<double>(inference.temperature);
  sampling.top_p = static_cast<double>(inference.top_p);
  sampling.seed = inference.seed.value_or(random_bits());
  if (inference.logprobs || (protocol == Protocol::kResponses && includes_logprobs(members))) {
    sampling.top_logprobs = inference.top_logprobs.value_or(0);
  }

  auto ids = encode(protocol, *prepared, model);
  if (!ids) {
    return tl::make_unexpected(std::move(ids.error()));
  }
  const auto max_tokens =
      recipe::resolve_max_tokens(*prepared, ids->size(), static_cast<uint64_t>(model.context_limit));
  if (!max_tokens) {
    return refuse(protocol, {400,
                             overflow_lead(protocol, ids->size(), prepared->inference.max_tokens.value_or(0),
                                           static_cast<uint64_t>(model.context_limit)) +
                                 max_tokens.error().message,
                             "context_length_exceeded",
                             {}});
  }
  sampling.max_tokens = static_cast<int64_t>(*max_tokens);
  result.request.prompt = std::move(*ids);
  result.prepared = std::move(*prepared);
  return result;
}

ResponseOr<std::vector<int32_t>> read_conversation_prompt(Protocol protocol, std::string_view body,
                                                          const ModelService& model,
                                                          const RequestPolicy& policy) {
  const auto prepared = prepare(protocol, body, model, policy, {});
  if (!prepared) {
    return tl::make_unexpected(prepared.error());
  }
  return encode(protocol, *prepared, model);
}

}  // namespace hadal::server
