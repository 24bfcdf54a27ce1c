#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/philox.h"
#include "test_rows.h"

namespace hadal::engine {
namespace {

using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

SamplingParams make_params(double temperature, double top_p = 1, int64_t top_k = -1,
                           int64_t top_logprobs = -1, double min_p = 0) {
  SamplingParams params;
  params.temperature = temperature;
  params.top_p = top_p;
  params.top_k = top_k;
  params.top_logprobs = top_logprobs;
  params.min_p = min_p;
  return params;
}

OutputToken sample(const std::vector<float>& row, const SamplingParams& params, int64_t position = 0) {
  Sampler sampler;
  const Result<OutputToken> sampled = sampler.sample(row, params, position);
  EXPECT_TRUE(sampled) << sampled.error().message;
  return sampled.value_or(OutputToken{.token = -1, .logprob = 0, .top = {}});
}

bool same(const OutputToken& a, const OutputToken& b) {
  return a.token == b.token && a.logprob == b.logprob &&
         std::equal(a.top.begin(), a.top.end(), b.top.begin(), b.top.end(),
                    [](const TokenLogprob& x, const TokenLogprob& y) {
                      return x.token == y.token && x.logprob == y.logprob;
                    });
}

/// Tokens that a temperature and filters leave, with their probabilities, in plain double arithmetic.
std::vector<double> filtered_softmax(const std::vector<float>& row, const SamplingParams& params) {
  std::vector<int32_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return row[a] > row[b]; });
  std::vector<double> probabilities(row.size());
  double sum = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    probabilities[i] = std::exp((row[i] - row[order[0]]) / params.temperature);
    sum += probabilities[i];
  }
  double better = 0;
  double kept = 0;
  for (size_t place = 0; place < order.size(); ++place) {
    double& probability = probabilities[order[place]];
    const double own = probability / sum;
    const bool stays = better <= params.top_p + 1e-12 &&
                       (params.top_k < 0 || static_cast<int64_t>(place) < params.top_k) &&
                       probability >= params.min_p * (1 - 1e-9);
    better += own;
    probability = stays ? own : 0;
    kept += probability;
  }
  for (double& probability : probabilities) {
    probability /= kept;
  }
  return probabilities;
}

struct DistributionCase {
  const char* name;
  SamplingParams params;
};

class SamplerDistribution : public testing::TestWithParam<DistributionCase> {};

