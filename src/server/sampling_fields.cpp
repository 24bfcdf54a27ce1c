#include "server/sampling_fields.h"

#include <charconv>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "base/log.h"

namespace hadal::server {
namespace {

Result<void> read_number(const Json& members, const char* name, double lowest, double highest, double& value,
                         bool excludes_lowest = false) {
  HADAL_TRY(const auto number, number_member(members, name, lowest, highest, excludes_lowest));
  value = number.value_or(value);
  return {};
}

Result<void> read_token_ids(const Json& members, const char* name, const ModelService& model,
                            std::vector<int32_t>& ids) {
  if (const auto list = members.find(name); list != members.end() && !list->is_null()) {
    HADAL_TRY(ids, token_ids(*list, name, model.vocab_size));
  }
  return {};
}

/// {"5": 1.5}: token ids as JSON must write keys, biases in [-100, 100].
Result<void> read_logit_bias(const Json& members, const ModelService& model,
                             std::vector<engine::TokenBias>& biases) {
  const auto member = members.find("logit_bias");
  if (member == members.end() || member->is_null()) {
    return {};
  }
  if (!member->is_object() || member->size() > engine::kMaxLogitBiases) {
    return fail(ErrorCode::kInvalidArgument,
                "logit_bias: {} is not an object with at most {} members, from token id to bias",
                describe(*member), engine::kMaxLogitBiases);
  }
  for (const auto& [key, value] : member->items()) {
    int32_t token = -1;
    const auto [end, fault] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (fault != std::errc() || end != key.data() + key.size() || token < 0 || token >= model.vocab_size ||
        key != std::to_string(token)) {
      return fail(ErrorCode::kInvalidArgument, "logit_bias: \"{}\" is not a token id from 0 to {}",
                  printable(key, 40), model.vocab_size - 1);
    }
    const double bias = value.is_number() ? value.get<double>() : 2 * engine::kMaxLogitBias;
    if (!(std::abs(bias) <= engine::kMaxLogitBias)) {
      return fail(ErrorCode::kInvalidArgument, "logit_bias[{}]: {} is not a number from {} to {}", key,
                  describe(value), -engine::kMaxLogitBias, engine::kMaxLogitBias);
    }
    biases.push_back({token, bias});
  }
  return {};
}

}  // namespace

const std::vector<std::string_view>& sampling_field_names() {
  static const std::vector<std::string_view> kNames{"top_k",
                                                    "min_p",
                                                    "presence_penalty",
                                                    "frequency_penalty",
                                                    "repetition_penalty",
                                                    "logit_bias",
                                                    "allowed_token_ids",
                                                    "min_tokens",
                                                    "ignore_eos",
                                                    "stop_token_ids"};
  return kNames;
}

Result<void> read_sampling_fields(const Json& members, const ModelService& model,
                                  engine::SamplingParams& sampling) {
  HADAL_TRY(const auto top_k, integer_member(members, "top_k", -1, INT32_MAX));
  if (top_k) {
    sampling.top_k = *top_k <= 0 ? -1 : *top_k;
  }
  HADAL_CHECK(read_number(members, "min_p", 0, 1, sampling.min_p));
  HADAL_CHECK(read_number(members, "presence_penalty", -engine::kMaxPenalty, engine::kMaxPenalty,
                          sampling.presence_penalty));
  HADAL_CHECK(read_number(members, "frequency_penalty", -engine::kMaxPenalty, engine::kMaxPenalty,
                          sampling.frequency_penalty));
  HADAL_CHECK(read_number(members, "repetition_penalty", 0, engine::kMaxRepetitionPenalty,
                          sampling.repetition_penalty, /*excludes_lowest=*/true));
  HADAL_CHECK(read_logit_bias(members, model, sampling.logit_bias));
  HADAL_CHECK(read_token_ids(members, "allowed_token_ids", model, sampling.allowed_token_ids));
  HADAL_CHECK(read_token_ids(members, "stop_token_ids", model, sampling.stop_token_ids));
  HADAL_TRY(const auto min_tokens, integer_member(members, "min_tokens", 0, INT32_MAX));
  sampling.min_tokens = min_tokens.value_or(0);
  HADAL_TRY(const auto ignore_eos, bool_member(members, "ignore_eos"));
  sampling.ignore_eos = ignore_eos.value_or(false);
  return {};
}

Result<std::optional<int64_t>> read_thinking_budget(const Json& members) {
  HADAL_TRY(const auto own, integer_member(members, "thinking_budget", 0, INT32_MAX));
  const auto thinking = members.find("thinking");
  if (thinking == members.end() || !thinking->is_object()) {
    return own;
  }
  const auto nested = integer_member(*thinking, "budget_tokens", 0, INT32_MAX);
  if (!nested) {
    return fail(ErrorCode::kInvalidArgument, "thinking.{}", nested.error().message);
  }
  if (own && *nested) {
    return fail(ErrorCode::kInvalidArgument, "thinking_budget: set together with thinking.budget_tokens");
  }
  return own ? own : *nested;
}

}  // namespace hadal::server
