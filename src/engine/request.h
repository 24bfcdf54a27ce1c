#pragma once
// What goes into the engine and what comes out of it. No protocol, no text.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace hadal::engine {

inline constexpr double kMaxTemperature = 1e6;
inline constexpr int64_t kMaxTopLogprobs = 1000;

inline constexpr double kMaxPenalty = 2.0;              ///< of presence and frequency, either sign
inline constexpr double kMaxRepetitionPenalty = 100.0;  ///< more would only mask
inline constexpr double kMaxLogitBias = 100.0;          ///< either sign
inline constexpr size_t kMaxLogitBiases = 4096;

struct TokenBias {
  int32_t token = 0;
  double bias = 0;
};

/// How tokens are chosen and when the answer ends. The token at position p is the argmax over the allowed
/// tokens of logit / temperature + gumbel(seed, p, token id); sampler.h says it to the last bit.
struct SamplingParams {
  double temperature =
      1.0;  ///< [0, kMaxTemperature]; below 1e-5 means greedy: the greatest logit, lowest id on ties
  double top_p = 1.0;  ///< (0, 1]; ties at the border: lower ids stay. Without effect when greedy
  int64_t top_k = -1;  ///< -1: off, else >= 1. Without effect when greedy
  /// [0, 1]: tokens less likely than min_p times the likeliest are left out; 0: off. Without effect when
  /// greedy
  double min_p = 0.0;
  double presence_penalty = 0.0;      ///< [-kMaxPenalty, kMaxPenalty]; logit_adjustments.h says what these do
  double frequency_penalty = 0.0;     ///< [-kMaxPenalty, kMaxPenalty]
  double repetition_penalty = 1.0;    ///< (0, kMaxRepetitionPenalty]; 1: off
  std::vector<TokenBias> logit_bias;  ///< different tokens, at most kMaxLogitBiases
  std::vector<int32_t> allowed_token_ids;  ///< empty: all
  uint64_t seed = 0;
  int64_t max_tokens = 16;  ///< >= 1
  int64_t min_tokens = 0;   ///< [0, max_tokens]: no EOS and no stop token before so many tokens
  bool ignore_eos = false;  ///< the EOS token is a token like any other; stop_token_ids still count
  /// End the answer like EOS does. The token that ends an answer is delivered as its last token.
  std::vector<int32_t> stop_token_ids;
  /// Tokens of thinking after which thinking_end_token is forced; -1: no limit. Only for prompts that open
  /// the thinking part.
  int64_t thinking_budget = -1;
  int32_t thinking_end_token = -1;
  /// Teacher forcing: the first output tokens are these, whatever the logits say; log-probabilities stay the
  /// model's own (-9999 for a token that a filter removed).
  std::vector<int32_t> golden_token_ids;
  /// -1: no log-probabilities; n in [0, kMaxTopLogprobs]: that of each chosen token and the n best
  /// alternatives.
  int64_t top_logprobs = -1;
};

struct Request {
  std::vector<int32_t> prompt;
  SamplingParams sampling;
  std::string label;  ///< for log lines only
  /// Who the request belongs to: the prefix cache is shared within a tenant only. Set by the operator's side
  /// (the server derives it from the API key), never from what a caller sends.
  std::string cache_tenant = {};
  /// Further separates the prefix cache within the tenant; may come from the caller.
  std::string cache_salt = {};
  /// Waiting requests of a lower number start first. Waiting raises a request: see queue_order.h.
  int32_t priority = 0;
  /// Whose request it is within its tenant, for fairness between those who wait.
  std::string user = {};
};

enum class FinishReason {
  kStop,       ///< the last token is EOS or one of stop_token_ids
  kLength,     ///< max_tokens, or the sequence has reached max_model_len
  kCancelled,  ///< on request, or because the engine was shut down
  kError,      ///< Output::error says why; other requests are not affected unless they shared a failed pass
};

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;
};

struct OutputToken {
  int32_t token = 0;
  float logprob = 0;              ///< of the final distribution (after temperature, top-k, top-p); >= -9999
  std::vector<TokenLogprob> top;  ///< best first; tokens that a filter removed come last, with -9999
};

/// prompt_tokens is the whole prompt from the first output on; cached_tokens of it needed no forward pass.
/// Both are counted when the request starts to run; what is computed again after a preemption is in neither.
struct Usage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
};

/// What one step gave one request. The last output of a request has a finish reason; exactly one such output
/// is delivered for every accepted request. It may carry no token (kCancelled and kError never do).
struct Output {
  std::vector<OutputToken> tokens;
  Usage usage;  ///< so far
  std::optional<FinishReason> finish;
  std::optional<Error> error;  ///< set when finish is kError
};

/// Called on the engine's step thread, possibly before submit() has returned; must not block, must not throw
/// and must not call back into the engine, except RequestHandle::cancel. Destroyed after the last output.
using OutputSink = std::function<void(Output)>;

}  // namespace hadal::engine
