#include "engine/running_request.h"

#include <gtest/gtest.h>

namespace hadal::engine {
namespace {

constexpr StopLimits kLimits{.eos_token_id = 1, .max_model_len = 100};

RunningRequest make_request(std::vector<int32_t> prompt, SamplingParams sampling = {}) {
  return {Request{std::move(prompt), std::move(sampling), "test"}, [](Output) {},
          std::make_shared<Cancellation>(std::make_shared<CancellationCounter>(0))};
}

SamplingParams with_max_tokens(int64_t max_tokens) {
  SamplingParams sampling;
  sampling.max_tokens = max_tokens;
  return sampling;
}

TEST(RunningRequest, GoesOnUntilMaxTokens) {
  RunningRequest request = make_request({5, 6}, with_max_tokens(3));
  EXPECT_EQ(request.append(7, kLimits), std::nullopt);
  EXPECT_EQ(request.append(8, kLimits), std::nullopt);
  EXPECT_EQ(request.append(9, kLimits), FinishReason::kLength);
  EXPECT_EQ(request.usage().prompt_tokens, 2);
  EXPECT_EQ(request.usage().completion_tokens, 3);
}

TEST(RunningRequest, StopsAtEos) {
  RunningRequest request = make_request({5}, with_max_tokens(9));
  EXPECT_EQ(request.append(1, kLimits), FinishReason::kStop);
  EXPECT_EQ(request.usage().completion_tokens, 1);
}

TEST(RunningRequest, IgnoresEosWhenAskedTo) {
  SamplingParams sampling = with_max_tokens(9);
  sampling.ignore_eos = true;
  RunningRequest request = make_request({5}, sampling);
  EXPECT_EQ(request.append(1, kLimits), std::nullopt);
}

TEST(RunningRequest, StopsAtEachStopTokenEvenIfEosIsIgnored) {
  SamplingParams sampling = with_max_tokens(9);
  sampling.ignore_eos = true;
  sampling.stop_token_ids = {30, 7, 1, 12};
  for (const int32_t token : sampling.stop_token_ids) {
    RunningRequest request = make_request({5}, sampling);
    EXPECT_EQ(request.append(token, kLimits), FinishReason::kStop) << token;
  }
  RunningRequest request = make_request({5}, sampling);
  EXPECT_EQ(request.append(8, kLimits), std::nullopt);
}

TEST(RunningRequest, StopsWhenTheSequenceIsAsLongAsAllowed) {
  RunningRequest request = make_request({5, 6, 7}, with_max_tokens(50));
  const StopLimits limits{.eos_token_id = 1, .max_model_len = 5};
  EXPECT_EQ(request.append(8, limits), std::nullopt);
  EXPECT_EQ(request.append(9, limits), FinishReason::kLength);
}

TEST(RunningRequest, NamesEosFirstWhenLimitsAreReachedToo) {
  RunningRequest request = make_request({5, 6, 7}, with_max_tokens(1));
  EXPECT_EQ(request.append(1, StopLimits{.eos_token_id = 1, .max_model_len = 4}), FinishReason::kStop);
}

TEST(RunningRequest, FollowsItsState) {
  RunningRequest request = make_request({5, 6, 7, 8}, with_max_tokens(9));
  EXPECT_EQ(request.progress().num_computed, 0);
  auto state = std::make_unique<cache::SequenceState>(cache::StateLayout{}, 0);
  state->advance(1);
  request.start(std::move(state));
  EXPECT_EQ(request.usage().cached_tokens, 1);
  EXPECT_EQ(request.progress().num_computed, 1);
  EXPECT_EQ(request.next_tokens(2, 0).front(), 6);
  request.state()->advance(3);
  EXPECT_EQ(request.append(9, kLimits), std::nullopt);
  EXPECT_EQ(request.next_position(), 5);
  EXPECT_EQ(request.next_tokens(1, 0).front(), 9);
  EXPECT_EQ(request.usage().cached_tokens, 1);
  request.end();
  EXPECT_EQ(request.state(), nullptr);
}

}  // namespace
}  // namespace hadal::engine
