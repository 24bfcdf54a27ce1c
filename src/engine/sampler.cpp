#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/fixed_math.h"
#include "engine/philox.h"

namespace hadal::engine {

namespace {

/// The best token so far.
struct Leader {
  int32_t token = 0;
  double score = 0;

  void challenge(int32_t other, double other_score) {
    if (other_score > score || (other_score == score && other < token)) {
      token = other;
      score = other_score;
    }
  }

  /// The smallest word whose noise could lift `token_score` to the leader's score. -ln u >= 1 - u, hence
  /// -ln(-ln u) <= -ln(1 - u): only a word with 1 - u <= e^(token_score - leader) can. Rounding errors of the
  /// scores (1e-16 of their size) and of the noise are covered by the slack.
  uint32_t lowest_winning_word(double token_score) const {
    const double lead = gap(token_score);
    if (lead >= 0) {
      return 0;
    }
    constexpr uint32_t kGreatest = std::numeric_limits<uint32_t>::max();
    const double share = fixed_exp(lead) * 0x1p32;
    return kGreatest - (share < 0x1.fffffffep31 ? static_cast<uint32_t>(share) : kGreatest);
  }

  /// No noise is great enough for a token of this score.
  bool out_of_reach(double token_score) const { return gap(token_score) < -kMaxGumbel; }

 private:
  double gap(double token_score) const { return token_score - score + (1e-9 + 1e-12 * std::abs(score)); }
};

/// The smallest logit that min-p keeps; never above the greatest.
float lowest_likely_logit(const RowView& row, double min_p) {
  const double bound = (row.best_score + fixed_log(min_p)) / row.scale;
  if (!(bound > static_cast<double>(std::numeric_limits<float>::lowest()))) {
    return std::numeric_limits<float>::lowest();
  }
  auto lowest = static_cast<float>(std::min(bound, static_cast<double>(row.maximum)));
  if (static_cast<double>(lowest) < bound) {
    lowest = std::nextafter(lowest, std::numeric_limits<float>::max());
  }
  return std::min(lowest, row.maximum);
}

/// The first token with the row's greatest logit.
int32_t first_maximum(const RowView& row) {
  const auto block = std::find(row.block_maxima.begin(), row.block_maxima.end(), row.maximum);
  const auto begin = row.logits.begin() + (block - row.block_maxima.begin()) * kRowBlock;
  return static_cast<int32_t>(std::find(begin, row.logits.end(), row.maximum) - row.logits.begin());
}

Error bad_row(std::span<const float> logits, int64_t position) {
  for (size_t token = 0; token < logits.size(); ++token) {
    if (!(logits[token] <= std::numeric_limits<float>::max())) {
      return {ErrorCode::kInternal, fmt::format("logits of position {}: token {} has {}, expected a number",
                                                position, token, logits[token])};
    }
  }
  return {ErrorCode::kInternal, fmt::format("logits of position {}: every token is masked", position)};
}

}  // namespace

TokenRank Sampler::last_kept(const RowView& row, const SamplingParams& params) {
  TokenRank last = kKeepAll;
  if (params.top_k > 0) {
    last = finder_.top_k(row, params.top_k);
  }
  if (params.top_p < 1) {
    last = std::min(last, finder_.top_p(row, params.top_p));
  }
  if (params.min_p > 0) {
    last = std::min(last, last_rank_of(lowest_likely_logit(row, params.min_p)));
  }
  return last;
}

// Most of a row is never looked at: a block whose best logit was filtered out, or is too low for the greatest
// noise, is skipped unread; of the others the words are made, but turned into noise only where the word could
// lift the block's best logit to the leader.
int32_t Sampler::draw(const RowView& row, TokenRank last_kept, uint64_t seed, int64_t position) const {
  // The best token is never filtered out; beginning with it makes the leader hard to beat from the start.
  Leader leader{first_maximum(row), 0};
  leader.score = row.best_score + gumbel(seed, position, leader.token);
  const float lowest_kept =
      last_kept == kKeepAll ? -std::numeric_limits<float>::infinity() : rank_logit(last_kept);
  const auto num_tokens = static_cast<int64_t>(row.logits.size());
  BlockWords words;
  for (int64_t block = 0; block < static_cast<int64_t>(row.block_maxima.size()); ++block) {
    const double block_score = static_cast<double>(row.block_maxima[block]) * row.scale;
    if (row.block_maxima[block] < lowest_kept || leader.out_of_reach(block_score)) {
      continue;
    }
    const uint32_t lowest_word = leader.lowest_winning_word(block_score);
    const auto first_group = static_cast<uint32_t>(block * (kRowBlock / 4));
    if (kernels_->block_words(seed, position, first_group, words) < lowest_word) {
      continue;
    }
    const int64_t begin = block * kRowBlock;
    const int64_t count = std::min(kRowBlock, num_tokens - begin);
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t word = words[i % 4][i / 4];
      const float logit = row.logits[begin + i];
      const auto token = static_cast<int32_t>(begin + i);
      if (word >= lowest_word && token_rank(logit, token) <= last_kept) {
        leader.challenge(token, static_cast<double>(logit) * row.scale + gumbel_of_word(word));
      }
    }
  }
  return leader.token;
}

