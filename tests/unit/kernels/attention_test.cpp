// Attention and index scores against float64.

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "test_data.h"
#include "test_weights.h"

namespace hadal::kernels {
namespace {

struct Problem {
  int64_t heads = 0;
  int64_t num_keys = 0;
  int64_t dim = 0;
  float scale = 0;
  std::vector<float> q, keys, sinks;
};

Problem make_problem(Random& random, int64_t heads, int64_t num_keys, int64_t dim, Spread spread) {
  return {.heads = heads,
          .num_keys = num_keys,
          .dim = dim,
          .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim))),
          .q = make_values(random, heads * dim),
          .keys = make_values(random, num_keys * dim, spread),
          .sinks = make_values(random, heads)};
}

class AttentionTest : public IsaTest {
 protected:
  std::vector<float> attend(const Problem& p) const {
    std::vector<float> scores(static_cast<size_t>(p.heads * ((p.num_keys + 15) / 16 * 16)));
    std::vector<float> out(static_cast<size_t>(p.heads * p.dim), 5.0F);
    kernels().attend(p.q.data(), p.keys.data(), p.num_keys, p.heads, p.dim, p.scale, p.sinks.data(),
                     scores.data(), out.data());
    return out;
  }
};

INSTANTIATE_TEST_SUITE_P(Isas, AttentionTest, testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512),
                         isa_test_name);

void expect_close(const Problem& p, const std::vector<float>& out) {
  for (int64_t h = 0; h < p.heads; ++h) {
    const float* q = p.q.data() + h * p.dim;
    std::vector<double> scores;
    double score_error = 0;
    double highest = static_cast<double>(p.sinks[h]);
    for (int64_t k = 0; k < p.num_keys; ++k) {
      double dot = 0;
      double magnitude = 0;
      for (int64_t i = 0; i < p.dim; ++i) {
        const double product = static_cast<double>(q[i]) * static_cast<double>(p.keys[k * p.dim + i]);
        dot += product;
        magnitude += std::fabs(product);
      }
      scores.push_back(dot * static_cast<double>(p.scale));
      highest = std::max(highest, scores.back());
      score_error = std::max(score_error, (static_cast<double>(p.dim) / 16 + 6) * kUnit * magnitude *
                                              static_cast<double>(p.scale));
    }
    double total = std::exp(static_cast<double>(p.sinks[h]) - highest);
    for (const double score : scores) {
      total += std::exp(score - highest);
    }
    for (int64_t i = 0; i < p.dim; ++i) {
      double want = 0;
      double magnitude = 0;
      for (int64_t k = 0; k < p.num_keys; ++k) {
        const double product =
            std::exp(scores[k] - highest) / total * static_cast<double>(p.keys[k * p.dim + i]);
        want += product;
        magnitude += std::fabs(product);
      }
      const double relative = 4 * score_error + (static_cast<double>(p.num_keys) + 32) * kUnit;
      ASSERT_TRUE(within(want, out[h * p.dim + i], relative * magnitude + 1e-30))
          << "head " << h << ", channel " << i;
    }
  }
}

TEST_P(AttentionTest, IsCloseToFloat64) {
  Random random(51);
  for (const Spread spread : {Spread::kNormal, Spread::kHeavyTailed, Spread::kZeroBlocks}) {
    for (const int64_t heads : {1, 5, 8}) {
      for (const int64_t num_keys : {1, 2, 15, 16, 17, 130}) {
        for (const int64_t dim : {16, 64, 96}) {
          SCOPED_TRACE(testing::Message()
                       << spread_name(spread) << ", " << heads << " heads, " << num_keys << " keys, " << dim);
          const Problem problem = make_problem(random, heads, num_keys, dim, spread);
          expect_close(problem, attend(problem));
        }
      }
    }
  }
}

TEST_P(AttentionTest, WithoutKeysGivesZeros) {
  Random random(52);
  const Problem problem = make_problem(random, 5, 0, 32, Spread::kNormal);
  EXPECT_TRUE(same_bits(std::vector<float>(5 * 32, 0.0F), attend(problem)));
}

