#include "engine/validation.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/sampler.h"
#include "engine/state_store.h"

namespace hadal::engine {
namespace {

Result<void> validate_tokens(std::string_view field, std::span<const int32_t> tokens, int64_t vocab_size) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab_size) {
      return fail(ErrorCode::kInvalidArgument, "{}[{}]: token id {}, expected 0 to {}", field, i, tokens[i],
                  vocab_size - 1);
    }
  }
  return {};
}

Result<void> validate_range(std::string_view field, double value, double lowest, double highest) {
  if (!(value >= lowest && value <= highest)) {
    return fail(ErrorCode::kInvalidArgument, "{}: {}, expected {} to {}", field, value, lowest, highest);
  }
  return {};
}

Result<void> validate_biases(const std::vector<TokenBias>& biases, int64_t vocab_size) {
  if (biases.size() > kMaxLogitBiases) {
    return fail(ErrorCode::kInvalidArgument, "logit_bias: {} tokens, expected at most {}", biases.size(),
                kMaxLogitBiases);
  }
  std::unordered_set<int32_t> tokens;
  for (const TokenBias& bias : biases) {
    if (bias.token < 0 || bias.token >= vocab_size || !tokens.insert(bias.token).second) {
      return fail(ErrorCode::kInvalidArgument,
                  "logit_bias: token id {}, expected different ones from 0 to {}", bias.token,
                  vocab_size - 1);
    }
    HADAL_CHECK(
        validate_range(fmt::format("logit_bias[{}]", bias.token), bias.bias, -kMaxLogitBias, kMaxLogitBias));
  }
  return {};
}

/// What shapes the logits (logit_adjustments.h).
Result<void> validate_adjustments(const SamplingParams& params, int32_t eos_token_id, int64_t vocab_size) {
  HADAL_CHECK(validate_range("presence_penalty", params.presence_penalty, -kMaxPenalty, kMaxPenalty));
  HADAL_CHECK(validate_range("frequency_penalty", params.frequency_penalty, -kMaxPenalty, kMaxPenalty));
  if (!(params.repetition_penalty > 0 && params.repetition_penalty <= kMaxRepetitionPenalty)) {
    return fail(ErrorCode::kInvalidArgument, "repetition_penalty: {}, expected more than 0 and at most {}",
                params.repetition_penalty, kMaxRepetitionPenalty);
  }
  HADAL_CHECK(validate_biases(params.logit_bias, vocab_size));
  HADAL_CHECK(validate_tokens("allowed_token_ids", params.allowed_token_ids, vocab_size));
  HADAL_CHECK(validate_tokens("golden_token_ids", params.golden_token_ids, vocab_size));
  if (params.min_tokens < 0 || params.min_tokens > params.max_tokens) {
    return fail(ErrorCode::kInvalidArgument, "min_tokens: {}, expected 0 to max_tokens ({})",
                params.min_tokens, params.max_tokens);
  }
  const auto ends = [&](int32_t token) {
    return (token == eos_token_id && !params.ignore_eos) ||
           std::find(params.stop_token_ids.begin(), params.stop_token_ids.end(), token) !=
               params.stop_token_ids.end();
  };
  if (params.min_tokens > 0) {
    std::unordered_set<int32_t> forbidden(params.stop_token_ids.begin(), params.stop_token_ids.end());
    if (!params.ignore_eos) {
      forbidden.insert(eos_token_id);
    }
    if (static_cast<int64_t>(forbidden.size()) >= vocab_size) {
      return fail(ErrorCode::kInvalidArgument,
                  "stop_token_ids: every token ends the answer, which min_tokens ({}) forbids",
                  params.min_tokens);
    }
  }
  const auto& allowed = params.allowed_token_ids;
  if (params.min_tokens > 0 && !allowed.empty() && std::all_of(allowed.begin(), allowed.end(), ends)) {
    return fail(ErrorCode::kInvalidArgument,
                "allowed_token_ids: only tokens that end the answer, which min_tokens ({}) forbids",
                params.min_tokens);
  }
  if (params.thinking_budget < -1) {
    return fail(ErrorCode::kInvalidArgument, "thinking_budget: {}, expected -1 (no limit) or at least 0",
                params.thinking_budget);
  }
  if (params.thinking_budget >= 0) {
    HADAL_CHECK(validate_tokens("thinking_end_token", {&params.thinking_end_token, 1}, vocab_size));
  }
  return {};
}

