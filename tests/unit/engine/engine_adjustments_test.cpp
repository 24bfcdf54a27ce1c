// Requests with penalties, biases, minimum lengths, thinking budgets and given tokens: the same answer alone,
// in company, and with drafts.

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "engine/engine.h"
#include "fake_model.h"

namespace hadal::engine {
namespace {

constexpr int32_t kVocab = 31;

Request random_request(std::mt19937& random) {
  const auto below = [&](uint32_t bound) { return static_cast<int32_t>(random() % bound); };
  Request request{.prompt = {}, .sampling = {}, .label = "test"};
  for (int i = 1 + below(20); i > 0; --i) {
    request.prompt.push_back(below(kVocab));
  }
  SamplingParams& sampling = request.sampling;
  sampling.temperature = below(3) == 0 ? 0.0 : 1.0;
  sampling.seed = random();
  sampling.max_tokens = 10 + below(40);
  sampling.top_logprobs = below(2) == 0 ? -1 : 3;
  sampling.presence_penalty = below(2) == 0 ? 0 : 0.4;
  sampling.frequency_penalty = below(2) == 0 ? 0 : 0.3;
  sampling.repetition_penalty = below(2) == 0 ? 1 : 1.3;
  sampling.min_p = below(3) == 0 ? 0.1 : 0;
  sampling.min_tokens = below(10);
  sampling.stop_token_ids = {below(kVocab)};
  sampling.logit_bias = {{below(kVocab), 2.0}};
  if (below(2) == 0) {
    sampling.thinking_budget = below(12);
    sampling.thinking_end_token = 7;
  }
  for (int i = below(3) == 0 ? below(8) : 0; i > 0; --i) {
    sampling.golden_token_ids.push_back(2 + below(kVocab - 2));
  }
  return request;
}

struct Outcome {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  FinishReason finish = FinishReason::kError;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(Answer& answer) {
  Outcome outcome;
  outcome.finish = answer.finish();
  for (const OutputToken& token : answer.tokens()) {
    outcome.tokens.push_back(token.token);
    outcome.logprobs.push_back(token.logprob);
  }
  return outcome;
}

class EngineAdjustments : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(init_logging("off")); }

  std::vector<Outcome> run(const std::vector<Request>& requests, int64_t draft_length, int64_t max_num_seqs) {
    FakeModel model({.vocab_size = kVocab, .max_positions = 256, .draft_length = draft_length});
    const auto engine = Engine::start(model, pool_,
                                      {.max_num_seqs = max_num_seqs,
                                       .max_num_batched_tokens = 64,
                                       .prefix_cache = false,
                                       .schedule_guesses = false});
    EXPECT_TRUE(engine) << engine.error().message;
    std::vector<Answer> answers(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_TRUE((*engine)->submit(requests[i], answers[i].sink()));
    }
    std::vector<Outcome> outcomes;
    std::transform(answers.begin(), answers.end(), std::back_inserter(outcomes), outcome_of);
    return outcomes;
  }

  ThreadPool pool_{2};
};

TEST_F(EngineAdjustments, AreTheSameAloneTogetherAndWithDrafts) {
  std::mt19937 random(11);
  std::vector<Request> requests;
  for (int i = 0; i < 120; ++i) {
    requests.push_back(random_request(random));
  }
  const std::vector<Outcome> alone = run(requests, 0, 1);
  EXPECT_EQ(run(requests, 0, 16), alone);
  EXPECT_EQ(run(requests, 4, 1), alone);
  EXPECT_EQ(run(requests, 5, 16), alone);
  for (size_t i = 0; i < requests.size(); ++i) {
    const SamplingParams& sampling = requests[i].sampling;
    const auto& tokens = alone[i].tokens;
    const auto& golden = sampling.golden_token_ids;
    const size_t given = std::min(golden.size(), tokens.size());
    EXPECT_TRUE(
        std::equal(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(given), golden.begin()));
    if (golden.empty() && alone[i].finish == FinishReason::kStop) {
      EXPECT_GT(static_cast<int64_t>(tokens.size()), sampling.min_tokens);
    }
    if (golden.empty() && sampling.thinking_budget >= 0) {
      const auto end = std::find(tokens.begin(), tokens.end(), sampling.thinking_end_token);
      EXPECT_LE(end - tokens.begin(), sampling.thinking_budget);
    }
  }
}

}  // namespace
}  // namespace hadal::engine