TEST_P(AttentionTest, TheSinkTakesItsShareAndTakesPartInTheMaximum) {
  Random random(53);
  Problem problem = make_problem(random, 1, 20, 32, Spread::kNormal);
  problem.sinks[0] = 200.0F;  // far above every score: nothing is left for the keys, and nothing overflows
  for (const float value : attend(problem)) {
    EXPECT_TRUE(within(0, value, 1e-30));
  }
  problem.sinks[0] = -1e30F;  // no sink: probabilities add up to 1
  std::fill(problem.keys.begin(), problem.keys.end(), 1.0F);
  for (const float value : attend(problem)) {
    EXPECT_TRUE(within(1, value, 40 * kUnit));
  }
}

TEST_P(AttentionTest, ExtremeScoresPickOneKey) {
  Random random(54);
  Problem problem = make_problem(random, 4, 33, 32, Spread::kNormal);
  for (float& value : problem.q) {
    value *= 1e6F;
  }
  const auto out = attend(problem);
  for (int64_t h = 0; h < problem.heads; ++h) {
    int64_t best = 0;
    double highest = -1e300;
    for (int64_t k = 0; k < problem.num_keys; ++k) {
      double dot = 0;
      for (int64_t i = 0; i < problem.dim; ++i) {
        dot += static_cast<double>(problem.q[h * problem.dim + i]) *
               static_cast<double>(problem.keys[k * problem.dim + i]);
      }
      if (dot > highest) {
        highest = dot;
        best = k;
      }
    }
    EXPECT_TRUE(same_bits(std::span(problem.keys).subspan(static_cast<size_t>(best * problem.dim), 32),
                          std::span(out).subspan(static_cast<size_t>(h * problem.dim), 32)));
  }
}

TEST_P(AttentionTest, AHeadDoesNotDependOnTheOthers) {
  Random random(55);
  for (const int64_t heads : {2, 3, 4, 7, 9}) {
    const Problem all = make_problem(random, heads, 45, 48, Spread::kHeavyTailed);
    const auto together = attend(all);
    for (int64_t h = 0; h < heads; ++h) {
      Problem one = all;
      one.heads = 1;
      one.q.assign(all.q.begin() + h * 48, all.q.begin() + (h + 1) * 48);
      one.sinks.assign(1, all.sinks[h]);
      EXPECT_TRUE(same_bits(attend(one), std::span(together).subspan(static_cast<size_t>(h * 48), 48)));
    }
  }
}

/// The tile layout of index keys, made key by key.
std::vector<float> tiles_of(const Kernels& kernels, const std::vector<float>& keys, int64_t num_keys,
                            int64_t dim) {
  std::vector<float> tiles(static_cast<size_t>((num_keys + 15) / 16 * 16 * dim));
  for (int64_t first = 0; first < num_keys; first += 16) {
    kernels.transpose_keys(keys.data() + first * dim, std::min<int64_t>(16, num_keys - first), dim,
                           tiles.data() + first * dim);
  }
  return tiles;
}

TEST_P(AttentionTest, TransposedKeysAreZeroPastTheCount) {
  Random random(56);
  for (int64_t count = 0; count <= 16; ++count) {
    const auto keys = make_values(random, count * 40);
    std::vector<float> tile(16 * 40, 5.0F);
    kernels().transpose_keys(keys.data(), count, 40, tile.data());
    for (int64_t i = 0; i < 40; ++i) {
      for (int64_t l = 0; l < 16; ++l) {
        ASSERT_EQ(tile[i * 16 + l], l < count ? keys[l * 40 + i] : 0.0F);
      }
    }
  }
}

