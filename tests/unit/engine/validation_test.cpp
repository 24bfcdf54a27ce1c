#include "engine/validation.h"

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/sampler.h"
#include "fake_model.h"

namespace hadal::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr RequestLimits kLimits{.vocab_size = 50, .max_model_len = 100};

Request good_request() {
  return {.prompt = {0, 49, 7}, .sampling = {}, .label = "r"};
}

std::string refusal(const std::function<void(Request&)>& change) {
  Request request = good_request();
  change(request);
  const Result<void> checked = validate_request(request, kLimits);
  if (checked) {
    return "accepted";
  }
  EXPECT_EQ(checked.error().code, ErrorCode::kInvalidArgument);
  return checked.error().message;
}

TEST(ValidateRequest, AcceptsTheWholeRangeOfEachField) {
  EXPECT_EQ(refusal([](Request&) {}), "accepted");
  for (const double temperature : {0.0, 1e-9, 2.0, 1e6}) {
    EXPECT_EQ(refusal([&](Request& request) { request.sampling.temperature = temperature; }), "accepted");
  }
  for (const double top_p : {1e-300, 0.5, 1.0}) {
    EXPECT_EQ(refusal([&](Request& request) { request.sampling.top_p = top_p; }), "accepted");
  }
  for (const int64_t top_k : {int64_t{-1}, int64_t{1}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(refusal([&](Request& request) { request.sampling.top_k = top_k; }), "accepted");
  }
  for (const int64_t count : {-1, 0, 1000}) {
    EXPECT_EQ(refusal([&](Request& request) { request.sampling.top_logprobs = count; }), "accepted");
  }
  EXPECT_EQ(
      refusal([](Request& request) { request.sampling.max_tokens = std::numeric_limits<int64_t>::max(); }),
      "accepted");
  EXPECT_EQ(refusal([](Request& request) { request.sampling.stop_token_ids = {0, 49, 0}; }), "accepted");
  EXPECT_EQ(refusal([](Request& request) { request.prompt.assign(99, 3); }), "accepted");
}

TEST(ValidateRequest, NamesTheFieldTheValueAndTheRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {-0.1, 1e7, nan, infinity, -infinity}) {
    EXPECT_THAT(refusal([&](Request& request) { request.sampling.temperature = value; }),
                AllOf(StartsWith("temperature: "), HasSubstr("expected 0 to 1000000")));
  }
  for (const double value : {0.0, -1.0, 1.0000001, nan, infinity}) {
    EXPECT_THAT(refusal([&](Request& request) { request.sampling.top_p = value; }), StartsWith("top_p: "));
  }
  for (const int64_t value : {int64_t{0}, int64_t{-2}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_THAT(refusal([&](Request& request) { request.sampling.top_k = value; }),
                StartsWith(fmt::format("top_k: {}, expected", value)));
  }
  for (const int64_t value : {int64_t{0}, int64_t{-5}}) {
    EXPECT_THAT(refusal([&](Request& request) { request.sampling.max_tokens = value; }),
                StartsWith(fmt::format("max_tokens: {}, expected", value)));
  }
  for (const int64_t value : {-2, 1001}) {
    EXPECT_THAT(refusal([&](Request& request) { request.sampling.top_logprobs = value; }),
                StartsWith(fmt::format("top_logprobs: {}, expected", value)));
  }
  EXPECT_EQ(refusal([](Request& request) { request.sampling.stop_token_ids = {3, 50}; }),
            "stop_token_ids[1]: token id 50, expected 0 to 49");
  EXPECT_EQ(refusal([](Request& request) { request.sampling.stop_token_ids = {-1}; }),
            "stop_token_ids[0]: token id -1, expected 0 to 49");
  EXPECT_EQ(refusal([](Request& request) { request.prompt = {1, 2, 50}; }),
            "prompt[2]: token id 50, expected 0 to 49");
  EXPECT_EQ(refusal([](Request& request) { request.prompt = {-7}; }),
            "prompt[0]: token id -7, expected 0 to 49");
  EXPECT_THAT(refusal([](Request& request) { request.prompt.clear(); }), StartsWith("prompt: no tokens"));
}

TEST(ValidateRequest, NamesTheAdjustmentThatIsOutOfRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double value : {-0.1, 1.1, nan}) {
    EXPECT_THAT(refusal([&](Request& request) { request.sampling.min_p = value; }), StartsWith("min_p: "));
  }
  for (const double value : {-2.1, 2.1, nan}) {
    EXPECT_THAT(refusal([&](Request& request) { request.sampling.presence_penalty = value; }),
                StartsWith("presence_penalty: "));
    EXPECT_THAT(refusal([&](Request& request) { request.sampling.frequency_penalty = value; }),
                StartsWith("frequency_penalty: "));
  }
  for (const double value : {0.0, -1.0, 101.0, nan}) {
    EXPECT_THAT(refusal([&](Request& request) { request.sampling.repetition_penalty = value; }),
                StartsWith("repetition_penalty: "));
  }
  const auto bias = [](std::vector<TokenBias> biases) {
    return refusal([&](Request& request) { request.sampling.logit_bias = std::move(biases); });
  };
  EXPECT_EQ(bias({{0, -100}, {49, 100}}), "accepted");
  EXPECT_THAT(bias({{50, 1}}), StartsWith("logit_bias: token id 50"));
  EXPECT_THAT(bias({{-1, 1}}), StartsWith("logit_bias: token id -1"));
  EXPECT_THAT(bias({{3, 1}, {3, 1}}), StartsWith("logit_bias: token id 3"));
  EXPECT_THAT(bias({{3, nan}}), StartsWith("logit_bias[3]: "));
  EXPECT_THAT(bias({{3, 101}}), StartsWith("logit_bias[3]: 101"));
  EXPECT_THAT(bias(std::vector<TokenBias>(5000)), StartsWith("logit_bias: 5000 tokens"));
  for (const int64_t value : {-1, 17}) {
    EXPECT_THAT(refusal([&](Request& request) { request.sampling.min_tokens = value; }),
                StartsWith(fmt::format("min_tokens: {}", value)));
  }
  EXPECT_THAT(refusal([](Request& request) { request.sampling.allowed_token_ids = {50}; }),
              StartsWith("allowed_token_ids[0]: token id 50"));
  EXPECT_THAT(refusal([](Request& request) { request.sampling.golden_token_ids = {1, -1}; }),
              StartsWith("golden_token_ids[1]: token id -1"));
  EXPECT_THAT(refusal([](Request& request) { request.sampling.thinking_budget = -2; }),
              StartsWith("thinking_budget: -2"));
  EXPECT_THAT(refusal([](Request& request) { request.sampling.thinking_budget = 5; }),
              StartsWith("thinking_end_token[0]: token id -1"));
  EXPECT_THAT(refusal([](Request& request) {
                request.sampling.allowed_token_ids = {1, 4};
                request.sampling.stop_token_ids = {4};
                request.sampling.min_tokens = 1;
              }),
              StartsWith("allowed_token_ids: only tokens that end the answer"));
  EXPECT_THAT(refusal([](Request& request) {
                request.sampling.stop_token_ids.resize(50);
                std::iota(request.sampling.stop_token_ids.begin(), request.sampling.stop_token_ids.end(), 0);
                request.sampling.min_tokens = 1;
              }),
              StartsWith("stop_token_ids: every token ends the answer"));
}

