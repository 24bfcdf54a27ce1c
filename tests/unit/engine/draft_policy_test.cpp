#include "engine/draft_policy.h"

#include <gtest/gtest.h>

namespace hadal::engine {
namespace {

const CostCurve kFlat({{1, 1.0}, {64, 1.0}});

DraftStats seen(float confidence, int right, int wrong) {
  DraftStats stats;
  for (int i = 0; i < right + wrong; ++i) {
    stats.count_reached(0, confidence, i < right);
  }
  return stats;
}

TEST(DraftPolicy, BelievesConfidencesAsFarAsTheyWereTrue) {
  DraftPolicy policy({kFlat, {}});
  EXPECT_FLOAT_EQ(policy.corrected(0.95F), 0.95F);
  policy.learn(seen(0.95F, 10, 990));
  EXPECT_NEAR(policy.corrected(0.95F), 0.0175, 1e-3);
  EXPECT_FLOAT_EQ(policy.corrected(0.55F), 0.55F) << "another bin";
  // It forgets: a new truth wins in the end.
  for (int i = 0; i < 8; ++i) {
    policy.learn(seen(0.95F, 1000, 0));
  }
  EXPECT_GT(policy.corrected(0.95F), 0.9F);
}

TEST(DraftPolicy, WithoutCostsItGuessesAndVerifiesAll) {
  DraftPolicy policy({});
  policy.learn(seen(0.95F, 0, 1000));
  EXPECT_EQ(policy.corrected(0.95F), 0.95F);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(policy.wants_drafts());
    EXPECT_EQ(policy.choose(std::vector<std::vector<float>>{{0.0F, 0.0F}}, 9), std::vector<int64_t>{2});
  }
}

/// Steps out of 2000 in which it wants drafts.
int64_t steps_with_drafts(DraftPolicy& policy, const std::vector<float>& confidences) {
  int64_t count = 0;
  for (int i = 0; i < 2000; ++i) {
    const bool wants = policy.wants_drafts();
    count += wants ? 1 : 0;
    policy.choose(std::vector<std::vector<float>>{wants ? confidences : std::vector<float>()}, 9);
  }
  return count;
}

TEST(DraftPolicy, GivesUpWhatDoesNotPayButTriesAgain) {
  // Free rows; a draft pass costs a tenth, half, or three times of a step. Two tokens more at most.
  DraftPolicy cheap({kFlat, CostCurve({{1, 0.1}})});
  EXPECT_EQ(steps_with_drafts(cheap, {0.9F, 0.9F}), 2000);
  DraftPolicy fair({kFlat, CostCurve({{1, 0.5}})});
  EXPECT_EQ(steps_with_drafts(fair, {0.9F, 0.9F}), 2000);
  DraftPolicy dear({kFlat, CostCurve({{1, 3.0}})});
  const int64_t trials = steps_with_drafts(dear, {0.9F, 0.9F});
  EXPECT_GE(trials, 2000 / (DraftPolicy::kTrial + DraftPolicy::kPause) * DraftPolicy::kTrial);
  EXPECT_LE(trials, (2000 / (DraftPolicy::kTrial + DraftPolicy::kPause) + 1) * DraftPolicy::kTrial);
  // Cheap drafts that are never right do not pay either.
  DraftPolicy wrong({kFlat, CostCurve({{1, 0.1}})});
  EXPECT_LT(steps_with_drafts(wrong, {0.01F, 0.01F}), 200);
}

}  // namespace
}  // namespace hadal::engine
