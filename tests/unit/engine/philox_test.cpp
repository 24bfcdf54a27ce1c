#include "engine/philox.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace hadal::engine {
namespace {

// The known-answer vectors that Random123 publishes for philox4x32-10.
TEST(Philox, GivesThePublishedWords) {
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Token 0 at position p uses the word that other engines with this generator draw from stream p of the seed.
TEST(Philox, NoiseWordsFollowTheUsualLayoutOfSeedAndStream) {
  EXPECT_EQ(noise_words(0, 0, 0)[0], 0x6627e8d5U);
  EXPECT_EQ(noise_words(42, 30, 0)[0], 0x0d048bedU);
  EXPECT_EQ(noise_words(42, 31, 0)[0], 0x4429196dU);
  EXPECT_EQ(noise_words(42, 32, 0)[0], 0xa642fd96U);
  EXPECT_EQ(noise_words(42 + 1000000007ULL, 33, 0)[0], 0x87e64987U);
}

TEST(Philox, EveryBitOfSeedAndPositionCounts) {
  const PhiloxCounter base = noise_words(1, 1, 1);
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_NE(noise_words(1 ^ (1ULL << bit), 1, 1), base) << "seed bit " << bit;
    if (bit < 63) {
      EXPECT_NE(noise_words(1, static_cast<int64_t>(1 ^ (1ULL << bit)), 1), base) << "position bit " << bit;
    }
  }
  for (int bit = 0; bit < 32; ++bit) {
    EXPECT_NE(noise_words(1, 1, 1 ^ (1U << bit)), base) << "group bit " << bit;
  }
}

TEST(Gumbel, TakesTheWordsOfATokensGroupInOrder) {
  for (int32_t token = 0; token < 20; ++token) {
    EXPECT_EQ(gumbel(9, 1234567890123, token),
              gumbel_of_word(noise_words(9, 1234567890123, static_cast<uint32_t>(token / 4))[token % 4]));
  }
}

TEST(Gumbel, RisesStrictlyWithTheWord) {
  constexpr uint32_t kGreatest = std::numeric_limits<uint32_t>::max();
  const auto expect_rise = [](uint32_t word) {
    ASSERT_LT(gumbel_of_word(word), gumbel_of_word(word + 1)) << word;
  };
  for (uint32_t i = 0; i < 100000; ++i) {
    expect_rise(i);
    expect_rise(kGreatest - 1 - i);
    expect_rise(0x7fffffff - 50000 + i);
  }
  std::mt19937 random(3);
  for (int i = 0; i < 300000; ++i) {
    expect_rise(std::min<uint32_t>(static_cast<uint32_t>(random()), kGreatest - 1));
  }
}

TEST(Gumbel, StaysWithinItsBounds) {
  EXPECT_GT(gumbel_of_word(0), kMinGumbel);
  EXPECT_LT(gumbel_of_word(0), kMinGumbel + 1e-4);
  EXPECT_LT(gumbel_of_word(std::numeric_limits<uint32_t>::max()), kMaxGumbel);
  EXPECT_GT(gumbel_of_word(std::numeric_limits<uint32_t>::max()), kMaxGumbel - 1e-4);
}

TEST(Gumbel, HasTheMeanAndVarianceOfTheDistribution) {
  constexpr int kDraws = 400000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = gumbel(77, i / 1000, i % 1000);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 0.5772156649, 0.01);  // 5 standard errors
  EXPECT_NEAR(squares / kDraws - mean * mean, 1.6449340668 /* pi^2 / 6 */, 0.03);
}

}  // namespace
}  // namespace hadal::engine
