#include "engine/engine.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <limits>
#include <random>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/log.h"
#include "fake_model.h"

namespace hadal::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

void expect_stats_add_up(const EngineStats& stats) {
  EXPECT_EQ(stats.requests_total, static_cast<uint64_t>(stats.waiting + stats.running) +
                                      stats.finished_stop_total + stats.finished_length_total +
                                      stats.finished_cancelled_total + stats.finished_error_total);
}

class EngineTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(init_logging("off")); }

  ThreadPool pool_{2};
};

TEST_F(EngineTest, AnswersOneRequest) {
  FakeModel model;
  const auto engine = start(model, pool_);
  for (uint32_t number = 0; number < 12; ++number) {
    const Request request = numbered_request(number, model.vocab_size());
    Answer answer;
    submit(*engine, request, answer);
    expect_answer(answer, expected_answer(request, model, engine->options()), request.label);
    EXPECT_EQ(answer.usage().prompt_tokens, static_cast<int64_t>(request.prompt.size()));
    EXPECT_EQ(answer.usage().cached_tokens, 0);
  }
}

TEST_F(EngineTest, DeliversTheTokenThatEndsTheAnswer) {
  FakeModel model;
  const auto engine = start(model, pool_);
  Request request{.prompt = {3, 4}, .sampling = {}, .label = ""};
  request.sampling.max_tokens = 200;
  for (int32_t token = 0; token < model.vocab_size(); ++token) {
    request.sampling.stop_token_ids.push_back(token);
  }
  Answer answer;
  submit(*engine, request, answer);
  EXPECT_EQ(answer.finish(), FinishReason::kStop);
  EXPECT_EQ(answer.tokens().size(), 1U);
}

TEST_F(EngineTest, EndsASequenceAtTheMaximumLength) {
  FakeModel model({.vocab_size = 31, .max_positions = 20});
  for (const int64_t max_model_len : {0, 12}) {
    const auto engine = start(model, pool_, {.max_model_len = max_model_len});
    for (const size_t prompt_length :
         {size_t{1}, size_t{5}, static_cast<size_t>(engine->options().max_model_len - 1)}) {
      Request request{.prompt = std::vector<int32_t>(prompt_length, 2), .sampling = {}, .label = ""};
      request.sampling.max_tokens = 1000;
      request.sampling.ignore_eos = true;
      Answer answer;
      submit(*engine, request, answer);
      EXPECT_EQ(answer.finish(), FinishReason::kLength);
      EXPECT_EQ(static_cast<int64_t>(prompt_length) + answer.num_tokens(), engine->options().max_model_len);
    }
  }
}

struct BatchCase {
  int64_t max_num_seqs;
  int64_t max_num_batched_tokens;
};

class EngineBatches : public testing::TestWithParam<BatchCase> {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(init_logging("off")); }
};

INSTANTIATE_TEST_SUITE_P(Budgets, EngineBatches,
                         testing::Values(BatchCase{1, 1}, BatchCase{2, 2}, BatchCase{1, 3}, BatchCase{3, 3},
                                         BatchCase{4, 7}, BatchCase{7, 7}, BatchCase{1, 64}, BatchCase{5, 64},
                                         BatchCase{64, 64}, BatchCase{16, 2000}),
                         [](const auto& test) {
                           return std::to_string(test.param.max_num_seqs) + "SequencesIn" +
                                  std::to_string(test.param.max_num_batched_tokens) + "Tokens";
                         });

TEST_P(EngineBatches, AnswersDependOnNothingButTheRequest) {
  const EngineOptions options{.max_num_seqs = GetParam().max_num_seqs,
                              .max_num_batched_tokens = GetParam().max_num_batched_tokens};
  constexpr uint32_t kRequests = 40;
  for (uint32_t round = 0; round < 3; ++round) {
    FakeModel model;
    ThreadPool pool(static_cast<int>(round) + 1);
    std::vector<uint32_t> order(kRequests);
    for (uint32_t i = 0; i < kRequests; ++i) {
      order[i] = i;
    }
    std::shuffle(order.begin(), order.end(), std::mt19937(round));
    std::vector<Answer> answers(kRequests);
    {
      const auto engine = start(model, pool, options);
      std::vector<std::shared_ptr<RequestHandle>> cancelled;
      for (const uint32_t number : order) {
        auto handle = submit(*engine, numbered_request(number, model.vocab_size()), answers[number]);
        if ((number + round) % 5 == 0) {
          cancelled.push_back(std::move(handle));
        }
      }
      for (const auto& handle : cancelled) {
        handle->cancel();
      }
      for (const uint32_t number : order) {
        const Request request = numbered_request(number, model.vocab_size());
        if ((number + round) % 5 == 0) {
          answers[number].finish();
        } else {
          expect_answer(answers[number], expected_answer(request, model, options), request.label);
        }
      }
      expect_stats_add_up(engine->stats());
    }
    for (const auto& pass : model.passes()) {
      int64_t tokens = 0;
      for (const FakeModel::Chunk& chunk : pass) {
        tokens += chunk.num_tokens;
      }
      ASSERT_LE(tokens, options.max_num_batched_tokens);
      ASSERT_LE(static_cast<int64_t>(pass.size()), options.max_num_seqs);
    }
  }
}