TEST(ValidateRequest, APromptWithoutRoomNamesBothNumbers) {
  EXPECT_EQ(refusal([](Request& request) { request.prompt.assign(100, 3); }),
            "prompt: 100 tokens leave no room for output, expected fewer than the maximum length of 100");
  EXPECT_THAT(refusal([](Request& request) { request.prompt.assign(100000, 3); }),
              HasSubstr("100000 tokens"));
}

std::string options_refusal(const std::function<void(EngineOptions&)>& change) {
  const FakeModel model({.vocab_size = 50, .max_positions = 200});
  EngineOptions options;
  change(options);
  const Result<EngineOptions> resolved = resolve_options(options, model);
  return resolved ? "accepted" : resolved.error().message;
}

TEST(ResolveOptions, TakesTheLimitOfTheModelByDefault) {
  const FakeModel model({.vocab_size = 50, .max_positions = 200});
  EXPECT_EQ(resolve_options({}, model)->max_model_len, 200);
  EXPECT_EQ(resolve_options({.max_model_len = 150}, model)->max_model_len, 150);
}

TEST(ResolveOptions, NamesTheOptionOutOfRange) {
  EXPECT_THAT(options_refusal([](EngineOptions& options) { options.max_num_seqs = 0; }),
              StartsWith("max_num_seqs: 0"));
  EXPECT_THAT(options_refusal([](EngineOptions& options) { options.max_waiting = -1; }),
              StartsWith("max_waiting: -1"));
  EXPECT_EQ(options_refusal([](EngineOptions& options) { options.max_num_batched_tokens = 63; }),
            "max_num_batched_tokens: 63, expected at least max_num_seqs (64)");
  EXPECT_EQ(options_refusal([](EngineOptions& options) { options.max_num_batched_tokens = 64; }), "accepted");
  EXPECT_EQ(options_refusal([](EngineOptions& options) { options.max_model_len = 201; }),
            "max_model_len: 201, expected 2 to the model's limit of 200");
  EXPECT_THAT(options_refusal([](EngineOptions& options) { options.max_model_len = -4; }),
              StartsWith("max_model_len: -4"));
  EXPECT_THAT(options_refusal([](EngineOptions& options) { options.eos_token_id = 50; }),
              StartsWith("eos_token_id: 50"));
  EXPECT_THAT(options_refusal([](EngineOptions& options) { options.eos_token_id = -1; }),
              StartsWith("eos_token_id: -1"));
}

TEST(ResolveOptions, RefusesAVocabularyThatTheSamplerCannotSum) {
  const FakeModel model({.vocab_size = kMaxRowTokens + 1, .max_positions = 200});
  EXPECT_FALSE(resolve_options({}, model));
}

}  // namespace
}  // namespace hadal::engine
