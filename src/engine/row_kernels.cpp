#include "engine/row_kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "engine/fixed_math.h"
#include "engine/philox.h"

// Inlined into one function per instruction set, which decides how it is vectorized. Loops run over lanes of
// small arrays, so that the order of operations is visible and no floating-point sum is reordered.
#define HADAL_ROW_BODY [[gnu::always_inline]] inline

namespace hadal::engine {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// e^x of this and less rounds to the weight 0.
constexpr double kWeightlessBelow = -32.0;

/// Distance of a token's score from the best score, cut where fixed_exp needs it (the weight is 0 long
/// before).
HADAL_ROW_BODY double score_distance(float logit, double scale, double best_score) {
  const double distance = static_cast<double>(logit) * scale - best_score;
  return distance > -700.0 ? distance : -700.0;
}

HADAL_ROW_BODY uint64_t weight_at(double distance) {
  // Adding 2^52 leaves the rounded integer in the mantissa; the result is below 2^45.
  const double shifted =
      fixed_exp_in_range(distance) * static_cast<double>(uint64_t{1} << kWeightBits) + 0x1p52;
  return std::bit_cast<uint64_t>(shifted) & 0x000fffffffffffff;
}

// Vectors of the compilers' own kind: the optimizer alone does not vectorize a maximum, which it may not
// reorder (here NaN never wins and the rest is the same in any order). 16 bytes in every variant, because GCC
// splits wider ones than the target has into scalars; the pass is bound by memory anyway.
using FloatLanes [[gnu::vector_size(16)]] = float;
using MaskLanes [[gnu::vector_size(16)]] = int32_t;

HADAL_ROW_BODY FloatLanes load_lanes(const float* values) {
  FloatLanes lanes;
  std::memcpy(&lanes, values, sizeof(lanes));
  return lanes;
}

HADAL_ROW_BODY FloatLanes greater_lanes(FloatLanes a, FloatLanes b) {
  return a > b ? a : b;
}

HADAL_ROW_BODY MaskLanes finite_or_minus_infinity(FloatLanes x) {
  return x <= FloatLanes{} + std::numeric_limits<float>::max();
}

struct BlockSummary {
  float maximum;
  MaskLanes valid;
};

HADAL_ROW_BODY BlockSummary summarize_block(const float* logits) {
  FloatLanes maxima = FloatLanes{} + kMinusInfinity;
  MaskLanes valid = ~MaskLanes{};
  for (int64_t i = 0; i < kRowBlock; i += 16) {
    const FloatLanes x0 = load_lanes(logits + i);
    const FloatLanes x1 = load_lanes(logits + i + 4);
    const FloatLanes x2 = load_lanes(logits + i + 8);
    const FloatLanes x3 = load_lanes(logits + i + 12);
    // The new value first: the comparison is false for a NaN, which then drops out.
    maxima = greater_lanes(x3, greater_lanes(x2, greater_lanes(x1, greater_lanes(x0, maxima))));
    valid &= finite_or_minus_infinity(x0) & finite_or_minus_infinity(x1) & finite_or_minus_infinity(x2) &
             finite_or_minus_infinity(x3);
  }
  const float pair02 = maxima[0] > maxima[2] ? maxima[0] : maxima[2];
  const float pair13 = maxima[1] > maxima[3] ? maxima[1] : maxima[3];
  return {pair02 > pair13 ? pair02 : pair13, valid};
}

HADAL_ROW_BODY void copy_partial_block(const float* logits, int64_t count, float* block) {
  for (int64_t i = 0; i < kRowBlock; ++i) {
    block[i] = i < count ? logits[i] : kMinusInfinity;
  }
}

HADAL_ROW_BODY RowSummary summarize_body(const float* logits, int64_t num_tokens, float* block_maxima) {
  const int64_t num_whole = num_tokens / kRowBlock;
  float maximum = kMinusInfinity;
  MaskLanes valid = ~MaskLanes{};
  for (int64_t block = 0; block < num_whole; ++block) {
    const BlockSummary found = summarize_block(logits + block * kRowBlock);
    block_maxima[block] = found.maximum;
    maximum = found.maximum > maximum ? found.maximum : maximum;
    valid &= found.valid;
  }
  if (num_tokens % kRowBlock != 0) {
    float rest[kRowBlock];
    copy_partial_block(logits + num_whole * kRowBlock, num_tokens % kRowBlock, rest);
    const BlockSummary found = summarize_block(rest);
    block_maxima[num_whole] = found.maximum;
    maximum = found.maximum > maximum ? found.maximum : maximum;
    valid &= found.valid;
  }
  return {maximum, (valid[0] & valid[1] & valid[2] & valid[3]) != 0 && maximum > kMinusInfinity};
}

HADAL_ROW_BODY uint64_t weigh_block(const float* logits, double scale, double best_score, uint64_t* weights) {
  // Two loops: in one, the cut of the distance becomes a branch and the loop is not vectorized.
  double distances[kRowBlock];
  for (int64_t i = 0; i < kRowBlock; ++i) {
    distances[i] = score_distance(logits[i], scale, best_score);
  }
  uint64_t sum = 0;
  for (int64_t i = 0; i < kRowBlock; ++i) {
    weights[i] = weight_at(distances[i]);
    sum += weights[i];
  }
  return sum;
}

HADAL_ROW_BODY uint64_t weigh_body(const float* logits, int64_t num_tokens, const float* block_maxima,
                                   double scale, double best_score, uint64_t* weights) {
  const int64_t num_blocks = num_row_blocks(num_tokens);
  uint64_t sum = 0;
  for (int64_t block = 0; block < num_blocks; ++block) {
    const int64_t begin = block * kRowBlock;
    const int64_t count = std::min(kRowBlock, num_tokens - begin);
    if (static_cast<double>(block_maxima[block]) * scale - best_score < kWeightlessBelow) {
      std::fill_n(weights + begin, count, uint64_t{0});
    } else if (count == kRowBlock) {
      sum += weigh_block(logits + begin, scale, best_score, weights + begin);
    } else {
      float rest[kRowBlock];
      uint64_t rest_weights[kRowBlock];
      copy_partial_block(logits + begin, count, rest);
      sum += weigh_block(rest, scale, best_score, rest_weights);
      std::copy_n(rest_weights, count, weights + begin);
    }
  }
  return sum;
}

HADAL_ROW_BODY uint32_t block_words_body(uint64_t seed, int64_t position, uint32_t first_group,
                                         BlockWords& words) {
  constexpr int kLanes = kRowBlock / 4;
  const auto place = static_cast<uint64_t>(position);
  uint32_t c0[kLanes];
  uint32_t c1[kLanes];
  uint32_t c2[kLanes];
  uint32_t c3[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    c0[lane] = first_group + static_cast<uint32_t>(lane);
    c1[lane] = 0;
    c2[lane] = static_cast<uint32_t>(place);
    c3[lane] = static_cast<uint32_t>(place >> 32);
  }
  auto key0 = static_cast<uint32_t>(seed);
  auto key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint64_t product0 = static_cast<uint64_t>(kPhiloxMultiplier0) * c0[lane];
      const uint64_t product1 = static_cast<uint64_t>(kPhiloxMultiplier1) * c2[lane];
      c0[lane] = static_cast<uint32_t>(product1 >> 32) ^ c1[lane] ^ key0;
      c1[lane] = static_cast<uint32_t>(product1);
      c2[lane] = static_cast<uint32_t>(product0 >> 32) ^ c3[lane] ^ key1;
      c3[lane] = static_cast<uint32_t>(product0);
    }
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  uint32_t greatest = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    words[0][lane] = c0[lane];
    words[1][lane] = c1[lane];
    words[2][lane] = c2[lane];
    words[3][lane] = c3[lane];
    const uint32_t pair01 = c0[lane] > c1[lane] ? c0[lane] : c1[lane];
    const uint32_t pair23 = c2[lane] > c3[lane] ? c2[lane] : c3[lane];
    const uint32_t all = pair01 > pair23 ? pair01 : pair23;
    greatest = all > greatest ? all : greatest;
  }
  return greatest;
}