TEST_F(EngineTest, ASeededRequestIsTheSameNextToAnyOther) {
  FakeModel model;
  const auto engine = start(model, pool_, {.max_num_seqs = 8, .max_num_batched_tokens = 16});
  Request fixed = numbered_request(42, model.vocab_size());
  fixed.sampling.temperature = 1;
  fixed.sampling.seed = 42;
  const Expected expected = expected_answer(fixed, model, engine->options());
  for (uint32_t repeat = 0; repeat < 10; ++repeat) {
    Answer before;
    Answer answer;
    Answer after;
    Request other = numbered_request(100 + repeat, model.vocab_size());
    submit(*engine, other, before);
    submit(*engine, fixed, answer);
    submit(*engine, other, after);
    expect_answer(answer, expected, "repeat " + std::to_string(repeat));
    EXPECT_EQ(before.token_ids(), after.token_ids());
  }
}

TEST_F(EngineTest, LongPromptsDoNotStopTokensOfOthers) {
  Gate gate;
  FakeModel model({.vocab_size = 31, .max_positions = 500}, [&](auto) -> Result<void> {
    gate.pass();
    return {};
  });
  const auto engine = start(model, pool_, {.max_num_seqs = 4, .max_num_batched_tokens = 8});
  Request talker{.prompt = {5}, .sampling = {}, .label = "talker"};
  talker.sampling.max_tokens = 60;
  talker.sampling.ignore_eos = true;
  Answer answer;
  submit(*engine, talker, answer);
  gate.wait_for_arrival();
  Answer long_answers[2];
  for (Answer& long_answer : long_answers) {
    Request reader{.prompt = std::vector<int32_t>(150, 3), .sampling = {}, .label = "reader"};
    reader.sampling.max_tokens = 2;
    submit(*engine, reader, long_answer);
  }
  gate.open();
  EXPECT_EQ(answer.finish(), FinishReason::kLength);
  long_answers[1].finish();
  const auto passes = model.passes();
  ASSERT_GE(passes.size(), 60U);
  // The talker's first pass, then a token of it in each of the next 59; prompts fill the rest of the budget.
  for (size_t i = 1; i < 40; ++i) {
    ASSERT_GE(passes[i].size(), 2U);
    int64_t tokens = 0;
    for (const FakeModel::Chunk& chunk : passes[i]) {
      tokens += chunk.num_tokens;
    }
    EXPECT_EQ(tokens, 8) << "budget left unused";
    EXPECT_EQ(passes[i][0].num_tokens, 1);
    EXPECT_EQ(passes[i][0].start, static_cast<int64_t>(i));
    EXPECT_TRUE(passes[i][0].wants_logits);
  }
}

