#include "engine/token_order.h"

#include <algorithm>
#include <array>
#include <functional>

namespace hadal::engine {
namespace {

constexpr size_t kNumBuckets = 256;

/// Which 1/8 of a nat below the best score a logit falls into; never falls as the logit falls. Weights end
/// long before the last bucket.
size_t bucket_of(const RowView& row, float logit) {
  const double distance = (row.best_score - static_cast<double>(logit) * row.scale) * 8;
  return distance < kNumBuckets - 1 ? static_cast<size_t>(distance) : kNumBuckets - 1;
}

/// Scores this far below the best one are worth a look when only the favourites matter.
constexpr double kNearBest = 8;

}  // namespace

// The first of candidates_, in order, at which the running sum of weights passes `limit`; all of them
// together must. A radix search over sums: split by the highest bits that differ, walk the 256 sums to the
// one in which the limit is passed, go on with its candidates alone (in place: the others are lost).
TokenRank PrefixFinder::crossing(uint64_t limit) {
  constexpr int kDigitBits = 8;
  constexpr uint64_t kDigitMask = (1U << kDigitBits) - 1;
  uint64_t before = 0;  // weight of everything better than the candidates still looked at
  while (candidates_.size() > 1) {
    uint64_t all_set = ~uint64_t{0};
    uint64_t any_set = 0;
    for (const Candidate& candidate : candidates_) {
      all_set &= candidate.rank;
      any_set |= candidate.rank;
    }
    const int shift = std::max(static_cast<int>(std::bit_width(all_set ^ any_set)) - kDigitBits, 0);
    std::array<uint64_t, kDigitMask + 1> sums{};
    for (const Candidate& candidate : candidates_) {
      sums[candidate.rank >> shift & kDigitMask] += candidate.weight;
    }
    size_t digit = 0;
    while (before + sums[digit] <= limit) {
      before += sums[digit++];
    }
    std::erase_if(candidates_, [&](const Candidate& candidate) {
      return (candidate.rank >> shift & kDigitMask) != digit;
    });
  }
  return candidates_.front().rank;
}

TokenRank PrefixFinder::top_p(const RowView& row, double top_p) {
  const auto limit = static_cast<uint64_t>(top_p * static_cast<double>(row.total_weight));
  if (limit >= row.total_weight) {
    return kKeepAll;  // a top_p next to 1: no token crosses
  }
  // Most rows have favourites. The tokens near the best one are a prefix of the order, so if they pass the
  // limit together, the border is among them.
  candidates_.clear();
  uint64_t sum = 0;
  for_each_at_least(row, static_cast<float>((row.best_score - kNearBest) / row.scale),
                    [&](float logit, int32_t token) {
                      sum += row.weights[token];
                      candidates_.push_back({token_rank(logit, token), row.weights[token]});
                    });
  if (sum > limit) {
    return crossing(limit);
  }
  // Else find the bucket of scores in which it is passed.
  std::array<uint64_t, kNumBuckets> sums{};
  for (size_t token = 0; token < row.logits.size(); ++token) {
    sums[bucket_of(row, row.logits[token])] += row.weights[token];
  }
  uint64_t before = 0;
  size_t bucket = 0;
  while (before + sums[bucket] <= limit) {
    before += sums[bucket++];
  }
  candidates_.clear();
  for (size_t token = 0; token < row.logits.size(); ++token) {
    if (bucket_of(row, row.logits[token]) == bucket) {
      candidates_.push_back({token_rank(row.logits[token], static_cast<int32_t>(token)), row.weights[token]});
    }
  }
  return crossing(limit - before);
}

float PrefixFinder::kth_block_maximum(const RowView& row, int64_t count) {
  if (count > static_cast<int64_t>(row.block_maxima.size())) {
    return -std::numeric_limits<float>::infinity();
  }
  maxima_.assign(row.block_maxima.begin(), row.block_maxima.end());
  const auto kth = maxima_.begin() + (count - 1);
  std::nth_element(maxima_.begin(), kth, maxima_.end(), std::greater<>());
  return *kth;
}

TokenRank PrefixFinder::top_k(const RowView& row, int64_t count) {
  if (count >= static_cast<int64_t>(row.logits.size())) {
    return kKeepAll;
  }
  // At least `count` tokens reach the count-th best block maximum.
  candidates_.clear();
  for_each_at_least(row, kth_block_maximum(row, count), [&](float logit, int32_t token) {
    candidates_.push_back({token_rank(logit, token), 1});
  });
  return crossing(static_cast<uint64_t>(count - 1));
}

std::span<const TokenRank> PrefixFinder::best(const RowView& row, int64_t count) {
  count = std::min(count, static_cast<int64_t>(row.logits.size()));
  ranks_.clear();
  if (count <= 0) {
    return ranks_;
  }
  for_each_at_least(row, kth_block_maximum(row, count),
                    [&](float logit, int32_t token) { ranks_.push_back(token_rank(logit, token)); });
  std::nth_element(ranks_.begin(), ranks_.begin() + (count - 1), ranks_.end());
  ranks_.resize(static_cast<size_t>(count));
  std::sort(ranks_.begin(), ranks_.end());
  return ranks_;
}

}  // namespace hadal::engine
