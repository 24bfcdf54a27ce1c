// The engine that answers from a script: order, ends, delays, cancellation, counts.

#include "engine/scripted_engine.h"

#include <condition_variable>
#include <mutex>

#include <gtest/gtest.h>

#include "base/log.h"

namespace hadal::engine {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kVocabSize = 100;

/// Collects the outputs of one request.
class Listener {
 public:
  OutputSink sink() {
    return [this](Output output) {
      const std::lock_guard lock(mutex_);
      outputs_.push_back(std::move(output));
      changed_.notify_all();
    };
  }
  /// Waits for the last output; all of them.
  std::vector<Output> wait() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 30s, [&] { return !outputs_.empty() && outputs_.back().finish; }));
    return outputs_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Output> outputs_;
};

std::vector<std::vector<int32_t>> pieces_of(const std::vector<Output>& outputs) {
  std::vector<std::vector<int32_t>> pieces;
  for (const Output& output : outputs) {
    if (!output.tokens.empty()) {
      std::vector<int32_t>& piece = pieces.emplace_back();
      for (const OutputToken& token : output.tokens) {
        piece.push_back(token.token);
      }
    }
  }
  return pieces;
}

std::unique_ptr<Engine> start(std::vector<ScriptedAnswer> script, EngineOptions options = {}) {
  auto engine = ScriptedEngine::start(std::move(script), kVocabSize, options);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

Request request(int64_t max_tokens = 100) {
  Request request{.prompt = {3, 4, 5}, .sampling = {}, .label = ""};
  request.sampling.max_tokens = max_tokens;
  return request;
}

class ScriptedEngineTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(init_logging("off")); }
};

TEST_F(ScriptedEngineTest, GivesAnswersInOrderAndFromTheFirstAgain) {
  const auto engine = start({{.pieces = {{7, 8}, {9}}}, {.pieces = {{10}}, .finish = FinishReason::kLength}});
  for (int round = 0; round < 2; ++round) {
    Listener first;
    ASSERT_TRUE(engine->submit(request(), first.sink()));
    const auto outputs = first.wait();
    EXPECT_EQ(pieces_of(outputs), (std::vector<std::vector<int32_t>>{{7, 8}, {9}}));
    EXPECT_EQ(outputs.back().finish, FinishReason::kStop);
    EXPECT_EQ(outputs.back().usage.prompt_tokens, 3);
    EXPECT_EQ(outputs.back().usage.completion_tokens, 3);
    Listener second;
    ASSERT_TRUE(engine->submit(request(), second.sink()));
    EXPECT_EQ(second.wait().back().finish, FinishReason::kLength);
  }
}

TEST_F(ScriptedEngineTest, RequestsSubmittedTogetherGetTheirAnswersInThatOrder) {
  std::vector<ScriptedAnswer> script;
  for (int32_t id = 10; id < 30; ++id) {
    script.push_back({.pieces = {{id}}});
  }
  const auto engine = start(script, {.max_num_seqs = 3});
  std::vector<Listener> listeners(script.size());
  for (Listener& listener : listeners) {
    ASSERT_TRUE(engine->submit(request(), listener.sink()));
  }
  for (size_t i = 0; i < listeners.size(); ++i) {
    EXPECT_EQ(pieces_of(listeners[i].wait()), script[i].pieces);
  }
}

TEST_F(ScriptedEngineTest, EndsWhereAModelWouldEnd) {
  const auto engine = start({{.pieces = {{7, 8, 1, 9}, {10}}, .finish = FinishReason::kLength}},
                            {.max_model_len = 6, .eos_token_id = 1});
  struct Case {
    int64_t max_tokens;
    bool ignore_eos;
    std::vector<int32_t> stops;
    std::vector<int32_t> tokens;
    FinishReason finish;
  };
  const std::vector<Case> cases{{100, false, {}, {7, 8, 1}, FinishReason::kStop},
                                {2, false, {}, {7, 8}, FinishReason::kLength},
                                {100, false, {8}, {7, 8}, FinishReason::kStop},
                                {100, true, {}, {7, 8, 1}, FinishReason::kLength}};  // the maximum length
  for (const Case& each : cases) {
    Request asked = request(each.max_tokens);
    asked.sampling.ignore_eos = each.ignore_eos;
    asked.sampling.stop_token_ids = each.stops;
    Listener listener;
    ASSERT_TRUE(engine->submit(asked, listener.sink()));
    const auto outputs = listener.wait();
    EXPECT_EQ(pieces_of(outputs), std::vector<std::vector<int32_t>>{each.tokens});
    EXPECT_EQ(outputs.back().finish, each.finish);
    EXPECT_EQ(outputs.size(), 1U) << "the token that ends the answer comes with the end";
  }
}

TEST_F(ScriptedEngineTest, WaitsInFrontOfEachPiece) {
  const auto engine = start({{.pieces = {{7}, {8}}, .delay = 30ms}});
  Listener listener;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(engine->submit(request(), listener.sink()));
  listener.wait();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 60ms);
}

TEST_F(ScriptedEngineTest, ACancellationDoesNotWaitForTheNextPiece) {
  const auto engine = start({{.pieces = {{7}}, .delay = 1h}});
  Listener running;
  const auto handle = engine->submit(request(), running.sink());
  ASSERT_TRUE(handle);
  (*handle)->cancel();
  const auto outputs = running.wait();
  EXPECT_EQ(outputs.size(), 1U);
  EXPECT_EQ(outputs.back().finish, FinishReason::kCancelled);
  EXPECT_EQ(engine->stats().finished_cancelled_total, 1U);
  EXPECT_EQ(engine->stats().running + engine->stats().waiting, 0);
}

