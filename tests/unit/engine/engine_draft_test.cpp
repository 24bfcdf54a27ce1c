// Guesses change how many passes an answer takes, and nothing else.

#include <algorithm>
#include <limits>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "engine/engine.h"
#include "engine/step_costs.h"
#include "fake_model.h"

namespace hadal::engine {
namespace {

using testing::HasSubstr;

const CostCurve kFree({{1, 1.0}, {1000, 1.0}});
const CostCurve kDear({{1, 1.0}, {1000, 1000.0}});
const CostCurve kBumpy({{1, 1.0}, {3, 1.5}, {4, 4.0}, {9, 4.1}, {1000, 100.0}});

/// Inequalities that hold whatever was guessed.
void expect_sound(const DraftStats& drafts) {
  uint64_t binned = 0;
  for (const auto& bin : drafts.bins) {
    EXPECT_LE(bin.accepted, bin.count);
    binned += bin.count;
  }
  EXPECT_EQ(binned, drafts.total().reached);
  for (size_t i = 0; i < drafts.positions.size(); ++i) {
    const auto& position = drafts.positions[i];
    EXPECT_LE(position.verified, position.drafted);
    EXPECT_LE(position.reached, position.verified);
    EXPECT_LE(position.accepted, position.reached);
    if (i > 0) {
      EXPECT_LE(position.drafted, drafts.positions[i - 1].drafted);
      EXPECT_LE(position.reached, drafts.positions[i - 1].accepted);
    }
  }
}

struct DraftCase {
  int64_t draft_length;
  int64_t percent_right;
  const CostCurve* curve;
  int64_t max_num_seqs;
  int64_t max_num_batched_tokens;
};

class EngineDrafts : public testing::TestWithParam<DraftCase> {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(init_logging("off")); }
};

INSTANTIATE_TEST_SUITE_P(
    Mixes, EngineDrafts,
    testing::Values(DraftCase{1, 70, nullptr, 64, 2000}, DraftCase{2, 100, nullptr, 5, 64},
                    DraftCase{3, 0, nullptr, 8, 40}, DraftCase{5, 70, nullptr, 64, 2000},
                    DraftCase{5, 90, nullptr, 4, 7}, DraftCase{5, 90, nullptr, 1, 1},
                    DraftCase{5, 90, nullptr, 3, 5}, DraftCase{5, 70, &kFree, 16, 2000},
                    DraftCase{5, 70, &kDear, 16, 2000}, DraftCase{5, 70, &kBumpy, 16, 60},
                    DraftCase{16, 95, nullptr, 8, 300}, DraftCase{16, 50, &kBumpy, 2, 30}),
    [](const auto& test) {
      const auto& given = test.param;
      const char* curve = given.curve == nullptr  ? "All"
                          : given.curve == &kFree ? "Free"
                          : given.curve == &kDear ? "Dear"
                                                  : "Bumpy";
      return std::to_string(given.draft_length) + "Guesses" + std::to_string(given.percent_right) + "Right" +
             curve + std::to_string(given.max_num_seqs) + "In" + std::to_string(given.max_num_batched_tokens);
    });

// Random traces: requests arrive in bursts while others run, some are cancelled at some time.
TEST_P(EngineDrafts, AnswersAreThoseWithoutThem) {
  const DraftCase& given = GetParam();
  const EngineOptions options{
      .max_num_seqs = given.max_num_seqs,
      .max_num_batched_tokens = given.max_num_batched_tokens,
      .schedule_guesses = given.curve != nullptr,
      .step_costs = given.curve != nullptr ? std::optional(StepCosts{*given.curve, {}}) : std::nullopt};
  constexpr uint32_t kRequests = 40;
  for (uint32_t round = 0; round < 3; ++round) {
    FakeModel model({.draft_length = given.draft_length, .percent_right = given.percent_right});
    ThreadPool pool(static_cast<int>(round) + 1);
    std::mt19937 random(round);
    std::vector<uint32_t> order(kRequests);
    for (uint32_t i = 0; i < kRequests; ++i) {
      order[i] = i;
    }
    std::shuffle(order.begin(), order.end(), random);
    std::vector<Answer> answers(kRequests);
    std::vector<bool> is_cancelled(kRequests);
    const auto engine = start(model, pool, options);
    for (const uint32_t number : order) {
      const auto handle = submit(*engine, numbered_request(number, model.vocab_size()), answers[number]);
      if (random() % 5 == 0) {
        is_cancelled[number] = true;
        answers[number].wait_for_tokens(1 + static_cast<int64_t>(random() % 4));
        handle->cancel();
      } else if (random() % 4 == 0) {
        answers[number].wait_for_tokens(3);
      }
    }
    for (const uint32_t number : order) {
      const Expected expected =
          expected_answer(numbered_request(number, model.vocab_size()), model, engine->options());
      const std::string place = "request " + std::to_string(number) + ", round " + std::to_string(round);
      if (!is_cancelled[number]) {
        expect_answer(answers[number], expected, place);
        continue;
      }
      answers[number].finish();
      const auto tokens = answers[number].tokens();
      ASSERT_LE(tokens.size(), expected.tokens.size()) << place;
      for (size_t i = 0; i < tokens.size(); ++i) {
        EXPECT_EQ(tokens[i].token, expected.tokens[i].token) << place << ", token " << i;
      }
    }
    for (const auto& pass : model.passes()) {
      int64_t tokens = 0;
      for (const FakeModel::Chunk& chunk : pass) {
        tokens += chunk.num_tokens;
      }
      ASSERT_LE(tokens, options.max_num_batched_tokens);
    }
    const DraftStats drafts = engine->stats().drafts;
    expect_sound(drafts);
    EXPECT_GT(drafts.total().drafted, 0U);
    if (given.curve == &kDear || given.max_num_batched_tokens == 1) {
      EXPECT_EQ(drafts.total().verified, 0U);
    } else {
      EXPECT_GT(drafts.total().verified, 0U);
    }
    if (given.percent_right == 100) {
      EXPECT_EQ(drafts.total().accepted, drafts.total().reached);
    }
  }
}

class EngineDraftTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(init_logging("off")); }
  static Request talker(int64_t max_tokens) {
    Request request{.prompt = {5, 6, 7}, .sampling = {}, .label = "talker"};
    request.sampling.max_tokens = max_tokens;
    request.sampling.ignore_eos = true;
    return request;
  }
  static EngineOptions verify_all() { return {.schedule_guesses = false}; }

  ThreadPool pool_{2};
};

