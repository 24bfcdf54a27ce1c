#include "engine/row_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "engine/philox.h"
#include "test_rows.h"

namespace hadal::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class RowKernelsTest : public testing::TestWithParam<const RowKernels*> {
 protected:
  RowSummary summarize(const std::vector<float>& row) {
    maxima_.assign(static_cast<size_t>(num_row_blocks(static_cast<int64_t>(row.size()))), 0);
    return GetParam()->summarize(row.data(), static_cast<int64_t>(row.size()), maxima_.data());
  }
  std::vector<float> maxima_;
};

INSTANTIATE_TEST_SUITE_P(All, RowKernelsTest,
                         testing::ValuesIn(available_row_kernels().begin(), available_row_kernels().end()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST_P(RowKernelsTest, FindsTheMaximumOfEachBlock) {
  for (const int64_t num_tokens : {1, 2, 63, 64, 65, 127, 128, 1000}) {
    for (const char* kind : {"flat", "coarse", "peaked"}) {
      const std::vector<float> row = make_row(kind, 5, num_tokens);
      const RowSummary summary = summarize(row);
      EXPECT_TRUE(summary.valid);
      EXPECT_EQ(summary.maximum, *std::max_element(row.begin(), row.end()));
      for (size_t block = 0; block < maxima_.size(); ++block) {
        const auto begin = row.begin() + static_cast<ptrdiff_t>(block) * kRowBlock;
        const auto end = static_cast<size_t>(row.end() - begin) > kRowBlock ? begin + kRowBlock : row.end();
        EXPECT_EQ(maxima_[block], *std::max_element(begin, end)) << kind << " block " << block;
      }
    }
  }
}

TEST_P(RowKernelsTest, RefusesABadValueAtAnyPlace) {
  for (const int64_t num_tokens : {1, 64, 200}) {
    for (int64_t place = 0; place < num_tokens; ++place) {
      std::vector<float> row = make_row("flat", 6, num_tokens);
      row[place] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_FALSE(summarize(row).valid) << place;
      row[place] = -std::numeric_limits<float>::quiet_NaN();
      EXPECT_FALSE(summarize(row).valid) << place;
      row[place] = kInfinity;
      EXPECT_FALSE(summarize(row).valid) << place;
    }
  }
}

TEST_P(RowKernelsTest, AcceptsMaskedTokensUnlessAllAre) {
  for (const int64_t num_tokens : {2, 64, 70}) {
    std::vector<float> row(static_cast<size_t>(num_tokens), -kInfinity);
    EXPECT_FALSE(summarize(row).valid);
    row.back() = -std::numeric_limits<float>::max();
    EXPECT_TRUE(summarize(row).valid);
    EXPECT_EQ(summarize(row).maximum, -std::numeric_limits<float>::max());
  }
}

TEST_P(RowKernelsTest, WeighsEveryToken) {
  for (const int64_t num_tokens : {1, 64, 65, 4000}) {
    for (const char* kind : {"flat", "coarse", "peaked"}) {
      for (const double scale : {1.0, 1 / 0.7, 1e5, 1e-6, 1 / 30.0}) {
        const std::vector<float> row = make_row(kind, 7, num_tokens);
        const RowSummary summary = summarize(row);
        const double best = static_cast<double>(summary.maximum) * scale;
        std::vector<uint64_t> expected;
        for (const float logit : row) {
          expected.push_back(row_weight(logit, scale, best));
        }
        std::vector<uint64_t> weights(row.size(), 99);
        EXPECT_EQ(GetParam()->weigh(row.data(), num_tokens, maxima_.data(), scale, best, weights.data()),
                  std::accumulate(expected.begin(), expected.end(), uint64_t{0}));
        EXPECT_EQ(weights, expected);
      }
    }
  }
}

TEST_P(RowKernelsTest, MakesTheWordsOfPhilox) {
  for (const uint32_t first_group : {0U, 16U, 32320U}) {
    BlockWords words;
    const uint64_t seed = 0x123456789abcdef0;
    const int64_t position = 0x7000000012345678;
    const uint32_t greatest = GetParam()->block_words(seed, position, first_group, words);
    uint32_t expected_greatest = 0;
    for (uint32_t token = 0; token < kRowBlock; ++token) {
      const uint32_t expected = noise_words(seed, position, first_group + token / 4)[token % 4];
      EXPECT_EQ(words[token % 4][token / 4], expected);
      expected_greatest = std::max(expected_greatest, expected);
    }
    EXPECT_EQ(greatest, expected_greatest);
  }
}

TEST(RowWeight, IsTheRelativeProbabilityInFixedPoint) {
  constexpr double kOne = 17592186044416;  // 2^44
  EXPECT_EQ(row_weight(3, 1, 3), static_cast<uint64_t>(kOne));
  EXPECT_NEAR(static_cast<double>(row_weight(2, 1, 3)), kOne * std::exp(-1), 2);
  EXPECT_NEAR(static_cast<double>(row_weight(2, 5, 15)), kOne * std::exp(-5), 2);
  EXPECT_EQ(row_weight(-40, 1, 0), 0U);
  EXPECT_EQ(row_weight(-kInfinity, 1, 0), 0U);
  EXPECT_EQ(row_weight(-std::numeric_limits<float>::max(), 1e5, 3e43), 0U);
}

}  // namespace
}  // namespace hadal::engine
