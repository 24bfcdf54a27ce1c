#include "server/completion_request.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "server/access.h"
#include "server/json_body.h"
#include "server/queue_fields.h"
#include "server/sampling_fields.h"
#include "server/unsupported_fields.h"

namespace hadal::server {
namespace {

constexpr int64_t kMaxStops = 16;
constexpr int64_t kMaxLogprobs = 20;
constexpr double kMaxTemperature = 2.0;

/// "prompt: must not be empty" -> the field is what stands before the colon or an index.
ApiError as_field_error(const Error& error) {
  const size_t end = error.message.find_first_of(":[ ");
  std::optional<std::string> param;
  if (end != std::string::npos && error.message[end] != ' ') {
    param = error.message.substr(0, end);
  }
  ApiError api = public_error(error);
  api.param = std::move(param);
  return api;
}

class Reader {
 public:
  Reader(const Json& body, const ModelService& model, const RequestPolicy& policy)
      : body_(body), model_(model), policy_(policy) {}

  Result<CompletionRequest> read() {
    HADAL_CHECK(read_options());
    HADAL_CHECK(read_sampling());
    HADAL_CHECK(read_stop());
    HADAL_CHECK(read_prompts());
    return std::move(request_);
  }

 private:
  Result<void> read_options() {
    HADAL_TRY(const auto stream, bool_member(body_, "stream"));
    request_.stream = stream.value_or(false);
    if (const auto options = body_.find("stream_options"); options != body_.end() && !options->is_null()) {
      if (!options->is_object()) {
        return fail(ErrorCode::kInvalidArgument, "stream_options: {} is not an object", describe(*options));
      }
      if (!request_.stream) {
        return fail(ErrorCode::kInvalidArgument, "stream_options: should be set along with stream = true");
      }
      HADAL_TRY(const auto include_usage, bool_member(*options, "include_usage"));
      request_.include_usage = include_usage.value_or(false);
    }
    HADAL_TRY(const auto echo, bool_member(body_, "echo"));
    request_.echo = echo.value_or(false);
    HADAL_TRY(const auto skip_special, bool_member(body_, "skip_special_tokens"));
    request_.skip_special_tokens = skip_special.value_or(true);
    HADAL_TRY(const auto n, integer_member(body_, "n", 1, policy_.max_choices));
    request_.n = n.value_or(1);
    HADAL_TRY(const auto best_of, integer_member(body_, "best_of", 1, policy_.max_choices));
    if (best_of && *best_of != request_.n) {
      return fail(ErrorCode::kInvalidArgument,
                  "best_of: {} is not supported; only the value of n ({}) is, as no answers are thrown away",
                  *best_of, request_.n);
    }
    HADAL_CHECK(read_queue_fields(body_, request_.queue));
    HADAL_TRY(const auto suffix, string_member(body_, "suffix"));
    if (suffix && !suffix->empty()) {
      return fail(ErrorCode::kInvalidArgument, "suffix: the model does not fill in before a suffix");
    }
    return {};
  }

  Result<void> read_sampling() {
    engine::SamplingParams& sampling = request_.sampling;
    HADAL_TRY(const auto max_tokens, integer_member(body_, "max_tokens", 1, INT32_MAX));
    max_tokens_ = max_tokens;
    HADAL_TRY(const auto temperature, number_member(body_, "temperature", 0, kMaxTemperature));
    sampling.temperature = temperature.value_or(1.0);
    HADAL_TRY(const auto top_p, number_member(body_, "top_p", 0, 1, /*excludes_lowest=*/true));
    sampling.top_p = top_p.value_or(1.0);
    HADAL_TRY(const auto seed, integer_member(body_, "seed", 0, INT64_MAX));
    request_.has_seed = seed.has_value();
    sampling.seed = seed ? static_cast<uint64_t>(*seed) : random_bits();
    HADAL_CHECK(read_sampling_fields(body_, model_, sampling));
    HADAL_TRY(const auto logprobs, integer_member(body_, "logprobs", 0, kMaxLogprobs));
    sampling.top_logprobs = logprobs.value_or(-1);
    if (logprobs && request_.echo) {
      return fail(ErrorCode::kInvalidArgument,
                  "echo: cannot be combined with logprobs, because log-probabilities of prompt tokens are "
                  "not computed");
    }
    return {};
  }

  Result<void> read_stop() {
    const auto stop = body_.find("stop");
    if (stop == body_.end() || stop->is_null()) {
      return {};
    }
    if (stop->is_string()) {
      request_.stop.push_back(stop->get<std::string>());
    } else if (stop->is_array()) {
      for (const Json& text : *stop) {
        if (!text.is_string()) {
          return fail(ErrorCode::kInvalidArgument, "stop[{}]: {} is not a string", request_.stop.size(),
                      describe(text));
        }
        request_.stop.push_back(text.get<std::string>());
      }
    } else {
      return fail(ErrorCode::kInvalidArgument, "stop: {} is not a string or a list of strings",
                  describe(*stop));
    }
    if (request_.stop.size() > static_cast<size_t>(kMaxStops)) {
      return fail(ErrorCode::kInvalidArgument, "stop: {} sequences; at most {} are accepted",
                  request_.stop.size(), kMaxStops);
    }
    for (size_t i = 0; i < request_.stop.size(); ++i) {
      if (request_.stop[i].empty()) {
        return fail(ErrorCode::kInvalidArgument, "stop[{}]: a stop sequence must not be empty", i);
      }
    }
    return {};
  }

