#include "engine/fixed_math.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace hadal::engine {
namespace {

// The 80-bit functions of the C library are good to 2^-63, far below what is asked here.
double relative_error(double found, long double expected) {
  return static_cast<double>(std::abs((static_cast<long double>(found) - expected) / expected));
}

TEST(FixedLog, IsWithin2ToTheMinus51OfTheTruth) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-300, 300);
  std::uniform_real_distribution<double> near_one(0.5, 2);
  for (int i = 0; i < 200000; ++i) {
    const double x = i % 2 == 0 ? std::exp2(exponent(random)) : near_one(random);
    ASSERT_LT(relative_error(fixed_log(x), std::log(static_cast<long double>(x))), 0x1p-51) << x;
  }
}

TEST(FixedLog, KeepsItsPrecisionNextToOne) {
  for (int i = 1; i <= 52; ++i) {
    for (const double x : {1 + std::exp2(-i), 1 - std::exp2(-i)}) {
      ASSERT_LT(relative_error(fixed_log(x), std::log(static_cast<long double>(x))), 0x1p-51) << x;
    }
  }
  EXPECT_EQ(fixed_log(1.0), 0.0);
}

TEST(FixedExp, IsWithin2ToTheMinus46OfTheTruth) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> large(-700, 0);
  std::uniform_real_distribution<double> small(-1, 0);
  for (int i = 0; i < 200000; ++i) {
    const double x = i % 2 == 0 ? large(random) : small(random);
    ASSERT_LT(relative_error(fixed_exp(x), std::exp(static_cast<long double>(x))), 0x1p-46) << x;
  }
  EXPECT_EQ(fixed_exp(0.0), 1.0);
}

TEST(FixedExp, StopsFallingFarBelowZero) {
  EXPECT_EQ(fixed_exp(-701.0), fixed_exp(-700.0));
  EXPECT_EQ(fixed_exp(-std::numeric_limits<double>::infinity()), fixed_exp(-700.0));
  EXPECT_LT(fixed_exp(-700.0), 1e-303);
}

}  // namespace
}  // namespace hadal::engine
