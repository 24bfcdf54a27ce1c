// Which guesses are verified: hand-made curves and the reference's cases of spreading.

#include "engine/verification.h"

#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace hadal::engine {
namespace {

using Confidences = std::vector<std::vector<float>>;
using Counts = std::vector<int64_t>;

TEST(CostCurve, IsLinearBetweenItsPointsAndGoesOnAsItsEnd) {
  const CostCurve curve({{8, 3.0}, {2, 1.0}, {4, 2.0}});
  EXPECT_EQ(curve.seconds(1), 1.0);
  EXPECT_EQ(curve.seconds(2), 1.0);
  EXPECT_EQ(curve.seconds(3), 1.5);
  EXPECT_EQ(curve.seconds(4), 2.0);
  EXPECT_EQ(curve.seconds(6), 2.5);
  EXPECT_EQ(curve.seconds(12), 4.0);
  EXPECT_EQ(CostCurve({{4, 2.0}}).seconds(100), 2.0);
}

TEST(CostCurve, MoreRowsNeverCostLess) {
  const CostCurve curve({{1, 2.0}, {2, 1.5}, {3, 3.0}});
  EXPECT_EQ(curve.seconds(2), 2.0);
  EXPECT_EQ(curve.seconds(3), 3.0);
}

struct ChoiceCase {
  const char* name;
  std::vector<CostCurve::Point> curve;
  Confidences confidences;
  int64_t max_guesses;
  Counts want;
};

class ChooseVerification : public testing::TestWithParam<ChoiceCase> {};

TEST_P(ChooseVerification, TakesWhatPays) {
  const ChoiceCase& given = GetParam();
  EXPECT_EQ(choose_verification(given.confidences, given.max_guesses, CostCurve(given.curve)), given.want);
}

const std::vector<CostCurve::Point> kFlat{{1, 1.0}, {64, 1.0}};
const std::vector<CostCurve::Point> kProportional{{1, 1.0}, {64, 64.0}};
// Two rows cost as much as one, from the third on each costs as much as the first.
const std::vector<CostCurve::Point> kStep{{1, 1.0}, {2, 1.0}, {3, 2.0}, {64, 63.0}};

INSTANTIATE_TEST_SUITE_P(
    Curves, ChooseVerification,
    testing::Values(
        ChoiceCase{"FreeRowsTakeAllThatCanBeRight", kFlat, {{0.9F, 0.5F}, {0.1F}}, 100, {2, 1}},
        ChoiceCase{"AGuessThatCannotBeRightIsNotWorthAFreeRow", kFlat, {{0.9F, 0.0F, 0.9F}, {}}, 100, {1, 0}},
        ChoiceCase{"RowsAtFullPriceAreNeverWorthIt", kProportional, {{0.99F, 0.99F}, {0.9F}}, 100, {0, 0}},
        ChoiceCase{"OneFreeRowIsTaken", kStep, {{0.3F, 0.9F, 0.9F}}, 100, {1}},
        // 2 rows, then 2 tokens more for 0.9 s: 2.0/2, 2.9/2, 3.7/3
        ChoiceCase{"TheBestGuessOfSeveralSequences",
                   {{1, 1.0}, {2, 2.0}, {3, 2.0}, {4, 3.0}},
                   {{0.8F}, {0.9F}},
                   9,
                   {0, 1}},
        ChoiceCase{"EqualThroughputTakesTheFewest", {{1, 1.0}, {2, 1.5}, {3, 2.0}}, {{0.5F, 1.0F}}, 9, {0}},
        // The second guess alone would not pay, with the third it does.
        ChoiceCase{"LooksPastARowThatDoesNotPay", {{1, 1.0}, {2, 2.0}, {3, 2.0}}, {{0.9F, 0.9F}}, 9, {2}},
        ChoiceCase{"TheLimitHolds", kFlat, {{0.9F, 0.8F}, {0.7F, 0.6F}}, 3, {2, 1}},
        ChoiceCase{"NoRoom", kFlat, {{0.9F}}, 0, {0}}, ChoiceCase{"NegativeRoom", kFlat, {{0.9F}}, -3, {0}},
        ChoiceCase{"TiesGoToTheLowerSequence", kFlat, {{0.5F}, {0.5F}, {0.5F}}, 2, {1, 1, 0}},
        ChoiceCase{"WithoutACurveAllAreVerified", {}, {{0.01F, 0.01F}, {}, {0.5F}}, 100, {2, 0, 1}},
        ChoiceCase{"WithoutACurveTheLikelyOnesFirst", {}, {{0.01F, 0.01F}, {}, {0.5F}}, 2, {1, 0, 1}},
        ChoiceCase{"NoSequences", kFlat, {}, 5, {}},
        ChoiceCase{"ConfidencesThatAreNone",
                   kFlat,
                   {{std::numeric_limits<float>::quiet_NaN()}, {-1.0F}, {2.0F, 0.5F}},
                   9,
                   {0, 0, 2}}),
    [](const auto& test) { return test.param.name; });

TEST(SpreadVerification, IsThatOfTheReference) {
  std::ifstream file(HADAL_ENGINE_TEST_DATA "/schedule.json");
  const auto cases = nlohmann::json::parse(file);
  ASSERT_EQ(cases.size(), 40U);
  for (const auto& given : cases) {
    const auto& listed = given.at("confidence");
    size_t steps = 0;
    for (const auto& row : listed) {
      steps = std::max(steps, row.is_null() ? 0 : row.size());
    }
    Confidences confidences;
    for (const auto& row : listed) {
      // A finished sequence: no chance at all, but it takes rows when nothing else is left.
      confidences.push_back(row.is_null() ? std::vector<float>(steps, 0.0F) : row.get<std::vector<float>>());
    }
    const auto total = given.at("total_rows").get<int64_t>();
    Counts rows = spread_verification(confidences, total - static_cast<int64_t>(confidences.size()));
    for (int64_t& count : rows) {
      ++count;
    }
    if (steps > 0) {
      EXPECT_EQ(rows, given.at("rows").get<Counts>()) << given.dump();
    }
  }
}

}  // namespace
}  // namespace hadal::engine
