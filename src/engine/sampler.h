#pragma once
// From a row of logits to a token. A pure function of (logits, parameters, position): no state that matters,
// no order, no thread count, no instruction set.
//
//   score(t) = double(logit(t)) * (1 / temperature)             in double, the reciprocal rounded once
//   weight   = round(e^(score - best score) * 2^44)             integers (row_kernels.h), exact sums
//   kept     = top-p, top-k and min-p, each on the whole row, all obeyed; ties go to the lower id
//   (token_order.h)
//              min-p keeps the logits that are at least (best score + ln min_p) * temperature
//   token    = the kept token with the greatest score + gumbel(seed, position, t), the lower id on ties
//   logprob  = score - best score - ln(sum of kept weights / 2^44), at least -9999
//
// Greedy (temperature below 1e-5): the token of the greatest logit, the lower id on ties; the filters and
// the seed have no effect, and log-probabilities are those of the plain softmax (temperature 1, nothing
// filtered).
//
// A logit of -infinity masks its token. NaN, +infinity, or nothing but -infinity is an error of this row
// alone. Denormal logits count as zero.

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/request.h"
#include "engine/row_kernels.h"
#include "engine/token_order.h"

namespace hadal::engine {

inline constexpr double kGreedyBelow = 1e-5;
inline constexpr float kLowestLogprob = -9999.0F;
inline constexpr int64_t kMaxRowTokens = int64_t{1} << 19;  ///< where sums of weights still fit

inline constexpr int32_t kNoToken = -1;

constexpr bool is_greedy(const SamplingParams& params) {
  return params.temperature < kGreedyBelow;
}

/// Samples one row at a time; owns working memory that it uses again. Not thread-safe.
class Sampler {
 public:
  explicit Sampler(const RowKernels& kernels = best_row_kernels()) : kernels_(&kernels) {}

  /// `logits`: [vocab_size] float32, at most kMaxRowTokens; `position`: index in the whole sequence of the
  /// token that is produced; `params` must have passed validate_request. Log-probabilities are computed only
  /// if params.top_logprobs >= 0 (else OutputToken::logprob is 0). `top` holds min(top_logprobs, vocab_size)
  /// tokens, best first; those that a filter removed follow with kLowestLogprob. `forced`: the token to take
  /// in place of a draw (teacher forcing), kNoToken for none. kInternal: a bad row.
  Result<OutputToken> sample(std::span<const float> logits, const SamplingParams& params, int64_t position,
                             int32_t forced = kNoToken);

 private:
  TokenRank last_kept(const RowView& row, const SamplingParams& params);
  int32_t draw(const RowView& row, TokenRank last_kept, uint64_t seed, int64_t position) const;
  void fill_logprobs(const RowView& row, TokenRank last_kept, int64_t num_top, OutputToken& output);

  const RowKernels* kernels_;
  std::vector<float> block_maxima_;
  std::vector<uint64_t> weights_;
  PrefixFinder finder_;
};

/// One row of a batch; the spans and the parameters stay the caller's.
struct SampleRow {
  std::span<const float> logits;
  const SamplingParams* params = nullptr;
  int64_t position = 0;
  int32_t forced = kNoToken;
};

/// Samples the rows of many sequences over the threads of a pool, a row by one thread.
class BatchSampler {
 public:
  explicit BatchSampler(ThreadPool& pool)
      : pool_(&pool), samplers_(static_cast<size_t>(pool.num_threads())) {}

  /// results[i] is what Sampler::sample gives for rows[i]; both have the same length.
  void sample(std::span<const SampleRow> rows, std::span<Result<OutputToken>> results);

 private:
  ThreadPool* pool_;  ///< outlives this object
  std::vector<Sampler> samplers_;
};

}  // namespace hadal::engine
