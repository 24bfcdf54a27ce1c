#include "engine/token_order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "test_rows.h"

namespace hadal::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The definition, by a full sort.
std::vector<int32_t> sorted_tokens(const std::vector<float>& row) {
  std::vector<int32_t> tokens(row.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::stable_sort(tokens.begin(), tokens.end(), [&](int32_t a, int32_t b) { return row[a] > row[b]; });
  return tokens;
}

struct TestRow {
  explicit TestRow(std::vector<float> values, double scale = 1)
      : logits(std::move(values)),
        maxima(static_cast<size_t>(num_row_blocks(size()))),
        weights(logits.size()) {
    const RowSummary summary = best_row_kernels().summarize(logits.data(), size(), maxima.data());
    EXPECT_TRUE(summary.valid);
    view = {logits, maxima, summary.maximum, scale, summary.maximum * scale, weights};
    view.total_weight = best_row_kernels().weigh(logits.data(), size(), maxima.data(), scale, view.best_score,
                                                 weights.data());
  }
  int64_t size() const { return static_cast<int64_t>(logits.size()); }
  TokenRank rank(int32_t token) const { return token_rank(logits[token], token); }

  std::vector<float> logits;
  std::vector<float> maxima;
  std::vector<uint64_t> weights;
  RowView view;
};

/// How many tokens top-p keeps, by the definition.
size_t naive_top_p(const TestRow& row, double top_p) {
  const auto limit = static_cast<uint64_t>(top_p * static_cast<double>(row.view.total_weight));
  uint64_t better = 0;
  size_t kept = 0;
  for (const int32_t token : sorted_tokens(row.logits)) {
    if (better > limit) {
      break;
    }
    better += row_weight(row.logits[token], row.view.scale, row.view.best_score);
    ++kept;
  }
  return kept;
}

size_t num_kept(const TestRow& row, TokenRank last) {
  size_t kept = 0;
  for (int32_t token = 0; token < row.size(); ++token) {
    kept += row.rank(token) <= last ? 1 : 0;
  }
  return kept;
}

TEST(TokenRank, OrdersByLogitThenById) {
  const std::vector<float> descending{
      std::numeric_limits<float>::max(),  3.0F,      1e-30F, 0.0F, -1e-30F, -3.0F,
      -std::numeric_limits<float>::max(), -kInfinity};
  for (size_t i = 1; i < descending.size(); ++i) {
    EXPECT_LT(token_rank(descending[i - 1], 1000), token_rank(descending[i], 0)) << i;
    EXPECT_LT(token_rank(descending[i], 0), token_rank(descending[i], 1)) << i;
  }
  EXPECT_LT(token_rank(-0.0F, 1), token_rank(0.0F, 2));
  EXPECT_LT(token_rank(0.0F, 1), token_rank(-0.0F, 2));
}

TEST(TokenRank, GivesBackTokenAndLogit) {
  for (const float logit : {5.5F, 0.0F, -5.5F, -kInfinity, std::numeric_limits<float>::max()}) {
    EXPECT_EQ(rank_logit(token_rank(logit, 129279)), logit);
    EXPECT_EQ(rank_token(token_rank(logit, 129279)), 129279);
  }
}

TEST(ForEachAtLeast, VisitsExactlyTheTokensInIdOrder) {
  const TestRow row(make_row("coarse", 3, 300));
  for (const float lowest : {-kInfinity, -2.0F, 0.5F, 2.0F, 7.0F}) {
    std::vector<int32_t> visited;
    for_each_at_least(row.view, lowest, [&](float logit, int32_t token) {
      EXPECT_EQ(logit, row.logits[token]);
      visited.push_back(token);
    });
    std::vector<int32_t> expected;
    for (int32_t token = 0; token < row.size(); ++token) {
      if (row.logits[token] >= lowest) {
        expected.push_back(token);
      }
    }
    EXPECT_EQ(visited, expected) << lowest;
  }
}

TEST(PrefixFinder, TopPEqualsTheSortedDefinitionOnRandomRows) {
  PrefixFinder finder;
  std::mt19937 random(4);
  for (uint32_t trial = 0; trial < 400; ++trial) {
    const char* kind = std::array{"flat", "coarse", "peaked", "masked"}[trial % 4];
    std::vector<float> values = make_row(kind, trial, 1 + static_cast<int64_t>(random() % 3000));
    values[random() % values.size()] = 4;  // so that a masked row is not all masked
    const TestRow row(std::move(values), std::array{1.0, 1 / 0.3, 1 / 20.0, 1e5, 1e-6}[random() % 5]);
    const double top_p = std::array{1e-9, 0.1, 0.5, 0.9, 0.95, 0.999999}[random() % 6];
    EXPECT_EQ(num_kept(row, finder.top_p(row.view, top_p)), naive_top_p(row, top_p))
        << kind << " " << row.size() << " " << row.view.scale << " " << top_p;
  }
}

TEST(PrefixFinder, TopPKeepsTheTokenThatStartsExactlyAtTheBorder) {
  PrefixFinder finder;
  const TestRow equal(std::vector<float>(8, 1.5F));
  // Better tokens hold 0, 1/8, ... 7/8 of the mass: at 1/2 that is the fifth, the lowest five ids.
  EXPECT_EQ(finder.top_p(equal.view, 0.5), equal.rank(4));
  EXPECT_EQ(finder.top_p(equal.view, 0.49999), equal.rank(3));
  EXPECT_EQ(finder.top_p(equal.view, 0.875), equal.rank(7));
  EXPECT_EQ(finder.top_p(equal.view, 0.874999), equal.rank(6));
  EXPECT_EQ(finder.top_p(equal.view, 1e-300), equal.rank(0));
}

TEST(PrefixFinder, TopPCutsAmongTiesInIdOrderInALargeRow) {
  PrefixFinder finder;
  const TestRow equal(std::vector<float>(129280, -3.0F));
  EXPECT_EQ(equal.view.total_weight, uint64_t{129280} << kWeightBits);
  EXPECT_EQ(finder.top_p(equal.view, 0.5), equal.rank(64640));
  // As close to 1 as a double gets: nothing but the last token can be left out, and it starts below the
  // border.
  EXPECT_EQ(num_kept(equal, finder.top_p(equal.view, 1 - 0x1p-53)), 129280U);
}

TEST(PrefixFinder, TopKKeepsExactlyKTokens) {
  PrefixFinder finder;
  std::mt19937 random(5);
  for (uint32_t trial = 0; trial < 300; ++trial) {
    const TestRow row(make_row(std::array{"flat", "coarse", "peaked"}[trial % 3], trial,
                               1 + static_cast<int64_t>(random() % 3000)));
    const int64_t count = 1 + static_cast<int64_t>(random() % 3200);
    const TokenRank last = finder.top_k(row.view, count);
    if (count >= row.size()) {
      EXPECT_EQ(last, kKeepAll);
    } else {
      EXPECT_EQ(last, row.rank(sorted_tokens(row.logits)[count - 1]));
    }
  }
}

TEST(PrefixFinder, BestListsTheFirstTokensInOrder) {
  PrefixFinder finder;
  std::mt19937 random(6);
  for (uint32_t trial = 0; trial < 200; ++trial) {
    const TestRow row(make_row(std::array{"flat", "coarse", "peaked"}[trial % 3], trial,
                               1 + static_cast<int64_t>(random() % 2000)));
    const auto count = static_cast<int64_t>(random() % 1000);
    std::vector<int32_t> expected = sorted_tokens(row.logits);
    expected.resize(std::min(expected.size(), static_cast<size_t>(count)));
    std::vector<int32_t> found;
    for (const TokenRank rank : finder.best(row.view, count)) {
      found.push_back(rank_token(rank));
    }
    EXPECT_EQ(found, expected);
  }
}

TEST(PrefixFinder, BestReachesMaskedTokensWhenNothingElseIsLeft) {
  PrefixFinder finder;
  const TestRow row({-kInfinity, 2, -kInfinity, 3});
  const auto best = finder.best(row.view, 10);
  EXPECT_EQ(std::vector<TokenRank>(best.begin(), best.end()),
            (std::vector<TokenRank>{row.rank(3), row.rank(1), row.rank(0), row.rank(2)}));
}

}  // namespace
}  // namespace hadal::engine
