// How requests end early: cancellation at every stage, and shutdown.

#include <atomic>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "base/log.h"
#include "engine/engine.h"
#include "fake_model.h"

namespace hadal::engine {
namespace {

Request endless_request(size_t prompt_length = 4) {
  Request request{.prompt = std::vector<int32_t>(prompt_length, 6), .sampling = {}, .label = "endless"};
  request.sampling.max_tokens = 1000000;
  request.sampling.ignore_eos = true;
  return request;
}

class EngineCancelTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(init_logging("off")); }

  void start(const EngineOptions& options) {
    Result<std::unique_ptr<Engine>> engine = Engine::start(model_, pool_, options);
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = std::move(*engine);
  }
  std::shared_ptr<RequestHandle> submit(Request request, Answer& answer) {
    Result<std::shared_ptr<RequestHandle>> handle = engine_->submit(std::move(request), answer.sink());
    EXPECT_TRUE(handle) << handle.error().message;
    return handle.value_or(nullptr);
  }
  void TearDown() override { gate_.open(); }

  Gate gate_;
  FakeModel model_{{.vocab_size = 31, .max_positions = 1 << 20}, [this](auto) -> Result<void> {
                     gate_.pass();
                     return {};
                   }};
  ThreadPool pool_{2};
  std::unique_ptr<Engine> engine_;  ///< destroyed first, after TearDown has opened the gate
};

TEST_F(EngineCancelTest, EndsARunningRequestWithoutAnotherToken) {
  start({});
  Answer answer;
  const auto handle = submit(endless_request(), answer);
  gate_.let_through(3);  // three tokens given, the fourth pass is on
  answer.wait_for_tokens(3);
  handle->cancel();
  gate_.let_through(0);
  gate_.open();
  EXPECT_EQ(answer.finish(), FinishReason::kCancelled);
  EXPECT_EQ(answer.num_tokens(), 3);
  EXPECT_EQ(answer.usage().completion_tokens, 3);
  EXPECT_EQ(engine_->stats().finished_cancelled_total, 1U);
  EXPECT_EQ(engine_->stats().steps_total, 4U);
}

TEST_F(EngineCancelTest, EndsAWaitingRequestWithinOneStep) {
  start({.max_num_seqs = 1, .max_num_batched_tokens = 8});
  Answer running;
  Answer waiting;
  Answer next;
  const auto running_handle = submit(endless_request(), running);
  const auto handle = submit(endless_request(), waiting);
  const auto next_handle = submit(endless_request(), next);
  gate_.let_through(1);
  handle->cancel();
  gate_.let_through(1);  // the pass that was on, and here is the next one
  EXPECT_TRUE(waiting.finished());
  EXPECT_EQ(waiting.finish(), FinishReason::kCancelled);
  EXPECT_EQ(waiting.num_tokens(), 0);
  EXPECT_EQ(waiting.usage().prompt_tokens, 4);
  EXPECT_EQ(engine_->stats().waiting, 1);
  running_handle->cancel();
  gate_.let_through(2);
  EXPECT_EQ(running.finish(), FinishReason::kCancelled);
  next.wait_for_tokens(1);
  EXPECT_EQ(next.num_tokens(), 1);
  next_handle->cancel();
}

TEST_F(EngineCancelTest, EndsARequestThatTheStepThreadHasNotSeenYet) {
  start({.max_num_seqs = 1, .max_num_batched_tokens = 8});
  Answer running;
  submit(endless_request(), running);
  gate_.let_through(1);
  Answer late;
  submit(endless_request(), late)
      ->cancel();  // both during one pass, at whose end cancellations are looked at
  gate_.let_through(1);
  EXPECT_TRUE(late.finished());
  EXPECT_EQ(late.finish(), FinishReason::kCancelled);
  EXPECT_FALSE(running.finished());
}

TEST_F(EngineCancelTest, EndsAHalfReadPromptWithinOneStep) {
  start({.max_num_seqs = 2, .max_num_batched_tokens = 10});
  Answer reader;
  Answer talker;
  const auto handle = submit(endless_request(1000), reader);
  gate_.let_through(5);
  submit(endless_request(), talker);
  handle->cancel();
  gate_.let_through(1);
  EXPECT_EQ(reader.finish(), FinishReason::kCancelled);
  EXPECT_EQ(reader.num_tokens(), 0);
  gate_.let_through(2);
  talker.wait_for_tokens(2);
  const auto passes = model_.passes();
  EXPECT_EQ(passes[5].size(), 1U);
  EXPECT_EQ(passes[6].size(), 1U) << "the cancelled prompt is not read on";
  EXPECT_EQ(passes[6][0].start, 0);
}

TEST_F(EngineCancelTest, IsIgnoredAfterTheEndAndAfterTheEngine) {
  gate_.open();
  start({});
  Answer answer;
  Request request = endless_request();
  request.sampling.max_tokens = 2;
  const auto handle = submit(request, answer);
  EXPECT_EQ(answer.finish(), FinishReason::kLength);
  handle->cancel();
  handle->cancel();
  Answer second;
  submit(request, second);
  EXPECT_EQ(second.finish(), FinishReason::kLength);
  EXPECT_EQ(engine_->stats().finished_cancelled_total, 0U);
  engine_.reset();
  handle->cancel();
}