TEST_P(AttentionTest, IndexScoresAreCloseToFloat64) {
  Random random(57);
  for (const Spread spread : {Spread::kNormal, Spread::kHeavyTailed, Spread::kZeroBlocks}) {
    for (const int64_t heads : {1, 5, 24, 32}) {
      for (const int64_t num_keys : {1, 16, 21}) {
        for (const int64_t dim : {32, 128}) {
          const auto q = make_values(random, heads * dim, spread);
          const auto weights = make_values(random, heads);
          const auto keys = make_values(random, num_keys * dim, spread);
          std::vector<float> scores(static_cast<size_t>(num_keys + 1), 5.0F);
          kernels().index_scores(q.data(), weights.data(), heads, dim,
                                 tiles_of(kernels(), keys, num_keys, dim).data(), num_keys, 0.25F,
                                 scores.data());
          for (int64_t g = 0; g < num_keys; ++g) {
            double want = 0;
            double magnitude = 0;
            for (int64_t h = 0; h < heads; ++h) {
              double dot = 0;
              double dot_magnitude = 0;
              for (int64_t i = 0; i < dim; ++i) {
                const double product =
                    static_cast<double>(q[h * dim + i]) * static_cast<double>(keys[g * dim + i]);
                dot += product;
                dot_magnitude += std::fabs(product);
              }
              want += static_cast<double>(weights[h]) * std::max(dot, 0.0) * 0.25;
              magnitude += std::fabs(static_cast<double>(weights[h])) * dot_magnitude * 0.25;
            }
            ASSERT_TRUE(
                within(want, scores[g], (34.0 + static_cast<double>(dim / 32 + heads)) * kUnit * magnitude));
          }
          EXPECT_EQ(scores[num_keys], 5.0F);
        }
      }
    }
  }
}

TEST_P(AttentionTest, AnIndexScoreDependsOnItsOwnKeyOnly) {
  Random random(58);
  const int64_t dim = 64;
  const auto q = make_values(random, 6 * dim);
  const auto weights = make_values(random, 6);
  const auto keys = make_values(random, 35 * dim, Spread::kHeavyTailed);
  std::vector<float> together(35);
  kernels().index_scores(q.data(), weights.data(), 6, dim, tiles_of(kernels(), keys, 35, dim).data(), 35,
                         1.0F, together.data());
  for (int64_t g = 0; g < 35; ++g) {
    const std::vector<float> key(keys.begin() + g * dim, keys.begin() + (g + 1) * dim);
    float alone = 0;
    kernels().index_scores(q.data(), weights.data(), 6, dim, tiles_of(kernels(), key, 1, dim).data(), 1, 1.0F,
                           &alone);
    EXPECT_EQ(std::bit_cast<uint32_t>(alone), std::bit_cast<uint32_t>(together[g]));
  }
}

TEST_P(AttentionTest, Fp4ProductsOfABlockAddExactlyInAnyOrder) {
  Random random(59);
  const int64_t dim = 128;
  for (int round = 0; round < 20; ++round) {
    std::vector<float> q;
    std::vector<float> key;
    for (int64_t i = 0; i < dim; ++i) {
      // Scales of a block are powers of two, one for each side.
      q.push_back(static_cast<float>(
          std::ldexp(e2m1_value(static_cast<uint8_t>(random.below(16))), static_cast<int>(i / 32 * 7) - 9)));
      key.push_back(static_cast<float>(
          std::ldexp(e2m1_value(static_cast<uint8_t>(random.below(16))), static_cast<int>(i / 32 * 5) - 30)));
    }
    const float weight = random.normal();
    const auto score = [&] {
      float result = 0;
      kernels().index_scores(q.data(), &weight, 1, dim, tiles_of(kernels(), key, 1, dim).data(), 1, 1.0F,
                             &result);
      return result;
    };
    const float want = score();
    for (int64_t block = 0; block < dim; block += 32) {
      for (int64_t i = 31; i > 0; --i) {
        const int64_t other = random.below(i + 1);
        std::swap(q[block + i], q[block + other]);
        std::swap(key[block + i], key[block + other]);
      }
    }
    EXPECT_EQ(std::bit_cast<uint32_t>(score()), std::bit_cast<uint32_t>(want));
  }
}

}  // namespace
}  // namespace hadal::kernels
