#pragma once
// The passes of the sampler that touch every token of a row of logits. Each body is written once and compiled
// for several instruction sets; maxima, integer sums and integer random words come out the same from all of
// them, whatever the vector width. Callers flush denormals to zero (FlushDenormals).

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace hadal::engine {

/// Rows are looked at in blocks of this many tokens; the last block may be shorter.
inline constexpr int64_t kRowBlock = 64;

constexpr int64_t num_row_blocks(int64_t num_tokens) {
  return (num_tokens + kRowBlock - 1) / kRowBlock;
}

/// Weights are probabilities relative to the best token's, in units of 2^-kWeightBits: integers, so that
/// their sums do not depend on the order. A row of 2^19 tokens cannot overflow.
inline constexpr int kWeightBits = 44;

struct RowSummary {
  float maximum = 0;   ///< meaningless unless valid
  bool valid = false;  ///< no NaN, no +infinity, and not everything -infinity
};

/// The random words of one block; that of the block's token i is words[i % 4][i / 4].
using BlockWords = std::array<std::array<uint32_t, kRowBlock / 4>, 4>;

struct RowKernels {
  std::string_view name;

  /// Maximum of each block into block_maxima[num_row_blocks(n)] and of the row, and the check of the row.
  RowSummary (*summarize)(const float* logits, int64_t num_tokens, float* block_maxima);

  /// row_weight of every token into weights[num_tokens]; returns their sum.
  uint64_t (*weigh)(const float* logits, int64_t num_tokens, const float* block_maxima, double scale,
                    double best_score, uint64_t* weights);

  /// noise_words (philox.h) of the 16 groups from first_group on; returns the greatest of the 64 words.
  uint32_t (*block_words)(uint64_t seed, int64_t position, uint32_t first_group, BlockWords& words);
};

/// The weight of one token: round(e^(logit * scale - best_score) * 2^kWeightBits); 0 for -infinity.
uint64_t row_weight(float logit, double scale, double best_score);

/// The variants that this CPU can run, the plainest first; all give the same bits.
std::span<const RowKernels* const> available_row_kernels();

/// The fastest of them.
const RowKernels& best_row_kernels();

}  // namespace hadal::engine
