#include "engine/running_request.h"

#include <algorithm>
#include <utility>

#include "engine/sampler.h"

namespace hadal::engine {

RunningRequest::RunningRequest(Request request, OutputSink sink,
                               std::shared_ptr<const Cancellation> cancellation)
    : label_(std::move(request.label)),
      sampling_(std::move(request.sampling)),
      sink_(std::move(sink)),
      cancellation_(std::move(cancellation)),
      tokens_(std::move(request.prompt)),
      adjustments_(sampling_, tokens_),
      prompt_length_(static_cast<int64_t>(tokens_.size())),
      counted_prompt_(prompt_length_),
      cache_tenant_(std::move(request.cache_tenant)),
      cache_salt_(std::move(request.cache_salt)),
      priority_(request.priority),
      user_(std::move(request.user)) {
  std::sort(sampling_.stop_token_ids.begin(), sampling_.stop_token_ids.end());
  guess_sampling_ = sampling_;
  guess_sampling_.top_logprobs = -1;
}

void RunningRequest::start(std::unique_ptr<cache::SequenceState> state) {
  state_ = std::move(state);
  start_length_ = static_cast<int64_t>(tokens_.size());
  if (!cached_tokens_) {
    cached_tokens_ = state_->length();
  }
}

void RunningRequest::preempt() {
  guesses_.clear();
  state_.reset();
}

SequenceProgress RunningRequest::progress() const {
  SequenceProgress progress{std::max(prompt_length_, start_length_), static_cast<int64_t>(tokens_.size()),
                            state_ ? state_->length() : 0};
  if (cache_place_ && !cache_place_->checkpoints.empty()) {
    progress.max_computed = cache_place_->checkpoints.back() + cache_place_->reach;
  }
  return progress;
}

Usage RunningRequest::usage() const {
  return {counted_prompt_, cached_tokens_.value_or(0), static_cast<int64_t>(tokens_.size()) - prompt_length_};
}

std::span<const int32_t> RunningRequest::next_tokens(int64_t count, int64_t num_guesses) {
  const auto known = std::span<const int32_t>(tokens_).subspan(static_cast<size_t>(progress().num_computed),
                                                               static_cast<size_t>(count));
  if (num_guesses == 0) {
    return known;
  }
  pass_tokens_.assign(known.begin(), known.end());
  for (const Guess& guess : std::span(guesses_).first(static_cast<size_t>(num_guesses))) {
    pass_tokens_.push_back(guess.token);
  }
  return pass_tokens_;
}

int64_t RunningRequest::room_for_guesses(const StopLimits& limits) const {
  const SequenceProgress now = progress();
  if (now.num_computed < prompt_length_ || now.num_tokens - now.num_computed != 1) {
    return 0;
  }
  // The pass gives one token more than it has guesses right.
  const int64_t left = std::min(prompt_length_ + sampling_.max_tokens, limits.max_model_len) - now.num_tokens;
  return std::max<int64_t>(left - 1, 0);
}

bool RunningRequest::settle_guesses() {
  guesses_.clear();
  const int64_t length = std::min(state_->length(), static_cast<int64_t>(tokens_.size()) - 1);
  return length == state_->length() || state_->truncate(length);
}

void RunningRequest::adjust(std::span<float> logits, size_t num_guesses, const StopLimits& limits) const {
  if (!adjustments_.any(static_cast<int64_t>(num_guesses))) {
    return;
  }
  std::vector<int32_t> drafts;
  for (const Guess& guess : std::span(guesses_).first(num_guesses)) {
    drafts.push_back(guess.token);
  }
  adjustments_.adjust(logits, drafts, limits.eos_token_id);
}

int32_t RunningRequest::forced_token(size_t num_guesses) const {
  const size_t index = tokens_.size() - static_cast<size_t>(prompt_length_) + num_guesses;
  return index < sampling_.golden_token_ids.size() ? sampling_.golden_token_ids[index] : kNoToken;
}

std::optional<FinishReason> RunningRequest::append(int32_t token, const StopLimits& limits) {
  tokens_.push_back(token);
  adjustments_.append(token);
  if ((token == limits.eos_token_id && !sampling_.ignore_eos) ||
      std::binary_search(sampling_.stop_token_ids.begin(), sampling_.stop_token_ids.end(), token)) {
    return FinishReason::kStop;
  }
  const auto length = static_cast<int64_t>(tokens_.size());
  if (length >= limits.max_model_len || length - prompt_length_ >= sampling_.max_tokens) {
    return FinishReason::kLength;
  }
  return std::nullopt;
}

void RunningRequest::end() {
  ended_ = true;
  state_.reset();
}

}  // namespace hadal::engine