TEST_F(EngineDraftTest, RightGuessesSavePassesDownToOneOfEachBlock) {
  // The prompt gives one token, each later pass up to six; the last one no more than is left.
  for (const auto& [max_tokens, passes] :
       std::vector<std::pair<int64_t, size_t>>{{1, 1}, {2, 2}, {7, 2}, {8, 3}, {24, 5}, {25, 5}, {26, 6}}) {
    FakeModel model({.draft_length = 5, .percent_right = 100});
    const auto engine = start(model, pool_, verify_all());
    Answer answer;
    submit(*engine, talker(max_tokens), answer);
    expect_answer(answer, expected_answer(talker(max_tokens), model, engine->options()), "talker");
    EXPECT_EQ(model.passes().size(), passes) << max_tokens;
    EXPECT_EQ(engine->stats().generation_tokens_total, static_cast<uint64_t>(max_tokens));
  }
}

TEST_F(EngineDraftTest, NothingIsGuessedThatTheAnswerHasNoRoomFor) {
  FakeModel model({.vocab_size = 31, .max_positions = 12, .draft_length = 5, .percent_right = 100});
  const auto engine = start(model, pool_, verify_all());
  Answer answer;
  submit(*engine, talker(100), answer);
  EXPECT_EQ(answer.finish(), FinishReason::kLength);
  EXPECT_EQ(answer.num_tokens(), 9);
  // 3 tokens of prompt, then 4 + 5 in one block, then 10, 11 of which the last is never computed.
  const auto passes = model.passes();
  ASSERT_EQ(passes.size(), 3U);
  EXPECT_EQ(passes[1][0].num_tokens, 6);
  EXPECT_EQ(passes[2][0].num_tokens, 2);
}

TEST_F(EngineDraftTest, AllSequencesGuessInOnePass) {
  Gate gate;
  FakeModel model({.draft_length = 3, .percent_right = 0}, [&](auto) -> Result<void> {
    gate.pass();
    return {};
  });
  {
    const auto engine = start(model, pool_, verify_all());
    std::vector<Answer> answers(4);
    submit(*engine, talker(6), answers[0]);
    gate.wait_for_arrival();
    for (size_t i = 1; i < answers.size(); ++i) {
      submit(*engine, talker(6), answers[i]);
    }
    gate.open();
    for (Answer& answer : answers) {
      answer.finish();
    }
  }
  // The first is one token ahead of the others, and needs no guess for its last one.
  EXPECT_THAT(model.drafts().passes(), testing::ElementsAre(1, 4, 4, 4, 3));
}

TEST_F(EngineDraftTest, AStopTokenInsideABlockEndsTheAnswerThere) {
  FakeModel model({.draft_length = 5, .percent_right = 100});
  const auto engine = start(model, pool_, verify_all());
  const Expected whole = expected_answer(talker(20), model, engine->options());
  for (size_t end = 0; end < whole.tokens.size(); ++end) {
    Request request = talker(20);
    request.sampling.stop_token_ids = {whole.tokens[end].token};
    Answer answer;
    submit(*engine, request, answer);
    expect_answer(answer, expected_answer(request, model, engine->options()), std::to_string(end));
  }
}

