#pragma once
// What goes into the engine and what comes out of it. No protocol, no text.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace hadal::engine {

/// How tokens are chosen. The token at position p is the argmax over the allowed tokens of
/// logit / temperature + gumbel(seed, p, token id); temperature 0 is the plain argmax (lowest id on ties).
struct SamplingParams {
  double temperature = 1.0;  ///< >= 0; below 1e-5 means greedy
  double top_p = 1.0;        ///< (0, 1]; ties at the border: lower ids stay
  int64_t top_k = -1;        ///< -1: off, else >= 1
  uint64_t seed = 0;
  int64_t max_tokens = 16;   ///< >= 1
  bool ignore_eos = false;
  std::vector<int32_t> stop_token_ids;  ///< end the answer like EOS does
  /// -1: no log-probabilities; n >= 0: that of each chosen token and the n best alternatives (<= 1000).
  int64_t top_logprobs = -1;
};

struct Request {
  std::vector<int32_t> prompt;
  SamplingParams sampling;
  std::string label;  ///< for log lines only
};

enum class FinishReason { kStop, kLength, kCancelled, kError };

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;
};

struct OutputToken {
  int32_t token = 0;
  float logprob = 0;                    ///< of the final distribution (after temperature, top-k, top-p)
  std::vector<TokenLogprob> top;        ///< best first
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
};

/// What one step gave one request. The last output of a request has a finish reason; exactly one such output
/// is delivered for every accepted request.
struct Output {
  std::vector<OutputToken> tokens;
  Usage usage;  ///< so far
  std::optional<FinishReason> finish;
  std::optional<Error> error;  ///< set when finish is kError
};

/// Called on the engine's step thread; must not block and must not call back into the engine, except
/// RequestHandle::cancel.
using OutputSink = std::function<void(Output)>;

}  // namespace hadal::engine
