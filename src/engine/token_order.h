#pragma once
// The order in which top-p, top-k and the list of alternatives look at tokens: higher logit first, of equal
// logits the lower id first (+0 and -0 are equal). Temperature does not change it. Every filter keeps a
// prefix of this order, so a filter is one number: the rank of the last token that stays.

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/row_kernels.h"

namespace hadal::engine {

/// A token's place in the order: smaller is better, and no two tokens of a row have the same.
using TokenRank = uint64_t;

inline constexpr TokenRank kKeepAll = std::numeric_limits<TokenRank>::max();

/// Not for NaN. The caller flushes denormals, which then rank as zero.
inline TokenRank token_rank(float logit, int32_t token) {
  const auto bits = std::bit_cast<uint32_t>(logit + 0.0F);  // -0 becomes +0
  const uint32_t ascending = (bits & 0x80000000) != 0 ? ~bits : bits | 0x80000000;
  return static_cast<uint64_t>(~ascending) << 32 | static_cast<uint32_t>(token);
}

/// The rank after which every token has a smaller logit than `logit`.
inline TokenRank last_rank_of(float logit) {
  return token_rank(logit, 0) | std::numeric_limits<uint32_t>::max();
}

inline int32_t rank_token(TokenRank rank) {
  return static_cast<int32_t>(static_cast<uint32_t>(rank));
}

inline float rank_logit(TokenRank rank) {
  const auto ascending = ~static_cast<uint32_t>(rank >> 32);
  return std::bit_cast<float>((ascending & 0x80000000) != 0 ? ascending & 0x7fffffff : ~ascending);
}

/// A row of logits with what the row kernels found out about it.
struct RowView {
  std::span<const float> logits;
  std::span<const float> block_maxima;
  float maximum = 0;
  double scale = 1;                        ///< from logits to scores
  double best_score = 0;                   ///< maximum * scale
  std::span<const uint64_t> weights = {};  ///< of the scores; empty if nobody needs them
  uint64_t total_weight = 0;
};

/// Calls visit(logit, token) for every token whose logit is at least `lowest`, ids ascending; blocks that
/// cannot hold one are not read.
template <class Visit>
void for_each_at_least(const RowView& row, float lowest, Visit visit) {
  const auto num_tokens = static_cast<int64_t>(row.logits.size());
  for (size_t block = 0; block < row.block_maxima.size(); ++block) {
    if (!(row.block_maxima[block] >= lowest)) {
      continue;
    }
    const int64_t begin = static_cast<int64_t>(block) * kRowBlock;
    const int64_t end = begin + kRowBlock < num_tokens ? begin + kRowBlock : num_tokens;
    for (int64_t token = begin; token < end; ++token) {
      if (row.logits[token] >= lowest) {
        visit(row.logits[token], static_cast<int32_t>(token));
      }
    }
  }
}

/// Finds filters in a row without sorting it, in linear time whatever the row. Holds working memory only: a
/// few kilobytes for most rows, at most 2 MB for 129,280 tokens that are all alike.
class PrefixFinder {
 public:
  /// The last rank that top-p keeps. A token stays when the weights (row_kernels.h) of all better tokens sum
  /// to at most top_p * total_weight, rounded once to double and down to an integer; so the token that
  /// crosses the border stays, and the best one always does. The row must have weights.
  TokenRank top_p(const RowView& row, double top_p);

  /// The last rank among the best `count` tokens; kKeepAll if there are no more than that.
  TokenRank top_k(const RowView& row, int64_t count);

  /// The best `count` tokens in order (all of them if there are fewer).
  std::span<const TokenRank> best(const RowView& row, int64_t count);

 private:
  struct Candidate {
    TokenRank rank;
    uint64_t weight;
  };
  TokenRank crossing(uint64_t limit);
  float kth_block_maximum(const RowView& row, int64_t count);

  std::vector<Candidate> candidates_;
  std::vector<TokenRank> ranks_;
  std::vector<float> maxima_;
};

}  // namespace hadal::engine
