#include "model/reproducible_math.h"

#include <cmath>

#include <gtest/gtest.h>

namespace hadal::model {
namespace {

TEST(ReproducibleMath, ExpIsWithinItsBound) {
  for (double x = -699.9; x < 700; x += 0.0137) {
    const double want = std::exp(x);
    ASSERT_LE(std::fabs(reproducible_exp(x) - want), 1e-14 * want) << x;
  }
  for (const double x : {0.0, -0.0, 1e-300, -1e-20, 1e-9, 0.34657359027997264, -0.34657359027997264}) {
    EXPECT_LE(std::fabs(reproducible_exp(x) - std::exp(x)), 1e-14) << x;
  }
  EXPECT_EQ(reproducible_exp(0.0), 1.0);
}

TEST(ReproducibleMath, LogIsWithinItsBound) {
  for (double x = 1e-300; x < 1e300; x *= 1.0371) {
    const double want = std::log(x);
    ASSERT_LE(std::fabs(reproducible_log(x) - want), 1e-14 * std::fabs(want)) << x;
  }
  // Where the result is close to zero the relative error still counts.
  for (double x = 0.5; x < 2; x += 0.000173) {
    const double want = std::log(x);
    ASSERT_LE(std::fabs(reproducible_log(x) - want), 1e-14 * std::fabs(want) + 1e-17) << x;
  }
  EXPECT_EQ(reproducible_log(1.0), 0.0);
  EXPECT_LE(std::fabs(reproducible_log(1.4142135623730951) - std::log(1.4142135623730951)), 1e-15);
}

TEST(ReproducibleMath, SincosIsWithinItsBound) {
  for (double x = -2097151; x < 2097152; x += 37.7713) {
    double sine = 0;
    double cosine = 0;
    reproducible_sincos(x, &sine, &cosine);
    ASSERT_LE(std::fabs(sine - std::sin(x)), 1e-14) << x;
    ASSERT_LE(std::fabs(cosine - std::cos(x)), 1e-14) << x;
  }
  // Around multiples of a quarter of pi, where quadrants meet.
  for (int i = -4000; i < 4000; ++i) {
    for (const double shift : {-1e-9, 0.0, 1e-9}) {
      const double x = static_cast<double>(i) * 0.78539816339744831 + shift;
      double sine = 0;
      double cosine = 0;
      reproducible_sincos(x, &sine, &cosine);
      ASSERT_LE(std::fabs(sine - std::sin(x)), 1e-14) << x;
      ASSERT_LE(std::fabs(cosine - std::cos(x)), 1e-14) << x;
    }
  }
}

TEST(ReproducibleMath, SigmoidSaturatesWithoutOverflow) {
  EXPECT_EQ(reproducible_sigmoid(0.0), 0.5);
  EXPECT_EQ(reproducible_sigmoid(1e300), 1.0);
  EXPECT_GE(reproducible_sigmoid(-1e300), 0.0);
  EXPECT_LE(reproducible_sigmoid(-1e300), 1e-300);
  for (double x = -30; x < 30; x += 0.01) {
    ASSERT_LE(std::fabs(reproducible_sigmoid(x) - 1.0 / (1.0 + std::exp(-x))), 1e-15) << x;
  }
}

}  // namespace
}  // namespace hadal::model