// Written so that NaN fails every comparison and is refused.
Result<void> validate_sampling(const SamplingParams& params, int64_t vocab_size) {
  if (!(params.temperature >= 0 && params.temperature <= kMaxTemperature)) {
    return fail(ErrorCode::kInvalidArgument, "temperature: {}, expected 0 to {}", params.temperature,
                kMaxTemperature);
  }
  if (!(params.top_p > 0 && params.top_p <= 1)) {
    return fail(ErrorCode::kInvalidArgument, "top_p: {}, expected more than 0 and at most 1", params.top_p);
  }
  if (params.top_k != -1 && params.top_k < 1) {
    return fail(ErrorCode::kInvalidArgument, "top_k: {}, expected -1 (off) or at least 1", params.top_k);
  }
  HADAL_CHECK(validate_range("min_p", params.min_p, 0, 1));
  if (params.max_tokens < 1) {
    return fail(ErrorCode::kInvalidArgument, "max_tokens: {}, expected at least 1", params.max_tokens);
  }
  if (params.top_logprobs < -1 || params.top_logprobs > kMaxTopLogprobs) {
    return fail(ErrorCode::kInvalidArgument, "top_logprobs: {}, expected -1 (off) or 0 to {}",
                params.top_logprobs, kMaxTopLogprobs);
  }
  return validate_tokens("stop_token_ids", params.stop_token_ids, vocab_size);
}

Result<void> at_least(std::string_view field, int64_t value, int64_t lowest) {
  if (value < lowest) {
    return fail(ErrorCode::kInvalidArgument, "{}: {}, expected at least {}", field, value, lowest);
  }
  return {};
}

}  // namespace

Result<void> validate_request(const Request& request, const RequestLimits& limits) {
  const auto prompt_length = static_cast<int64_t>(request.prompt.size());
  if (prompt_length == 0) {
    return fail(ErrorCode::kInvalidArgument, "prompt: no tokens, expected at least 1");
  }
  if (prompt_length >= limits.max_model_len) {
    return fail(ErrorCode::kInvalidArgument,
                "prompt: {} tokens leave no room for output, expected fewer than the maximum length of {}",
                prompt_length, limits.max_model_len);
  }
  HADAL_CHECK(validate_tokens("prompt", request.prompt, limits.vocab_size));
  HADAL_CHECK(validate_sampling(request.sampling, limits.vocab_size));
  return validate_adjustments(request.sampling, limits.eos_token_id, limits.vocab_size);
}

Result<EngineOptions> resolve_options(EngineOptions options, const model::LanguageModel& model) {
  if (model.vocab_size() < 1 || model.vocab_size() > kMaxRowTokens) {
    return fail(ErrorCode::kUnsupported, "model: vocabulary of {} tokens, expected 1 to {}",
                model.vocab_size(), kMaxRowTokens);
  }
  HADAL_CHECK(at_least("max_num_seqs", options.max_num_seqs, 1));
  HADAL_CHECK(at_least("max_waiting", options.max_waiting, 0));
  if (options.max_num_batched_tokens < options.max_num_seqs) {
    return fail(ErrorCode::kInvalidArgument,
                "max_num_batched_tokens: {}, expected at least max_num_seqs ({})",
                options.max_num_batched_tokens, options.max_num_seqs);
  }
  if (options.max_model_len == 0) {
    options.max_model_len = model.max_positions();
  }
  if (options.max_model_len < 2 || options.max_model_len > model.max_positions()) {
    return fail(ErrorCode::kInvalidArgument, "max_model_len: {}, expected 2 to the model's limit of {}",
                options.max_model_len, model.max_positions());
  }
  const cache::StateLayout layout = model.new_state(1)->layout();
  const int64_t capacity = StateStore::capacity(layout, options.cache_memory);
  if (capacity < cache::kBlockTokens) {
    return fail(ErrorCode::kInvalidArgument,
                "cache_memory: {} bytes, expected at least {}, which one sequence takes",
                options.cache_memory, layout.ring_bytes() + cache::BlockShape(layout).bytes);
  }
  options.max_model_len = std::min(options.max_model_len, capacity);
  if (options.eos_token_id < 0 || options.eos_token_id >= model.vocab_size()) {
    return fail(ErrorCode::kInvalidArgument, "eos_token_id: {}, expected 0 to {}", options.eos_token_id,
                model.vocab_size() - 1);
  }
  return options;
}

}  // namespace hadal::engine