TEST_F(EngineCancelTest, WorksFromTheSink) {
  gate_.open();
  start({});
  struct Shared {
    std::mutex mutex;
    std::shared_ptr<RequestHandle> handle;
  };
  const auto shared = std::make_shared<Shared>();
  Answer answer;
  std::unique_lock lock(shared->mutex);
  auto sink = [shared, inner = answer.sink(), count = 0](Output output) mutable {
    inner(std::move(output));
    if (++count == 5) {
      const std::lock_guard sink_lock(shared->mutex);  // submit() may not have returned yet
      shared->handle->cancel();
      shared->handle.reset();
    }
  };
  auto handle = engine_->submit(endless_request(), std::move(sink));
  ASSERT_TRUE(handle);
  shared->handle = *handle;
  lock.unlock();
  EXPECT_EQ(answer.finish(), FinishReason::kCancelled);
  EXPECT_EQ(answer.num_tokens(), 5);
}

TEST_F(EngineCancelTest, FreesTheRequestSoonAfterItsLastOutput) {
  start({});
  Answer other;
  submit(endless_request(), other);
  auto resource = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = resource;
  Answer answer;
  auto handle = engine_->submit(endless_request(), [inner = answer.sink(), held = std::move(resource)](
                                                       Output output) { inner(std::move(output)); });
  ASSERT_TRUE(handle);
  gate_.let_through(3);
  EXPECT_FALSE(watch.expired());
  (*handle)->cancel();
  gate_.let_through(1);  // here is the pass after the one in which it ended
  EXPECT_TRUE(answer.finished());
  EXPECT_TRUE(watch.expired()) << "the handle alone must not keep the request";
}

TEST_F(EngineCancelTest, AStormLeavesTheOthersAsTheyWere) {
  gate_.open();
  const EngineOptions options{.max_num_seqs = 6, .max_num_batched_tokens = 24};
  start(options);
  constexpr uint32_t kThreads = 4;
  constexpr uint32_t kRequests = 100;
  std::vector<Answer> answers(kThreads * kRequests);
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(thread);
      std::vector<std::shared_ptr<RequestHandle>> handles;
      for (uint32_t i = 0; i < kRequests; ++i) {
        const uint32_t number = thread * kRequests + i;
        auto handle = submit(numbered_request(number, model_.vocab_size()), answers[number]);
        if (number % 4 != 0) {
          handles.push_back(std::move(handle));
        }
        if (random() % 3 == 0 && !handles.empty()) {
          handles[random() % handles.size()]->cancel();
        }
        if (random() % 8 == 0) {
          answers[number].wait_for_tokens(1);
        }
      }
      for (const auto& handle : handles) {
        handle->cancel();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  uint64_t tokens = 0;
  for (uint32_t number = 0; number < answers.size(); ++number) {
    const Request request = numbered_request(number, model_.vocab_size());
    const Expected expected = expected_answer(request, model_, options);
    const FinishReason finish = answers[number].finish();
    if (number % 4 == 0) {
      expect_answer(answers[number], expected, request.label);
    } else if (finish == FinishReason::kCancelled) {
      const auto ids = answers[number].token_ids();
      ASSERT_LE(ids.size(), expected.tokens.size());
      for (size_t i = 0; i < ids.size(); ++i) {
        EXPECT_EQ(ids[i], expected.tokens[i].token) << request.label;
      }
    } else {
      expect_answer(answers[number], expected, request.label);
    }
    tokens += static_cast<uint64_t>(answers[number].num_tokens());
  }
  const EngineStats stats = engine_->stats();
  EXPECT_EQ(stats.requests_total, answers.size());
  EXPECT_EQ(stats.finished_stop_total + stats.finished_length_total + stats.finished_cancelled_total,
            answers.size());
  EXPECT_EQ(stats.waiting + stats.running, 0);
  EXPECT_EQ(stats.generation_tokens_total, tokens);
}

TEST_F(EngineCancelTest, ShutdownEndsEverythingExactlyOnce) {
  std::vector<Answer> answers(9);
  start({.max_num_seqs = 3, .max_num_batched_tokens = 8});
  for (Answer& answer : answers) {
    submit(endless_request(5), answer);
  }
  gate_.let_through(4);
  std::thread opener([&] { gate_.open(); });
  engine_.reset();
  opener.join();
  int64_t with_tokens = 0;
  for (Answer& answer : answers) {
    ASSERT_TRUE(answer.finished()) << "the destructor has returned";
    EXPECT_EQ(answer.finish(), FinishReason::kCancelled);
    with_tokens += answer.num_tokens() > 0 ? 1 : 0;
  }
  EXPECT_EQ(with_tokens, 3);
}

TEST_F(EngineCancelTest, ShutdownReachesRequestsThatWereNeverLookedAt) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<Answer> answers(3);
    gate_.open();
    start({.max_num_seqs = 1, .max_num_batched_tokens = 8});
    for (Answer& answer : answers) {
      submit(endless_request(2), answer);
    }
    engine_.reset();
    for (Answer& answer : answers) {
      ASSERT_TRUE(answer.finished());
      EXPECT_EQ(answer.finish(), FinishReason::kCancelled);
    }
  }
}

TEST_F(EngineCancelTest, AnIdleEngineStopsAtOnce) {
  start({});
  engine_.reset();
  EXPECT_TRUE(model_.passes().empty());
}

}  // namespace
}  // namespace hadal::engine
