#pragma once
// What a request wants done to its logits before a token is drawn: penalties for tokens that have been seen,
// biases, tokens that are allowed or not yet, and the end of thinking when its budget is used up.
//
//   repetition_penalty r   of tokens in prompt or output: logit > 0 ? logit / r : logit * r     (Keskar et
//   al.) presence, frequency    of tokens in the output:       logit - presence - frequency * count  (OpenAI)
//   logit_bias             logit + bias
//   allowed_token_ids      others become -infinity
//   min_tokens             until so many tokens are out, EOS and the stop tokens become -infinity
//   thinking_budget        once so many tokens of thinking are out, all but the end of thinking become
//   -infinity
//
// in this order, each in double and rounded to float once. A pure function of the parameters and of the
// tokens in front: what else runs, and whether tokens were drafted, makes no difference.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "engine/request.h"

namespace hadal::engine {

/// The adjustments of one request, and the counts of its tokens that they need. Not thread-safe, but
/// adjust() of different rows may run at once.
class LogitAdjustments {
 public:
  /// `params` stays the caller's and must outlive this object; stop_token_ids need no order. Nothing is
  /// counted unless a penalty asks for it.
  LogitAdjustments(const SamplingParams& params, std::span<const int32_t> prompt);

  /// Whether adjust() could change anything for the next token or one of the `num_drafts` after it.
  bool any(int64_t num_drafts) const;
  /// A token of the output, in order.
  void append(int32_t token);
  /// Adjusts the logits [vocab_size] of the token that follows the output so far and `drafts`.
  void adjust(std::span<float> logits, std::span<const int32_t> drafts, int32_t eos_token_id) const;

 private:
  void penalize(std::span<float> logits, std::span<const int32_t> drafts) const;
  void penalize_output_token(std::span<float> logits, int32_t token, int64_t count) const;
  void restrict_to_allowed(std::span<float> logits) const;
  void forbid_ends(std::span<float> logits, int32_t eos_token_id) const;
  bool thinking_is_used_up(std::span<const int32_t> drafts) const;

  const SamplingParams& params_;
  int64_t num_output_ = 0;
  bool thinking_open_;
  bool counts_output_;
  bool counts_prompt_;
  std::unordered_map<int32_t, int64_t> output_counts_;
  std::unordered_set<int32_t> seen_in_prompt_;
};

}  // namespace hadal::engine