TEST_F(EngineTest, AdmitsInArrivalOrder) {
  Gate gate;
  std::vector<int32_t> first_tokens;
  FakeModel model({}, [&](std::span<const model::Segment> segments) -> Result<void> {
    for (const model::Segment& segment : segments) {
      if (segment.state->length() == 0) {
        first_tokens.push_back(segment.token_ids[0]);
      }
    }
    gate.pass();
    return {};
  });
  {
    const auto engine = start(model, pool_, {.max_num_seqs = 2, .max_num_batched_tokens = 4});
    std::vector<Answer> answers(10);
    for (int32_t i = 0; i < 10; ++i) {
      Request request{.prompt = std::vector<int32_t>(3, i), .sampling = {}, .label = ""};
      request.sampling.max_tokens = 1 + i % 3;
      submit(*engine, request, answers[i]);
    }
    gate.open();
    for (Answer& answer : answers) {
      answer.finish();
    }
  }
  EXPECT_THAT(first_tokens, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(EngineTest, RefusesWhatItCannotQueue) {
  Gate gate;
  FakeModel model({}, [&](auto) -> Result<void> {
    gate.pass();
    return {};
  });
  const auto engine = start(model, pool_, {.max_num_seqs = 2, .max_num_batched_tokens = 4, .max_waiting = 3});
  std::vector<Answer> answers(5);
  for (Answer& answer : answers) {
    submit(*engine, numbered_request(1, model.vocab_size()), answer);
  }
  Answer refused_answer;
  const auto refused = engine->submit(numbered_request(1, model.vocab_size()), refused_answer.sink());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("max_waiting 3"));
  gate.open();
  for (Answer& answer : answers) {
    answer.finish();
  }
  EXPECT_FALSE(refused_answer.finished());
  Answer again;
  submit(*engine, numbered_request(1, model.vocab_size()), again);
  again.finish();
}

TEST_F(EngineTest, RefusesBadRequestsAndOptionsBeforeTheyAreQueued) {
  FakeModel model({.vocab_size = 31, .max_positions = 64});
  const auto engine = start(model, pool_);
  const auto refusal = [&](
                           Request request, OutputSink sink = [](Output) { ADD_FAILURE(); }) {
    const auto handle = engine->submit(std::move(request), std::move(sink));
    EXPECT_FALSE(handle);
    return handle ? Error{} : handle.error();
  };
  Request too_long{.prompt = std::vector<int32_t>(64, 1), .sampling = {}, .label = ""};
  EXPECT_THAT(refusal(too_long).message, AllOf(HasSubstr("64 tokens"), HasSubstr("maximum length of 64")));
  Request bad_token{.prompt = {1, 31}, .sampling = {}, .label = ""};
  EXPECT_THAT(refusal(bad_token).message, StartsWith("prompt[1]"));
  Request bad_temperature{.prompt = {1}, .sampling = {}, .label = ""};
  bad_temperature.sampling.temperature = -1;
  EXPECT_EQ(refusal(bad_temperature).code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refusal({.prompt = {1}, .sampling = {}, .label = ""}, nullptr).message, StartsWith("sink"));
  EXPECT_EQ(engine->stats().requests_total, 0U);

  const auto not_started = Engine::start(model, pool_, {.max_num_seqs = 0});
  ASSERT_FALSE(not_started);
  EXPECT_THAT(not_started.error().message, StartsWith("max_num_seqs"));
}

TEST_F(EngineTest, AFailedPassEndsThoseInItAndNobodyElse) {
  Gate gate;
  std::atomic<bool> fail_next{false};
  FakeModel model({}, [&](auto) -> Result<void> {
    gate.pass();
    if (fail_next.exchange(false)) {
      return fail(ErrorCode::kIo, "engram row 7: read error");
    }
    return {};
  });
  const auto engine = start(model, pool_, {.max_num_seqs = 2, .max_num_batched_tokens = 64});
  std::vector<Answer> answers(4);
  for (uint32_t i = 0; i < 4; ++i) {
    Request request = numbered_request(i, model.vocab_size());
    request.sampling.max_tokens = 5;
    request.sampling.ignore_eos = true;
    request.sampling.stop_token_ids.clear();
    submit(*engine, request, answers[i]);
    if (i == 0) {
      gate.wait_for_arrival();  // the first pass has this one alone; the next two have both
    }
  }
  gate.let_through(2);
  fail_next = true;
  gate.open();
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(answers[i].finish(), FinishReason::kError);
    ASSERT_TRUE(answers[i].error());
    EXPECT_EQ(answers[i].error()->code, ErrorCode::kIo);
    EXPECT_THAT(answers[i].error()->message, HasSubstr("engram row 7"));
  }
  EXPECT_EQ(answers[0].num_tokens(), 2);
  EXPECT_EQ(answers[1].num_tokens(), 1);
  for (uint32_t i = 2; i < 4; ++i) {
    EXPECT_EQ(answers[i].finish(), FinishReason::kLength);
    EXPECT_EQ(answers[i].num_tokens(), 5);
  }
  EXPECT_EQ(engine->stats().finished_error_total, 2U);
  expect_stats_add_up(engine->stats());
}