TEST_F(EngineDraftTest, ACancellationDuringAPassThrowsItsTokensAway) {
  Gate gate;
  FakeModel model({.draft_length = 5, .percent_right = 100}, [&](auto) -> Result<void> {
    gate.pass();
    return {};
  });
  const auto engine = start(model, pool_, verify_all());
  Answer answer;
  const auto handle = submit(*engine, talker(100), answer);
  gate.let_through(2);  // the third pass waits
  answer.wait_for_tokens(7);
  handle->cancel();
  gate.open();
  EXPECT_EQ(answer.finish(), FinishReason::kCancelled);
  EXPECT_EQ(answer.num_tokens(), 7);
  EXPECT_EQ(model.passes().size(), 3U);
}

TEST_F(EngineDraftTest, ABadRowBehindAWrongGuessIsNobodysFault) {
  // Every row after the first of a verification is bad, and every guess is wrong.
  FakeModel model({.draft_length = 3, .percent_right = 0}, {}, [](std::span<const model::Segment> segments) {
    for (const model::Segment& segment : segments) {
      for (size_t i = 31; i < segment.logits.size(); i += 31) {
        segment.logits[i] = std::numeric_limits<float>::quiet_NaN();
      }
    }
  });
  const auto engine = start(model, pool_, verify_all());
  Request request = talker(10);
  request.sampling.temperature = 0;
  Answer answer;
  submit(*engine, request, answer);
  // Greedy guesses of another rule may be right by chance; the seeds of this test are such that none is.
  expect_answer(answer, expected_answer(request, model, engine->options()), "talker");
  EXPECT_EQ(engine->stats().drafts.total().accepted, 0U);
}

TEST_F(EngineDraftTest, ABadRowBehindRightGuessesComesAfterTheirTokens) {
  FakeModel model({.draft_length = 5, .percent_right = 100}, {},
                  [](std::span<const model::Segment> segments) {
                    for (const model::Segment& segment : segments) {
                      if (segment.logits.size() == 6 * 31) {
                        segment.logits[3 * 31 + 8] = std::numeric_limits<float>::quiet_NaN();
                      }
                    }
                  });
  const auto engine = start(model, pool_, verify_all());
  Answer answer;
  submit(*engine, talker(30), answer);
  EXPECT_EQ(answer.finish(), FinishReason::kError);
  EXPECT_EQ(answer.num_tokens(), 1 + 3);
  EXPECT_THAT(answer.error()->message, HasSubstr("position 7: token 8 has nan"));
  EXPECT_EQ(engine->stats().generation_tokens_total, 4U);
}

TEST_F(EngineDraftTest, TheCostOfStepsIsMeasuredUpToTheLargestVerification) {
  FakeModel model({.draft_length = 2});
  const auto engine = start(model, pool_, {.max_num_seqs = 4, .max_num_batched_tokens = 100});
  std::vector<int64_t> sizes;
  for (const auto& point : engine->options().step_costs->pass.points()) {
    sizes.push_back(point.rows);
    EXPECT_GT(point.seconds, 0);
  }
  EXPECT_EQ(sizes, measured_sizes(12));
  EXPECT_THAT(sizes, testing::ElementsAre(1, 2, 3, 4, 6, 8, 12));
  EXPECT_THAT(measured_sizes(1), testing::ElementsAre(1));
  EXPECT_THAT(measured_sizes(2), testing::ElementsAre(1, 2));
  EXPECT_THAT(measured_sizes(5), testing::ElementsAre(1, 2, 3, 4, 5));

  EXPECT_EQ(engine->options().step_costs->drafts.points().size(), measured_sizes(4).size());

  FakeModel broken({.draft_length = 2}, [](auto) -> Result<void> { return fail(ErrorCode::kIo, "no disk"); });
  const auto not_started = Engine::start(broken, pool_, {});
  ASSERT_FALSE(not_started);
  EXPECT_THAT(not_started.error().message, HasSubstr("no disk"));
}

TEST_F(EngineDraftTest, DraftsThatDoNotPayAreGivenUpAndTriedAgain) {
  FakeModel model({.vocab_size = 31, .max_positions = 2000, .draft_length = 3, .percent_right = 0});
  // Even right guesses would not pay for drafts of this price.
  const auto engine = start(model, pool_, {.step_costs = StepCosts{kFree, CostCurve({{1, 9.0}})}});
  Answer answer;
  submit(*engine, talker(900), answer);
  expect_answer(answer, expected_answer(talker(900), model, engine->options()), "talker");
  const uint64_t drafted = engine->stats().drafts.positions[0].drafted;
  EXPECT_GE(drafted, static_cast<uint64_t>(3 * DraftPolicy::kTrial));
  EXPECT_LE(drafted, static_cast<uint64_t>(5 * DraftPolicy::kTrial));
}

TEST_F(EngineDraftTest, RefusesAModelWithTooLongBlocks) {
  FakeModel model({.draft_length = kMaxDraftLength + 1});
  const auto engine = Engine::start(model, pool_, {});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().message, "model: blocks of 17 guesses, expected 1 to 16");
}

}  // namespace
}  // namespace hadal::engine