INSTANTIATE_TEST_SUITE_P(All, SamplerDistribution,
                         testing::Values(DistributionCase{"Plain", make_params(1)},
                                         DistributionCase{"Cool", make_params(0.5)},
                                         DistributionCase{"Hot", make_params(3)},
                                         DistributionCase{"TopP", make_params(1, 0.8)},
                                         DistributionCase{"TopK", make_params(1, 1, 4)},
                                         DistributionCase{"MinP", make_params(1, 1, -1, -1, 0.2)},
                                         DistributionCase{"All", make_params(1.5, 0.9, 6, -1, 0.05)}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(SamplerDistribution, IsTheFilteredSoftmax) {
  constexpr int kDraws = 1000000;
  const std::vector<float> row{1.5F, -0.5F, 2.25F, 0.75F, -4.0F, 2.25F, 0.0F, -kInfinity, 1.0F, -1.0F, 0.5F};
  const std::vector<double> expected = filtered_softmax(row, GetParam().params);
  SamplingParams params = GetParam().params;
  std::vector<int64_t> drawn(row.size(), 0);
  Sampler sampler;
  for (int i = 0; i < kDraws; ++i) {
    params.seed = 1000 + static_cast<uint64_t>(i % 1000);  // both along positions and across seeds
    ++drawn[sampler.sample(row, params, i / 1000)->token];
  }
  double chi_square = 0;
  double degrees = -1;
  for (size_t token = 0; token < row.size(); ++token) {
    if (expected[token] == 0) {
      EXPECT_EQ(drawn[token], 0) << "removed token " << token;
      continue;
    }
    const double mean = expected[token] * kDraws;
    const double difference = static_cast<double>(drawn[token]) - mean;
    chi_square += difference * difference / mean;
    ++degrees;
  }
  // The value that chance passes once in 10^5 (Wilson and Hilferty's approximation; the draws are fixed).
  const double spread = 2 / (9 * degrees);
  EXPECT_LT(chi_square, degrees * std::pow(1 - spread + 4.265 * std::sqrt(spread), 3));
  EXPECT_GE(degrees, 3);
}

TEST(Sampler, MinPKeepsTheBestTokenAndItsEquals) {
  const std::vector<float> row{-1, 3, 2.999F, 3, -kInfinity};
  for (const double temperature : {0.01, 0.3, 1.0, 7.0, 1e6}) {
    for (int64_t position = 0; position < 200; ++position) {
      const int32_t token = sample(row, make_params(temperature, 1, -1, -1, 1.0), position).token;
      EXPECT_TRUE(token == 1 || token == 3) << token;
    }
  }
  for (const double min_p : {1e-300, 1e-9}) {
    const auto plain = sample(row, make_params(1, 1, -1, 4), 3);
    EXPECT_TRUE(same(sample(row, make_params(1, 1, -1, 4, min_p), 3), plain)) << "removes nothing here";
  }
}

TEST(Sampler, AForcedTokenKeepsItsOwnLogprob) {
  const std::vector<float> row{0, 1, 2, 3};
  Sampler sampler;
  for (const double temperature : {0.0, 1.0}) {
    const SamplingParams params = make_params(temperature, 1, -1, 4);
    const OutputToken drawn = *sampler.sample(row, params, 0);
    const OutputToken forced = *sampler.sample(row, params, 0, 1);
    EXPECT_EQ(forced.token, 1);
    EXPECT_EQ(forced.logprob, drawn.top[2].logprob);
    EXPECT_EQ(forced.top.size(), 4U);
  }
  EXPECT_EQ(sampler.sample(row, make_params(1, 1, 2, 0), 0, 1)->logprob, kLowestLogprob) << "filtered out";
}

TEST(Sampler, DrawsTheGreatestNoisyScoreOfAllTokens) {
  Sampler sampler;
  std::mt19937 random(9);
  for (uint32_t trial = 0; trial < 300; ++trial) {
    std::vector<float> row = make_row(std::array{"flat", "coarse", "peaked", "masked"}[trial % 4], trial,
                                      1 + static_cast<int64_t>(random() % 5000));
    row.back() = 4;
    SamplingParams params = make_params(std::array{0.01, 0.3, 1.0, 5.0, 100.0, 1e6}[random() % 6]);
    params.seed = random();
    const int64_t position = trial;
    const double scale = 1 / params.temperature;
    int32_t expected = 0;
    double best = -kInfinity;
    for (size_t token = 0; token < row.size(); ++token) {
      const double score = row[token] * scale + gumbel(params.seed, position, static_cast<int32_t>(token));
      if (score > best) {
        best = score;
        expected = static_cast<int32_t>(token);
      }
    }
    EXPECT_EQ(sampler.sample(row, params, position)->token, expected) << trial;
  }
}

TEST(Sampler, FindsAnUnlikelyWinnerFarBelowTheFavourite) {
  Sampler sampler;
  std::vector<float> row(20000, 0.0F);
  row[777] = 12;  // 20,000 / e^12: about one draw in nine goes to the rest
  SamplingParams params = make_params(1);
  int others = 0;
  for (int64_t position = 0; position < 60; ++position) {
    int32_t expected = 777;
    for (int32_t token = 0; token < 20000; ++token) {
      if (row[token] + gumbel(0, position, token) > row[expected] + gumbel(0, position, expected)) {
        expected = token;
      }
    }
    EXPECT_EQ(sampler.sample(row, params, position)->token, expected);
    others += expected != 777 ? 1 : 0;
  }
  EXPECT_GE(others, 3);
}

TEST(Sampler, EqualScoresGoToTheLowerId) {
  // Beside scores of 10^43 all noise is rounded away.
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SamplingParams params = make_params(1e-5);
    params.seed = seed;
    std::vector<float> row(300, 1e38F);
    row[0] = -1;
    EXPECT_EQ(sample(row, params).token, 1);
    row[1] = row[2] = 0.9e38F;
    params.top_p = 0.5;
    EXPECT_EQ(sample(row, params).token, 3);
  }
}

TEST(Sampler, AFilterThatRemovesNothingChangesNothing) {
  for (uint32_t trial = 0; trial < 100; ++trial) {
    const std::vector<float> row = make_row("flat", trial, 700);
    SamplingParams plain = make_params(1, 1, -1, 3);
    plain.seed = trial;
    SamplingParams wide = plain;
    wide.top_k = 699;  // the least likely token of this row has next to no chance
    wide.top_p = 1 - 0x1p-53;
    EXPECT_EQ(sample(row, plain).token, sample(row, wide).token);
    EXPECT_NEAR(sample(row, plain).logprob, sample(row, wide).logprob, 1e-6);
  }
}

TEST(Sampler, GreedyTakesTheGreatestLogitAndTheLowestIdOnTies) {
  std::vector<float> row = make_row("flat", 1, 1000);
  row[700] = row[300] = row[999] = 9;
  for (const double temperature : {0.0, 9.9e-6}) {
    SamplingParams params = make_params(temperature, 0.1, 1);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      params.seed = seed;
      EXPECT_EQ(sample(row, params, static_cast<int64_t>(seed)).token, 300);
    }
  }
}