TEST_F(EngineTest, ABadRowEndsItsRequestAlone) {
  FakeModel model({}, {}, [](std::span<const model::Segment> segments) {
    for (const model::Segment& segment : segments) {
      if (!segment.logits.empty() && segment.state->engram_context()[0] == 13 &&
          segment.state->length() == 6) {
        segment.logits[5] = std::numeric_limits<float>::quiet_NaN();
      }
    }
  });
  const auto engine = start(model, pool_);
  std::vector<Answer> answers(3);
  std::vector<Request> requests;
  for (int32_t i = 0; i < 3; ++i) {
    requests.push_back({.prompt = {12 + i, 2, 3}, .sampling = {}, .label = "r"});
    requests.back().sampling.ignore_eos = true;
    requests.back().sampling.max_tokens = 20;
    submit(*engine, requests.back(), answers[i]);
  }
  expect_answer(answers[0], expected_answer(requests[0], model, engine->options()), "before");
  expect_answer(answers[2], expected_answer(requests[2], model, engine->options()), "after");
  EXPECT_EQ(answers[1].finish(), FinishReason::kError);
  EXPECT_EQ(answers[1].num_tokens(), 3);
  EXPECT_THAT(answers[1].error()->message, HasSubstr("position 6: token 5 has nan"));
}

TEST_F(EngineTest, StatsAddUp) {
  FakeModel model;
  const auto engine = start(model, pool_, {.max_num_seqs = 3, .max_num_batched_tokens = 20});
  uint64_t prompt_tokens = 0;
  uint64_t output_tokens = 0;
  std::array<uint64_t, 4> finished{};
  std::vector<Answer> answers(50);
  for (uint32_t i = 0; i < 50; ++i) {
    const Request request = numbered_request(i, model.vocab_size());
    prompt_tokens += request.prompt.size();
    const auto handle = submit(*engine, request, answers[i]);
    if (i % 10 == 9) {
      handle->cancel();
    }
    expect_stats_add_up(engine->stats());
  }
  for (Answer& answer : answers) {
    ++finished[static_cast<size_t>(answer.finish())];
    output_tokens += static_cast<uint64_t>(answer.num_tokens());
  }
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.requests_total, 50U);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.prompt_tokens_total, prompt_tokens);
  EXPECT_EQ(stats.generation_tokens_total, output_tokens);
  EXPECT_EQ(stats.finished_stop_total, finished[static_cast<size_t>(FinishReason::kStop)]);
  EXPECT_EQ(stats.finished_length_total, finished[static_cast<size_t>(FinishReason::kLength)]);
  EXPECT_EQ(stats.finished_cancelled_total, finished[static_cast<size_t>(FinishReason::kCancelled)]);
  EXPECT_GT(stats.finished_stop_total, 0U);
  EXPECT_GT(stats.finished_length_total, 0U);
  EXPECT_EQ(stats.steps_total, model.passes().size());
  EXPECT_GT(stats.step_seconds_total, 0);
}

/// User and system time, in clock ticks, of this process's thread of that name; -1 if there is none.
int64_t thread_ticks(std::string_view wanted) {
  int64_t found = -1;
  DIR* tasks = opendir("/proc/self/task");
  for (const dirent* entry = readdir(tasks); entry != nullptr; entry = readdir(tasks)) {
    std::array<char, 512> text{};
    const std::string path = std::string("/proc/self/task/") + entry->d_name + "/stat";
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      continue;
    }
    const ssize_t size = read(file, text.data(), text.size() - 1);
    close(file);
    const std::string stat(text.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
    const size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || stat.substr(stat.find('(') + 1, wanted.size()) != wanted) {
      continue;
    }
    long user = 0;
    long system = 0;
    if (std::sscanf(stat.c_str() + name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld",
                    &user, &system) == 2) {
      found = user + system;
    }
  }
  closedir(tasks);
  return found;
}

TEST_F(EngineTest, SleepsWhenThereIsNothingToDo) {
  FakeModel model;
  const auto engine = start(model, pool_);
  Answer answer;
  submit(*engine, numbered_request(3, model.vocab_size()), answer);
  answer.finish();
  const size_t num_passes = model.passes().size();
  const int64_t before = thread_ticks("engine-step");
  ASSERT_GE(before, 0) << "the step thread has no name";
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LE(thread_ticks("engine-step") - before, 2) << "of some 30 ticks";
  EXPECT_EQ(model.passes().size(), num_passes);
}

}  // namespace
}  // namespace hadal::engine