// The instruction sets. No FMA is used even where the set has it: -ffp-contract=off.
#define HADAL_ROW_VARIANT(suffix, target)                                                              \
  target RowSummary summarize_##suffix(const float* logits, int64_t num_tokens, float* block_maxima) { \
    return summarize_body(logits, num_tokens, block_maxima);                                           \
  }                                                                                                    \
  target uint64_t weigh_##suffix(const float* logits, int64_t num_tokens, const float* block_maxima,   \
                                 double scale, double best_score, uint64_t* weights) {                 \
    return weigh_body(logits, num_tokens, block_maxima, scale, best_score, weights);                   \
  }                                                                                                    \
  target uint32_t block_words_##suffix(uint64_t seed, int64_t position, uint32_t first_group,          \
                                       BlockWords& words) {                                            \
    return block_words_body(seed, position, first_group, words);                                       \
  }                                                                                                    \
  constexpr RowKernels kKernels_##suffix {                                                             \
    #suffix, summarize_##suffix, weigh_##suffix, block_words_##suffix                                  \
  }

HADAL_ROW_VARIANT(baseline, );
HADAL_ROW_VARIANT(avx2, [[gnu::target("avx2")]]);
HADAL_ROW_VARIANT(avx512, [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl")]]);

struct Available {
  std::array<const RowKernels*, 3> variants{};
  size_t count = 0;
};

Available detect() {
  Available found;
  found.variants[found.count++] = &kKernels_baseline;
  if (__builtin_cpu_supports("avx2")) {
    found.variants[found.count++] = &kKernels_avx2;
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    found.variants[found.count++] = &kKernels_avx512;
  }
  return found;
}

}  // namespace

uint64_t row_weight(float logit, double scale, double best_score) {
  return weight_at(score_distance(logit, scale, best_score));
}

std::span<const RowKernels* const> available_row_kernels() {
  static const Available found = detect();
  return {found.variants.data(), found.count};
}

const RowKernels& best_row_kernels() {
  return *available_row_kernels().back();
}

}  // namespace hadal::engine
