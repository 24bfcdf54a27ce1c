#include "engine/logit_adjustments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hadal::engine {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

/// Rounded once, and finite where the row's own logit was: only a mask is infinite.
float to_logit(double value) {
  constexpr double kGreatest = std::numeric_limits<float>::max();
  return std::isinf(value) && value < 0 ? kMasked
                                        : static_cast<float>(std::clamp(value, -kGreatest, kGreatest));
}

void repeat_penalty(float& logit, double penalty) {
  const auto value = static_cast<double>(logit);
  logit = to_logit(value > 0 ? value / penalty : value * penalty);
}

}  // namespace

LogitAdjustments::LogitAdjustments(const SamplingParams& params, std::span<const int32_t> prompt)
    : params_(params),
      thinking_open_(params.thinking_budget >= 0),
      counts_output_(params.presence_penalty != 0 || params.frequency_penalty != 0 ||
                     params.repetition_penalty != 1),
      counts_prompt_(params.repetition_penalty != 1) {
  if (counts_prompt_) {
    seen_in_prompt_.insert(prompt.begin(), prompt.end());
  }
}

bool LogitAdjustments::any(int64_t num_drafts) const {
  return counts_output_ || !params_.logit_bias.empty() || !params_.allowed_token_ids.empty() ||
         num_output_ < params_.min_tokens ||
         (thinking_open_ && num_output_ + num_drafts >= params_.thinking_budget);
}

void LogitAdjustments::append(int32_t token) {
  ++num_output_;
  thinking_open_ = thinking_open_ && token != params_.thinking_end_token;
  if (counts_output_) {
    ++output_counts_[token];
  }
}

void LogitAdjustments::adjust(std::span<float> logits, std::span<const int32_t> drafts,
                              int32_t eos_token_id) const {
  if (counts_output_) {
    penalize(logits, drafts);
  }
  for (const TokenBias& bias : params_.logit_bias) {
    float& logit = logits[static_cast<size_t>(bias.token)];
    logit = to_logit(static_cast<double>(logit) + bias.bias);
  }
  if (!params_.allowed_token_ids.empty()) {
    restrict_to_allowed(logits);
  }
  if (num_output_ + static_cast<int64_t>(drafts.size()) < params_.min_tokens) {
    forbid_ends(logits, eos_token_id);
  }
  if (thinking_is_used_up(drafts)) {
    const auto end = static_cast<size_t>(params_.thinking_end_token);
    std::fill(logits.begin(), logits.end(), kMasked);
    logits[end] = 0;
  }
}

void LogitAdjustments::penalize(std::span<float> logits, std::span<const int32_t> drafts) const {
  // Each token once: repetition first, then what the output's count asks for.
  if (counts_prompt_) {
    for (const int32_t token : seen_in_prompt_) {
      repeat_penalty(logits[static_cast<size_t>(token)], params_.repetition_penalty);
    }
  }
  for (const auto& [token, count] : output_counts_) {
    penalize_output_token(logits, token, count + std::count(drafts.begin(), drafts.end(), token));
  }
  for (size_t i = 0; i < drafts.size(); ++i) {
    const auto earlier = drafts.first(i);
    if (!output_counts_.contains(drafts[i]) &&
        std::find(earlier.begin(), earlier.end(), drafts[i]) == earlier.end()) {
      penalize_output_token(logits, drafts[i], std::count(drafts.begin(), drafts.end(), drafts[i]));
    }
  }
}

void LogitAdjustments::penalize_output_token(std::span<float> logits, int32_t token, int64_t count) const {
  float& logit = logits[static_cast<size_t>(token)];
  if (counts_prompt_ && !seen_in_prompt_.contains(token)) {
    repeat_penalty(logit, params_.repetition_penalty);
  }
  logit = to_logit(static_cast<double>(logit) - params_.presence_penalty -
                   params_.frequency_penalty * static_cast<double>(count));
}

void LogitAdjustments::restrict_to_allowed(std::span<float> logits) const {
  std::vector<float> kept;
  kept.reserve(params_.allowed_token_ids.size());
  for (const int32_t token : params_.allowed_token_ids) {
    kept.push_back(logits[static_cast<size_t>(token)]);
  }
  std::fill(logits.begin(), logits.end(), kMasked);
  for (size_t i = 0; i < kept.size(); ++i) {
    logits[static_cast<size_t>(params_.allowed_token_ids[i])] = kept[i];
  }
}

void LogitAdjustments::forbid_ends(std::span<float> logits, int32_t eos_token_id) const {
  if (!params_.ignore_eos) {
    logits[static_cast<size_t>(eos_token_id)] = kMasked;
  }
  for (const int32_t token : params_.stop_token_ids) {
    logits[static_cast<size_t>(token)] = kMasked;
  }
}

bool LogitAdjustments::thinking_is_used_up(std::span<const int32_t> drafts) const {
  return thinking_open_ && num_output_ + static_cast<int64_t>(drafts.size()) >= params_.thinking_budget &&
         std::find(drafts.begin(), drafts.end(), params_.thinking_end_token) == drafts.end();
}

}  // namespace hadal::engine
