#include "engine/logit_adjustments.h"

#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal::engine {
namespace {

using testing::ElementsAre;

constexpr int32_t kEos = 1;
constexpr float kMasked = -std::numeric_limits<float>::infinity();

std::vector<float> adjusted(const SamplingParams& params, std::vector<int32_t> prompt,
                            const std::vector<int32_t>& output, std::vector<float> logits,
                            const std::vector<int32_t>& drafts = {}) {
  LogitAdjustments adjustments(params, prompt);
  for (const int32_t token : output) {
    adjustments.append(token);
  }
  const std::vector<float> before = logits;
  adjustments.adjust(logits, drafts, kEos);
  EXPECT_TRUE(adjustments.any(static_cast<int64_t>(drafts.size())) || logits == before);
  return logits;
}

TEST(LogitAdjustments, OfDefaultParametersAreNone) {
  EXPECT_THAT(adjusted({}, {2, 3}, {2, 4, 4}, {1, 2, 3, 4, 5}), ElementsAre(1, 2, 3, 4, 5));
  const SamplingParams kDefaults;
  EXPECT_FALSE(LogitAdjustments(kDefaults, std::vector<int32_t>{2}).any(5));
}

TEST(LogitAdjustments, PenaltiesOfOpenAiCountTheOutputOnly) {
  SamplingParams params;
  params.presence_penalty = 0.5;
  params.frequency_penalty = 0.25;
  EXPECT_THAT(adjusted(params, {2, 2, 0}, {3, 4, 4}, {1, 1, 1, 1, 1}), ElementsAre(1, 1, 1, 0.25F, 0));
  params.presence_penalty = -1;
  params.frequency_penalty = 0;
  EXPECT_THAT(adjusted(params, {}, {0, 0}, {-3, 1}), ElementsAre(-2, 1));
}

TEST(LogitAdjustments, RepetitionPenaltyCountsThePromptTooAndEachTokenOnce) {
  SamplingParams params;
  params.repetition_penalty = 2;
  EXPECT_THAT(adjusted(params, {2, 2, 0}, {0, 3, 3}, {4, 4, 4, -4, 0}), ElementsAre(2, 4, 2, -8, 0));
}

TEST(LogitAdjustments, StayFinite) {
  SamplingParams params;
  params.repetition_penalty = 1e-300;
  const float greatest = std::numeric_limits<float>::max();
  EXPECT_THAT(adjusted(params, {0, 1, 2, 3}, {}, {4, -4, 0, kMasked}),
              ElementsAre(greatest, -0.0F, 0, kMasked));
  params.repetition_penalty = 100;
  EXPECT_THAT(adjusted(params, {0}, {}, {-greatest}), ElementsAre(-greatest));
}

TEST(LogitAdjustments, BiasesAndAllowedTokens) {
  SamplingParams params;
  params.logit_bias = {{0, 100}, {3, -1.5}};
  EXPECT_THAT(adjusted(params, {}, {}, {1, 1, 1, 1}), ElementsAre(101, 1, 1, -0.5F));
  params.allowed_token_ids = {3, 1, 3};
  EXPECT_THAT(adjusted(params, {}, {}, {1, 7, 1, 1}), ElementsAre(kMasked, 7, kMasked, -0.5F));
}

TEST(LogitAdjustments, MinTokensKeepTheAnswerFromEnding) {
  SamplingParams params;
  params.min_tokens = 2;
  params.stop_token_ids = {3};
  EXPECT_THAT(adjusted(params, {}, {5}, {1, 1, 1, 1}), ElementsAre(1, kMasked, 1, kMasked));
  EXPECT_THAT(adjusted(params, {}, {5, 5}, {1, 1, 1, 1}), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(adjusted(params, {}, {5}, {1, 1, 1, 1}, {5}), ElementsAre(1, 1, 1, 1));
  params.ignore_eos = true;
  EXPECT_THAT(adjusted(params, {}, {}, {1, 1, 1, 1}), ElementsAre(1, 1, 1, kMasked));
}

TEST(LogitAdjustments, ThinkingEndsWhenItsBudgetIsUsedUp) {
  SamplingParams params;
  params.thinking_budget = 2;
  params.thinking_end_token = 2;
  const std::vector<float> end{kMasked, kMasked, 0, kMasked};
  EXPECT_THAT(adjusted(params, {}, {3}, {1, 1, 1, 1}), ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(adjusted(params, {}, {3, 3}, {1, 1, 1, 1}), end);
  EXPECT_EQ(adjusted(params, {}, {3}, {1, 1, 1, 1}, {3}), end);
  EXPECT_THAT(adjusted(params, {}, {3, 2}, {1, 1, 1, 1}), ElementsAre(1, 1, 1, 1)) << "ended by itself";
  EXPECT_THAT(adjusted(params, {}, {3}, {1, 1, 1, 1}, {2}), ElementsAre(1, 1, 1, 1)) << "ended in a draft";
  EXPECT_THAT(adjusted(params, {}, {3, 3, 2, 3, 3, 3}, {1, 1, 1, 1}), ElementsAre(1, 1, 1, 1));
  params.thinking_budget = 0;
  EXPECT_EQ(adjusted(params, {}, {}, {1, 1, 1, 1}), end);
}

TEST(LogitAdjustments, DraftsCountLikeTokensThatAreOut) {
  std::mt19937 random(7);
  const auto below = [&](int32_t limit) {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(limit));
  };
  constexpr int32_t kVocab = 12;
  for (int round = 0; round < 500; ++round) {
    SamplingParams params;
    params.presence_penalty = below(3) - 1;
    params.frequency_penalty = below(3) * 0.3;
    params.repetition_penalty = 1 + below(2) * 0.7;
    params.min_tokens = below(8);
    params.max_tokens = 100;
    params.thinking_budget = below(10) - 1;
    params.thinking_end_token = 5;
    params.logit_bias = {{below(kVocab), 1.25}};
    std::vector<int32_t> prompt(static_cast<size_t>(below(6)));
    std::vector<int32_t> tokens(static_cast<size_t>(below(9)));
    std::vector<float> logits(kVocab);
    for (auto* ids : {&prompt, &tokens}) {
      for (int32_t& id : *ids) {
        id = below(kVocab);
      }
    }
    for (float& logit : logits) {
      logit = static_cast<float>(below(100)) * 0.37F - 18;
    }
    const auto all_out = adjusted(params, prompt, tokens, logits);
    for (size_t out = 0; out <= tokens.size(); ++out) {
      const auto middle = tokens.begin() + static_cast<std::ptrdiff_t>(out);
      EXPECT_EQ(adjusted(params, prompt, {tokens.begin(), middle}, logits, {middle, tokens.end()}), all_out);
    }
  }
}

}  // namespace
}  // namespace hadal::engine