TEST(Sampler, GreedyLogprobsAreThoseOfThePlainSoftmax) {
  const std::vector<float> row = make_row("peaked", 3, 500);
  const OutputToken greedy = sample(row, make_params(0, 0.01, 1, 5));
  const std::vector<double> expected = filtered_softmax(row, make_params(1));
  ASSERT_EQ(greedy.top.size(), 5U);
  EXPECT_EQ(greedy.top[0].token, greedy.token);
  EXPECT_EQ(greedy.top[0].logprob, greedy.logprob);
  for (const TokenLogprob& entry : greedy.top) {
    EXPECT_NEAR(entry.logprob, std::log(expected[entry.token]), 1e-6);
  }
}

TEST(Sampler, SamplesFromTheSmallestTemperatureThatIsNotGreedy) {
  // At 1e-5 a difference of 0.01 is 1000 after the temperature: beyond all noise. Exact ties still vary.
  const std::vector<float> row{0.5F, 0.51F, 0.51F, 0.2F};
  SamplingParams params = make_params(1e-5);
  std::array<int, 4> drawn{};
  for (int64_t position = 0; position < 100; ++position) {
    ++drawn[sample(row, params, position).token];
  }
  EXPECT_EQ(drawn[0] + drawn[3], 0);
  EXPECT_GT(drawn[1], 20);
  EXPECT_GT(drawn[2], 20);
}

TEST(Sampler, LogprobsAreOfTheRenormalizedKeptTokens) {
  const std::vector<float> row = make_row("flat", 11, 400);
  const SamplingParams params = make_params(1.5, 0.7, 30, 40);
  const std::vector<double> expected = filtered_softmax(row, params);
  const OutputToken sampled = sample(row, params);
  EXPECT_NEAR(sampled.logprob, std::log(expected[sampled.token]), 1e-6);
  ASSERT_EQ(sampled.top.size(), 40U);
  double mass = 0;
  for (const TokenLogprob& entry : sampled.top) {
    if (expected[entry.token] == 0) {
      EXPECT_EQ(entry.logprob, kLowestLogprob);
    } else {
      EXPECT_NEAR(entry.logprob, std::log(expected[entry.token]), 1e-6);
      mass += std::exp(entry.logprob);
    }
  }
  EXPECT_NEAR(mass, 1, 1e-5);
  EXPECT_EQ(sampled.top.back().logprob, kLowestLogprob);  // 40 asked for, at most 30 kept
}

TEST(Sampler, LogprobsEndAtMinus9999) {
  const OutputToken sampled = sample({10, 9, -kInfinity}, make_params(1e-5, 1, -1, 3));
  EXPECT_EQ(sampled.token, 0);
  EXPECT_EQ(sampled.logprob, 0);
  EXPECT_EQ(sampled.top[1].logprob, kLowestLogprob);  // -100,000
  EXPECT_EQ(sampled.top[2].logprob, kLowestLogprob);
}

TEST(Sampler, GivesOnlyTheLogprobsThatWereAskedFor) {
  const std::vector<float> row = make_row("flat", 2, 50);
  EXPECT_EQ(sample(row, make_params(1)).logprob, 0);
  EXPECT_TRUE(sample(row, make_params(1)).top.empty());
  EXPECT_LT(sample(row, make_params(1, 1, -1, 0)).logprob, 0);
  EXPECT_TRUE(sample(row, make_params(1, 1, -1, 0)).top.empty());
  EXPECT_EQ(sample(row, make_params(1, 1, -1, 1000)).top.size(), 50U);
}

