#include "engine/scheduler.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SequenceProgress prompt(int64_t length, int64_t computed = 0) {
  return {length, length, computed};
}
SequenceProgress decoding(int64_t prompt_length, int64_t output) {
  return {prompt_length, prompt_length + output, prompt_length + output - 1};
}

TEST(PlanStep, HasNothingToDoForNobody) {
  EXPECT_THAT(plan_step({}, 10), IsEmpty());
}

TEST(PlanStep, TakesAWholePromptThatFits) {
  const std::vector<SequenceProgress> running{prompt(10)};
  EXPECT_THAT(plan_step(running, 10), ElementsAre(ScheduledChunk{0, 10, true}));
}

TEST(PlanStep, CutsAPromptToTheBudgetAndAsksForLogitsOnlyAtItsEnd) {
  EXPECT_THAT(plan_step(std::vector{prompt(10)}, 4), ElementsAre(ScheduledChunk{0, 4, false}));
  EXPECT_THAT(plan_step(std::vector{prompt(10, 4)}, 4), ElementsAre(ScheduledChunk{0, 4, false}));
  EXPECT_THAT(plan_step(std::vector{prompt(10, 8)}, 4), ElementsAre(ScheduledChunk{0, 2, true}));
}

TEST(PlanStep, PutsDecodeRowsBeforePromptsWhateverTheArrivalOrder) {
  const std::vector<SequenceProgress> running{prompt(100), decoding(5, 1), prompt(3), decoding(9, 40)};
  EXPECT_THAT(plan_step(running, 20), ElementsAre(ScheduledChunk{1, 1, true}, ScheduledChunk{3, 1, true},
                                                  ScheduledChunk{0, 18, false}));
}

TEST(PlanStep, FillsTheRestWithPromptsInArrivalOrder) {
  const std::vector<SequenceProgress> running{prompt(6), decoding(5, 1), prompt(3), prompt(50)};
  EXPECT_THAT(plan_step(running, 12), ElementsAre(ScheduledChunk{1, 1, true}, ScheduledChunk{0, 6, true},
                                                  ScheduledChunk{2, 3, true}, ScheduledChunk{3, 2, false}));
}

TEST(PlanStep, TakesAllTokensAfterThePromptOfADecodingSequence) {
  const std::vector<SequenceProgress> running{{.prompt_length = 4, .num_tokens = 9, .num_computed = 5}};
  EXPECT_THAT(plan_step(running, 12), ElementsAre(ScheduledChunk{0, 4, true}));
}

TEST(PlanStep, GivesGuessesTheirRowsBeforePrompts) {
  std::vector<SequenceProgress> running{decoding(5, 1), prompt(30), decoding(9, 40)};
  running[0].num_guesses = 3;
  running[2].num_guesses = 5;
  EXPECT_THAT(plan_step(running, 20),
              ElementsAre(ScheduledChunk{0, 1, true, 3}, ScheduledChunk{2, 1, true, 5},
                          ScheduledChunk{1, 10, false}));
  EXPECT_EQ((ScheduledChunk{0, 1, true, 3}.num_sampled()), 4U);
  EXPECT_EQ((ScheduledChunk{1, 10, false}.num_sampled()), 0U);
}

TEST(PlanStep, KeepsItsPromisesOnRandomSets) {
  std::mt19937 random(8);
  const auto below = [&](int64_t bound) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  };
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<SequenceProgress> running;
    for (int64_t i = below(12) + 1; i > 0; --i) {
      const int64_t length = below(30) + 1;
      running.push_back(below(2) == 0 ? decoding(length, below(9) + 1) : prompt(length, below(length)));
    }
    const int64_t budget = static_cast<int64_t>(running.size()) + below(40);
    int64_t total = 0;
    std::vector<int64_t> given(running.size(), 0);
    for (const ScheduledChunk& chunk : plan_step(running, budget)) {
      const SequenceProgress& sequence = running[chunk.sequence];
      EXPECT_EQ(given[chunk.sequence], 0) << "scheduled twice";
      EXPECT_GE(chunk.num_tokens, 1);
      EXPECT_LE(sequence.num_computed + chunk.num_tokens, sequence.num_tokens);
      EXPECT_EQ(chunk.wants_logits, sequence.num_computed + chunk.num_tokens == sequence.num_tokens);
      given[chunk.sequence] = chunk.num_tokens;
      total += chunk.num_tokens;
    }
    EXPECT_LE(total, budget);
    bool oldest_prompt = true;
    int64_t missing = 0;
    for (size_t i = 0; i < running.size(); ++i) {
      missing += running[i].num_tokens - running[i].num_computed;
      const bool decodes = running[i].num_computed >= running[i].prompt_length;
      if (decodes || oldest_prompt) {
        EXPECT_GE(given[i], 1) << "starved";
      }
      oldest_prompt = oldest_prompt && decodes;
    }
    EXPECT_EQ(total, std::min(missing, budget)) << "budget left unused";
  }
}

}  // namespace
}  // namespace hadal::engine