void Sampler::fill_logprobs(const RowView& row, TokenRank last_kept, int64_t num_top, OutputToken& output) {
  uint64_t kept_weight = row.total_weight;
  if (last_kept != kKeepAll) {
    kept_weight = 0;
    for_each_at_least(row, rank_logit(last_kept), [&](float logit, int32_t token) {
      kept_weight += token_rank(logit, token) <= last_kept ? row.weights[token] : 0;
    });
  }
  static_assert(kWeightBits == 44);
  const double log_sum = fixed_log(static_cast<double>(kept_weight) * 0x1p-44);
  const auto logprob = [&](TokenRank rank) {
    const double value = static_cast<double>(rank_logit(rank)) * row.scale - row.best_score - log_sum;
    return rank <= last_kept ? std::max(static_cast<float>(value), kLowestLogprob) : kLowestLogprob;
  };
  output.logprob = logprob(token_rank(row.logits[output.token], output.token));
  for (const TokenRank rank : finder_.best(row, num_top)) {
    output.top.push_back({rank_token(rank), logprob(rank)});
  }
}

Result<OutputToken> Sampler::sample(std::span<const float> logits, const SamplingParams& params,
                                    int64_t position, int32_t forced) {
  const FlushDenormals denormals_are_zero;  // as in the threads of the pool: the same on every thread
  const auto num_tokens = static_cast<int64_t>(logits.size());
  if (num_tokens < 1 || num_tokens > kMaxRowTokens) {
    return fail(ErrorCode::kInternal, "logits of position {}: {} tokens, expected 1 to {}", position,
                num_tokens, kMaxRowTokens);
  }
  block_maxima_.resize(static_cast<size_t>(num_row_blocks(num_tokens)));
  const RowSummary summary = kernels_->summarize(logits.data(), num_tokens, block_maxima_.data());
  if (!summary.valid) {
    return tl::make_unexpected(bad_row(logits, position));
  }
  const bool greedy = is_greedy(params);
  const bool wants_logprobs = params.top_logprobs >= 0;
  RowView row{.logits = logits, .block_maxima = block_maxima_, .maximum = summary.maximum};
  row.scale = greedy ? 1.0 : 1.0 / params.temperature;
  row.best_score = static_cast<double>(row.maximum) * row.scale;
  if (wants_logprobs || (!greedy && params.top_p < 1)) {
    weights_.resize(static_cast<size_t>(num_tokens));
    row.total_weight = kernels_->weigh(logits.data(), num_tokens, block_maxima_.data(), row.scale,
                                       row.best_score, weights_.data());
    row.weights = weights_;
  }

  OutputToken output;
  const TokenRank last = greedy ? kKeepAll : last_kept(row, params);
  if (forced != kNoToken) {
    output.token = forced;
  } else {
    output.token = greedy ? first_maximum(row) : draw(row, last, params.seed, position);
  }
  if (wants_logprobs) {
    fill_logprobs(row, last, params.top_logprobs, output);
  }
  return output;
}

void BatchSampler::sample(std::span<const SampleRow> rows, std::span<Result<OutputToken>> results) {
  const auto num_rows = static_cast<int64_t>(rows.size());
  const auto stride = std::min(static_cast<int64_t>(samplers_.size()), num_rows);
  pool_->parallel_for(stride, [&](int64_t first) {
    for (int64_t i = first; i < num_rows; i += stride) {
      results[i] = samplers_[first].sample(rows[i].logits, *rows[i].params, rows[i].position, rows[i].forced);
    }
  });
}

}  // namespace hadal::engine
