// The precisions: their names, and how far the served one is from exact arithmetic.

#include "model/precision.h"

#include <cmath>
#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden_case.h"
#include "sequence_run.h"
#include "tiny_models.h"

namespace hadal::model {
namespace {

TEST(Precision, NamesAreParsed) {
  for (const auto mode :
       {PrecisionMode::kProduct, PrecisionMode::kF32, PrecisionMode::kF32Kvq, PrecisionMode::kQat}) {
    EXPECT_EQ(parse_precision(precision_name(mode)).value(), mode);
  }
  const auto unknown = parse_precision("bf16");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_THAT(unknown.error().message, testing::HasSubstr("'bf16'"));
}

/// Mean |difference| of all logits at all positions of the goldens' prompts between f32 and another
/// precision.
double mean_difference(const std::string& checkpoint, PrecisionMode precision) {
  const auto exact = load_tiny(checkpoint, {.precision = PrecisionMode::kF32});
  const auto rounded = load_tiny(checkpoint, {.precision = precision});
  double total = 0;
  size_t count = 0;
  for (const auto& run : all_golden_runs()) {
    if (run.mode != PrecisionMode::kF32 || !run.name.starts_with(checkpoint + "/")) {
      continue;
    }
    const auto ids = GoldenCase::load(run.name).token_ids();
    const auto want = whole_run(*exact, ids);
    const auto got = whole_run(*rounded, ids);
    for (size_t i = 0; i < want.size(); ++i) {
      total += std::fabs(static_cast<double>(want[i]) - static_cast<double>(got[i]));
    }
    count += want.size();
  }
  EXPECT_GT(count, 0U);
  return total / static_cast<double>(count);
}

class PrecisionTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(All, PrecisionTest,
                         testing::Values("tiny", "tiny-engram", "tiny-long", "tiny-mini", "tiny-smooth",
                                         "tiny-spec"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(PrecisionTest, TheServedPrecisionIsAtLeastAsCloseToF32AsTheOfficialRegime) {
  const double served = mean_difference(GetParam(), PrecisionMode::kProduct);
  const double official = mean_difference(GetParam(), PrecisionMode::kQat);
  std::cout << "[     NOTE ] " << GetParam() << ": mean |logit difference| to f32: default " << served
            << ", qat " << official << "\n";
  EXPECT_LE(served, official);
}

}  // namespace
}  // namespace hadal::model