  Result<void> read_prompts() {
    const auto prompt = body_.find("prompt");
    if (prompt == body_.end() || prompt->is_null()) {
      return fail(ErrorCode::kInvalidArgument,
                  "prompt: missing; expected a string, a list of strings or token ids");
    }
    HADAL_TRY(const auto add_special, bool_member(body_, "add_special_tokens"));
    adds_bos_ = add_special.value_or(true);
    const bool is_list = prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
    if (!is_list) {
      HADAL_CHECK(check_count(1));
      HADAL_CHECK(add_prompt(*prompt, "prompt"));
    } else {
      HADAL_CHECK(check_count(prompt->size()));
      for (size_t i = 0; i < prompt->size(); ++i) {
        HADAL_CHECK(add_prompt((*prompt)[i], fmt::format("prompt[{}]", i)));
      }
    }
    return settle_max_tokens();
  }

  Result<void> check_count(size_t num_prompts) const {
    if (num_prompts * static_cast<size_t>(request_.n) > static_cast<size_t>(policy_.max_choices)) {
      return fail(ErrorCode::kInvalidArgument,
                  "prompt: {} prompts with n = {} make {} answers; at most {} are accepted", num_prompts,
                  request_.n, num_prompts * static_cast<size_t>(request_.n), policy_.max_choices);
    }
    return {};
  }

  Result<void> add_prompt(const Json& value, std::string_view name) {
    CompletionRequest::Prompt prompt;
    if (value.is_string()) {
      if (adds_bos_ && model_.bos_token_id) {
        prompt.ids.push_back(*model_.bos_token_id);
      }
      const auto& text = value.get_ref<const std::string&>();
      model_.tokenizer->encode_with_special(text, prompt.ids);
      if (request_.echo) {
        prompt.text = text;
      }
    } else if (value.is_array()) {
      HADAL_TRY(prompt.ids, token_ids(value, name, model_.vocab_size));
      if (request_.echo) {
        prompt.text = model_.tokenizer->decode(prompt.ids);
      }
    } else {
      return fail(ErrorCode::kInvalidArgument, "{}: {} is not a string or a list of token ids", name,
                  describe(value));
    }
    if (prompt.ids.empty()) {
      return fail(ErrorCode::kInvalidArgument, "{}: must not be empty", name);
    }
    for (const int32_t id : prompt.ids) {
      if (std::find(model_.reserved_token_ids.begin(), model_.reserved_token_ids.end(), id) !=
          model_.reserved_token_ids.end()) {
        return fail(ErrorCode::kInvalidArgument, "{}: token {} stands for an image and cannot be sent", name,
                    id);
      }
    }
    request_.prompts.push_back(std::move(prompt));
    return {};
  }

  /// Default 16 as with OpenAI, cut to the room that there is; an explicit value must fit.
  Result<void> settle_max_tokens() {
    int64_t longest = 0;
    for (const auto& prompt : request_.prompts) {
      longest = std::max(longest, static_cast<int64_t>(prompt.ids.size()));
    }
    const int64_t room = model_.context_limit - longest;
    const int64_t wanted = max_tokens_.value_or(1);
    if (wanted > room) {
      return fail(
          ErrorCode::kResourceExhausted,
          "This model's maximum context length is {} tokens. However, you requested {} tokens ({} in the "
          "prompt, {} in the completion). Please reduce the length of the prompt or completion.",
          model_.context_limit, longest + wanted, longest, wanted);
    }
    request_.sampling.max_tokens = max_tokens_.value_or(std::min<int64_t>(16, room));
    return {};
  }

  const Json& body_;
  const ModelService& model_;
  const RequestPolicy& policy_;
  CompletionRequest request_;
  std::optional<int64_t> max_tokens_;
  bool adds_bos_ = true;
};

}  // namespace

uint64_t choice_seed(uint64_t seed, uint64_t index) {
  if (index == 0) {
    return seed;
  }
  uint64_t mixed = seed + index * 0x9e3779b97f4a7c15ULL;  // splitmix64
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebULL;
  return mixed ^ (mixed >> 31U);
}

std::optional<ApiError> check_model_name(std::string_view name, const ModelService& model) {
  for (const std::string& known : model.names) {
    if (name == known) {
      return std::nullopt;
    }
  }
  return ApiError{404,
                  fmt::format("The model `{}` does not exist; this server has {}", printable(name, 100),
                              fmt::join(model.names, ", ")),
                  "model_not_found", "model"};
}

ApiResult<CompletionRequest> read_completion_request(std::string_view body, const ModelService& model,
                                                     const RequestPolicy& policy) {
  const auto parsed = parse_json_object(body);
  if (!parsed) {
    return tl::make_unexpected(public_error(parsed.error()));
  }
  const auto name = string_member(*parsed, "model");
  if (!name || !*name) {
    return tl::make_unexpected(ApiError{400, "model: missing; expected the name of a model", {}, "model"});
  }
  if (auto unknown = check_model_name(**name, model)) {
    return tl::make_unexpected(std::move(*unknown));
  }
  if (!policy.ignore_unsupported) {
    if (auto refusal = find_unsupported_field(UnsupportedFieldsOf::kCompletions, *parsed)) {
      return tl::make_unexpected(std::move(*refusal));
    }
  }
  auto request = Reader(*parsed, model, policy).read();
  if (!request) {
    ApiError error = as_field_error(request.error());
    if (request.error().code == ErrorCode::kResourceExhausted) {
      error = {400, request.error().message, "context_length_exceeded", "prompt"};
    }
    return tl::make_unexpected(std::move(error));
  }
  request->model = **name;
  return std::move(*request);
}

}  // namespace hadal::server