TEST_F(ScriptedEngineTest, WhatWaitsForAPlaceCanBeCancelledAndTheRestRuns) {
  const auto engine =
      start({{.pieces = {{7}}, .delay = 1h}, {.pieces = {{8}}}, {.pieces = {{9}}}}, {.max_num_seqs = 1});
  std::vector<Listener> listeners(3);
  std::vector<std::shared_ptr<RequestHandle>> handles;
  for (Listener& listener : listeners) {
    auto handle = engine->submit(request(), listener.sink());
    ASSERT_TRUE(handle);
    handles.push_back(*handle);
  }
  handles[1]->cancel();
  EXPECT_EQ(listeners[1].wait().back().finish, FinishReason::kCancelled);
  handles[0]->cancel();
  EXPECT_EQ(pieces_of(listeners[2].wait()), (std::vector<std::vector<int32_t>>{{9}}));
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.running + stats.waiting, 0);
  EXPECT_EQ(stats.finished_cancelled_total, 2U);
  EXPECT_EQ(stats.finished_stop_total, 1U);
  EXPECT_EQ(stats.generation_tokens_total, 1U);
}

TEST_F(ScriptedEngineTest, HandlesMayOutliveIt) {
  auto engine = start({{.pieces = {{7}}, .delay = 1h}});
  Listener listener;
  const auto handle = engine->submit(request(), listener.sink());
  ASSERT_TRUE(handle);
  engine.reset();
  EXPECT_EQ(listener.wait().back().finish, FinishReason::kCancelled);
  (*handle)->cancel();
}

TEST_F(ScriptedEngineTest, CountsThePromptAsTheScriptSays) {
  const auto engine = start({{.pieces = {{7}}, .prompt_tokens = 55}, {.pieces = {{7}}}});
  Listener counted;
  const auto handle = engine->submit(request(), counted.sink());
  ASSERT_TRUE(handle);
  EXPECT_EQ((*handle)->counted_prompt_tokens(), 55);
  EXPECT_EQ(counted.wait().back().usage.prompt_tokens, 55);
  Listener plain;
  const auto other = engine->submit(request(), plain.sink());
  ASSERT_TRUE(other);
  EXPECT_EQ((*other)->counted_prompt_tokens(), std::nullopt);
  EXPECT_EQ(plain.wait().back().usage.prompt_tokens, 3);
  EXPECT_EQ(engine->stats().prompt_tokens_total, 58U);
}

TEST_F(ScriptedEngineTest, TokensAreCertain) {
  const auto engine = start({{.pieces = {{1, 0}}}}, {.eos_token_id = 99});
  Request asked = request();
  asked.sampling.top_logprobs = 2;
  Listener listener;
  ASSERT_TRUE(engine->submit(asked, listener.sink()));
  const auto outputs = listener.wait();
  for (size_t i = 0; i < 2; ++i) {
    const OutputToken& token = outputs[0].tokens[i];
    ASSERT_EQ(token.top.size(), 2U);
    EXPECT_EQ(token.logprob, 0.0F);
    EXPECT_EQ(token.top[0].token, token.token);
    EXPECT_EQ(token.top[1].token, token.token == 0 ? 1 : 0);
    EXPECT_EQ(token.top[1].logprob, -9999.0F);
  }
}

TEST_F(ScriptedEngineTest, ARefusedRequestTakesNoAnswer) {
  const auto engine = start({{.pieces = {{7}}}, {.pieces = {{8}}}}, {.max_num_seqs = 1, .max_waiting = 0});
  Request wrong = request();
  wrong.prompt = {1000};
  Listener listener;
  const auto refused = engine->submit(wrong, listener.sink());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(engine->submit(request(), listener.sink()));
  EXPECT_EQ(pieces_of(listener.wait()), (std::vector<std::vector<int32_t>>{{7}}));
}

TEST_F(ScriptedEngineTest, AFullQueueRefuses) {
  std::vector<Listener> listeners(3);  // before the engine, which ends what runs when it goes
  const auto engine = start({{.pieces = {{7}}, .delay = 1h}}, {.max_num_seqs = 1, .max_waiting = 1});
  ASSERT_TRUE(engine->submit(request(), listeners[0].sink()));
  ASSERT_TRUE(engine->submit(request(), listeners[1].sink()));
  const auto refused = engine->submit(request(), listeners[2].sink());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
}

TEST_F(ScriptedEngineTest, RefusesScriptsThatItCannotGive) {
  const std::vector<std::pair<std::vector<ScriptedAnswer>, std::string>> cases{
      {{}, "script: no answers"},
      {{{.pieces = {{7}}}, {.pieces = {{100}}}}, "script[1]: token id 100, expected 0 to 99"},
      {{{.finish = FinishReason::kError}}, "script[0].finish"}};
  for (const auto& [script, part] : cases) {
    const auto engine = ScriptedEngine::start(script, kVocabSize, {});
    ASSERT_FALSE(engine);
    EXPECT_NE(engine.error().message.find(part), std::string::npos) << engine.error().message;
  }
  EXPECT_FALSE(ScriptedEngine::start({{.pieces = {{7}}}}, kVocabSize, {.max_num_seqs = 0}));
}

}  // namespace
}  // namespace hadal::engine