TEST(Sampler, AskingForLogprobsDoesNotChangeTheToken) {
  for (uint32_t trial = 0; trial < 100; ++trial) {
    const std::vector<float> row = make_row("flat", trial, 300);
    for (const SamplingParams& params : {make_params(1), make_params(0.8, 0.9), make_params(1, 1, 7)}) {
      SamplingParams with_logprobs = params;
      with_logprobs.top_logprobs = 5;
      EXPECT_EQ(sample(row, params, trial).token, sample(row, with_logprobs, trial).token);
    }
  }
}

TEST(Sampler, TakesDenormalLogitsForZeroOnEveryThread) {
  const float denormal = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(sample({-0.0F, denormal, 0.0F}, make_params(0)).token, 0);
  EXPECT_EQ(sample({-1, -denormal, denormal}, make_params(0)).token, 1);
  const OutputToken kept = sample({-1, -denormal, denormal, 0}, make_params(1, 1, 1));
  EXPECT_EQ(kept.token, 1);
}

TEST(Sampler, RefusesABadRowAndSaysWhere) {
  Sampler sampler;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const double temperature : {0.0, 1.0}) {
    const SamplingParams params = make_params(temperature);
    const auto message = [&](const std::vector<float>& row) {
      const Result<OutputToken> sampled = sampler.sample(row, params, 17);
      EXPECT_FALSE(sampled);
      EXPECT_EQ(sampled.error().code, ErrorCode::kInternal);
      return sampled.error().message;
    };
    EXPECT_THAT(message({1, 2, nan, 3}), HasSubstr("position 17: token 2 has nan"));
    EXPECT_THAT(message({1, kInfinity}), HasSubstr("token 1 has inf"));
    EXPECT_THAT(message({-kInfinity, -kInfinity}), HasSubstr("every token is masked"));
    EXPECT_THAT(message({}), HasSubstr("0 tokens"));
    EXPECT_TRUE(sampler.sample(std::vector<float>{1, 2}, params, 0)) << "usable after an error";
  }
}

TEST(Sampler, AMemoryOfEarlierRowsHasNoEffect) {
  Sampler used;
  std::mt19937 random(10);
  for (uint32_t trial = 0; trial < 300; ++trial) {
    const std::vector<float> row = make_row(std::array{"flat", "coarse", "peaked"}[random() % 3], trial,
                                            1 + static_cast<int64_t>(random() % 800));
    SamplingParams params =
        make_params(std::array{0.0, 0.7, 1.0}[random() % 3], std::array{1.0, 0.9, 0.2}[random() % 3],
                    std::array{-1, 3, 50}[random() % 3], static_cast<int64_t>(random() % 5) - 1);
    params.seed = random();
    EXPECT_TRUE(same(*used.sample(row, params, trial), sample(row, params, trial)));
  }
}

TEST(BatchSampler, GivesEachRowWhatItGetsAloneForAnyNumberOfThreads) {
  std::vector<std::vector<float>> logits;
  std::vector<SamplingParams> params;
  for (uint32_t i = 0; i < 23; ++i) {
    logits.push_back(make_row(std::array{"flat", "coarse", "peaked"}[i % 3], i, 1500));
    params.push_back(make_params(i % 5 == 0 ? 0 : 1, i % 2 == 0 ? 0.9 : 1, i % 3 == 0 ? 40 : -1, i % 4));
    params.back().seed = i;
  }
  logits[7][3] = std::numeric_limits<float>::quiet_NaN();
  std::vector<SampleRow> rows;
  for (size_t i = 0; i < logits.size(); ++i) {
    rows.push_back({logits[i], &params[i], static_cast<int64_t>(100 + i)});
  }
  for (const int num_threads : {1, 2, 3}) {
    ThreadPool pool(num_threads);
    BatchSampler sampler(pool);
    for (size_t count = 0; count <= rows.size(); ++count) {
      const std::span<const SampleRow> some = std::span(rows).last(count);
      std::vector<Result<OutputToken>> results(count);
      sampler.sample(some, results);
      for (size_t i = 0; i < count; ++i) {
        const size_t row = rows.size() - count + i;
        if (row == 7) {
          EXPECT_FALSE(results[i]);
        } else {
          ASSERT_TRUE(results[i]);
          EXPECT_TRUE(same(*results[i], sample(logits[row], params[row], static_cast<int64_t>(100 + row))));
        }
      }
    }
  }
}

}  // namespace
}  // namespace hadal::engine
