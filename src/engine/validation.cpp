#include "engine/validation.h"

#include <algorithm>

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
  return validate_sampling(request.sampling, limits.vocab_size);
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
