#include "engine/draft_stats.h"

#include <gtest/gtest.h>

namespace hadal::engine {
namespace {

TEST(DraftStats, CalibrationErrorIsTheDistanceOfConfidenceAndTruth) {
  DraftStats stats;
  EXPECT_EQ(stats.calibration_error(), 0);
  // Bin [0.7, 0.8): 4 guesses of 0.75, 3 right: no error. Bin [0.2, 0.3): 2 guesses of 0.25, both right.
  for (int i = 0; i < 4; ++i) {
    stats.count_reached(0, 0.75F, i != 0);
  }
  EXPECT_NEAR(stats.calibration_error(), 0, 1e-12);
  stats.count_reached(1, 0.25F, true);
  stats.count_reached(1, 0.25F, true);
  EXPECT_NEAR(stats.calibration_error(), 0.75 * 2 / 6, 1e-12);
}

TEST(DraftStats, TheEndsOfTheRangeHaveABin) {
  DraftStats stats;
  stats.count_reached(0, 0.0F, false);
  stats.count_reached(0, 1.0F, true);
  EXPECT_EQ(stats.bins.front().count, 1U);
  EXPECT_EQ(stats.bins.back().count, 1U);
  EXPECT_EQ(stats.calibration_error(), 0);
}

TEST(DraftStats, AddUp) {
  DraftStats a;
  a.positions[0] = {5, 4, 3, 2};
  a.count_reached(2, 0.5F, true);
  DraftStats b = a;
  b += a;
  EXPECT_EQ(b.total().drafted, 10U);
  EXPECT_EQ(b.total().verified, 8U);
  EXPECT_EQ(b.total().reached, 8U);
  EXPECT_EQ(b.total().accepted, 6U);
  EXPECT_EQ(b.bins[5].count, 2U);
  EXPECT_EQ(b.bins[5].confidence_sum, 1.0);
}

}  // namespace
}  // namespace hadal::engine
