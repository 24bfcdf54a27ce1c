#include "model/top_k.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tiny_models.h"

namespace hadal::model {
namespace {

using testing::ElementsAre;

std::vector<int32_t> select(const std::vector<float>& scores, int64_t k) {
  std::vector<uint64_t> scratch;
  std::vector<int32_t> out;
  select_top(scores, k, scratch, out);
  return out;
}
std::vector<int32_t> rank(const std::vector<float>& scores, int64_t k) {
  std::vector<uint64_t> scratch;
  std::vector<int32_t> out(static_cast<size_t>(k));
  rank_top(scores, k, scratch, out.data());
  return out;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(TopK, SelectsInAscendingOrderOfPosition) {
  EXPECT_THAT(select({1, 5, 3, 4, 2}, 2), ElementsAre(1, 3));
  EXPECT_THAT(select({-1, -5, -3}, 2), ElementsAre(0, 2));
  EXPECT_THAT(select({1, 2}, 5), ElementsAre(0, 1));
  EXPECT_THAT(select({}, 5), ElementsAre());
  EXPECT_THAT(select({1, 2, 3}, 3), ElementsAre(0, 1, 2));
}

TEST(TopK, RanksTheBestFirst) {
  EXPECT_THAT(rank({1, 5, 3, 4, 2}, 3), ElementsAre(1, 3, 2));
  EXPECT_THAT(rank({0.5F, -2, 7}, 3), ElementsAre(2, 0, 1));
}

TEST(TopK, TiesPreferTheLowerPosition) {
  EXPECT_THAT(select({1, 2, 2, 2, 1}, 2), ElementsAre(1, 2));
  EXPECT_THAT(rank({2, 1, 2, 2}, 3), ElementsAre(0, 2, 3));
  EXPECT_THAT(select({0.0F, -0.0F, 0.0F}, 1), ElementsAre(0));
  EXPECT_THAT(select({-0.0F, 0.0F, 0.0F}, 2), ElementsAre(0, 1));
}

TEST(TopK, InfinityRanksFirstAndNanLast) {
  EXPECT_THAT(rank({kNan, -kInfinity, 0, kInfinity, -kNan}, 5), ElementsAre(3, 2, 1, 0, 4));
  EXPECT_THAT(select({kNan, -kInfinity, kNan}, 1), ElementsAre(1));
}

TEST(TopK, AppendsToWhatIsThere) {
  std::vector<uint64_t> scratch;
  std::vector<int32_t> out{9};
  select_top(std::vector<float>{3, 1, 2}, 2, scratch, out);
  EXPECT_THAT(out, ElementsAre(9, 0, 2));
}

TEST(TopK, AgreesWithAStableSort) {
  Choices choices(80);
  for (int round = 0; round < 200; ++round) {
    const int64_t count = 1 + choices.below(300);
    const int64_t k = 1 + choices.below(count);
    std::vector<float> scores;
    for (int64_t i = 0; i < count; ++i) {
      scores.push_back(static_cast<float>(choices.below(40) - 20) * 0.25F);  // many ties
    }
    std::vector<int32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
    order.resize(static_cast<size_t>(k));
    EXPECT_EQ(rank(scores, k), order);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(select(scores, k), order);
  }
}

}  // namespace
}  // namespace hadal::model
