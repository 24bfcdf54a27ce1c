// The prefix cache, the memory budget and preemption, seen through the engine: whatever is reused, dropped or
// computed again, every answer is the one of a lone cold request. The fake model checks all rows of a state
// in each pass.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/engine.h"
#include "engine/state_store.h"
#include "fake_model.h"

namespace hadal::engine {
namespace {

using testing::HasSubstr;

constexpr int64_t kBlock = cache::kBlockTokens;
constexpr int64_t kKeep = 20;

using Tokens = std::vector<int32_t>;

Tokens some_tokens(uint32_t seed, int64_t count) {
  std::mt19937 random(seed);
  Tokens tokens(static_cast<size_t>(count));
  std::generate(tokens.begin(), tokens.end(), [&] { return static_cast<int32_t>(random() % 31); });
  return tokens;
}

Tokens operator+(Tokens first, const Tokens& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Request request_for(Tokens prompt, int64_t max_tokens = 5) {
  Request request{.prompt = std::move(prompt), .sampling = {}, .label = "test"};
  request.sampling.max_tokens = max_tokens;
  request.sampling.ignore_eos = true;
  request.sampling.seed = 3;
  return request;
}

class PrefixCacheTest : public testing::TestWithParam<bool> {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(init_logging("off")); }

  bool has_replay() const { return GetParam(); }

  void start(EngineOptions options = {}, bool has_drafts = false) {
    engine_.reset();
    auto engine = Engine::start(has_drafts ? drafting_ : model_, pool_, options);
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = std::move(*engine);
  }

  /// Runs one request, checks its answer, and returns how many of its tokens were cached.
  int64_t run(const Request& request) {
    Answer answer;
    EXPECT_TRUE(engine_->submit(request, answer.sink()));
    expect_answer(answer, expected_answer(request, model_, engine_->options()), "");
    return answer.usage().cached_tokens;
  }

  /// The most that a prompt of this length can reuse.
  int64_t most(int64_t length) const {
    return std::max<int64_t>(length - (has_replay() ? kKeep : 1), 0) / kBlock * kBlock;
  }

  uint64_t state_bytes(int64_t blocks) const {
    return model_.new_state(1)->layout().ring_bytes() +
           static_cast<uint64_t>(blocks) * cache::BlockShape(FakeModel::small_layout(has_replay())).bytes;
  }

  FakeModel model_{{.vocab_size = 31,
                    .max_positions = 10000,
                    .layout = FakeModel::small_layout(GetParam()),
                    .replay_keep = kKeep}};
  FakeModel drafting_{{.vocab_size = 31,
                       .max_positions = 10000,
                       .layout = FakeModel::small_layout(GetParam()),
                       .replay_keep = kKeep,
                       .draft_length = 3}};
  ThreadPool pool_{2};
  std::unique_ptr<Engine> engine_;
};

INSTANTIATE_TEST_SUITE_P(Replay, PrefixCacheTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "bounded" : "off"; });

TEST_P(PrefixCacheTest, APromptThatComesAgainIsComputedFromItsLastUsableBorderOn) {
  start();
  for (const int64_t length : {1, 100, 128, 129, 147, 148, 149, 256, 257, 500, 2000}) {
    const Request request = request_for(some_tokens(static_cast<uint32_t>(length), length));
    EXPECT_EQ(run(request), 0) << length;
    EXPECT_EQ(run(request), most(length)) << length;
    EXPECT_EQ(run(request), most(length)) << length;
  }
  const EngineStats::Cache stats = engine_->stats().cache;
  EXPECT_EQ(stats.lookups_total, 33U);
  EXPECT_EQ(stats.hits_total, has_replay() ? 12U : 16U);
}

TEST_P(PrefixCacheTest, WithoutItNothingIsKept) {
  start({.prefix_cache = false});
  const Request request = request_for(some_tokens(1, 700));
  EXPECT_EQ(run(request), 0);
  EXPECT_EQ(run(request), 0);
  EXPECT_EQ(engine_->stats().cache.used_bytes, 0U);
  EXPECT_EQ(engine_->stats().cache.lookups_total, 0U);
}

TEST_P(PrefixCacheTest, TenantsAndSaltsAreApart) {
  start();
  Request request = request_for(some_tokens(2, 400));
  run(request);
  EXPECT_GT(run(request), 0);
  Request other = request;
  other.cache_tenant = "b";
  EXPECT_EQ(run(other), 0);
  Request salted = request;
  salted.cache_salt = "b";
  EXPECT_EQ(run(salted), 0) << "a salt that spells the tenant is no tenant";
  EXPECT_GT(run(other), 0);
  EXPECT_GT(run(salted), 0);
}

TEST_P(PrefixCacheTest, ConversationsThatAlternateStayWarm) {
  start();
  Tokens first = some_tokens(3, 3000);
  Tokens second = some_tokens(4, 3000);
  for (uint32_t round = 0; round < 4; ++round) {
    for (Tokens* conversation : {&first, &second}) {
      const Request request = request_for(*conversation, 40);
      const int64_t cached = run(request);
      if (round > 0) {
        EXPECT_GE(cached, 2800) << round;
      }
      const auto answer = expected_answer(request, model_, engine_->options());
      for (const auto& token : answer.tokens) {
        conversation->push_back(token.token);
      }
      *conversation = *conversation + some_tokens(10 + round, 30);
    }
  }
}

TEST_P(PrefixCacheTest, TheNextTurnGoesOnFromTheEndOfTheAnswer) {
  start();
  const Request first = request_for(some_tokens(5, 100), 300);
  run(first);
  Tokens next = first.prompt;
  for (const auto& token : expected_answer(first, model_, engine_->options()).tokens) {
    next.push_back(token.token);
  }
  EXPECT_EQ(run(request_for(next + some_tokens(6, 50))), 384 / kBlock * kBlock);
}

TEST_P(PrefixCacheTest, ACommonBeginningIsFoundOnceTwoPromptsHaveIt) {
  start();
  const Tokens common = some_tokens(7, 700);
  EXPECT_EQ(run(request_for(common + some_tokens(8, 400))), 0);
  EXPECT_EQ(run(request_for(common + some_tokens(9, 400))), 0) << "no snapshot there yet";
  EXPECT_EQ(run(request_for(common + some_tokens(10, 400))), 640);
}

TEST_P(PrefixCacheTest, LongPromptsLeavePlacesToGoOnFrom) {
  start({.max_num_batched_tokens = 1000});
  const Tokens common = some_tokens(11, 5000);
  run(request_for(common + some_tokens(12, 400)));
  EXPECT_EQ(run(request_for(Tokens(common.begin(), common.begin() + 4500) + some_tokens(13, 100))), 4096);
}

TEST_P(PrefixCacheTest, HoldsToItsMemoryAndDropsWhatIsOld) {
  const uint64_t limit = state_bytes(60);
  start({.max_model_len = 2000, .cache_memory = limit});
  for (uint32_t i = 0; i < 40; ++i) {
    run(request_for(some_tokens(100 + i, 300 + 40 * i)));
    EXPECT_LE(engine_->stats().cache.used_bytes, limit);
  }
  const EngineStats stats = engine_->stats();
  EXPECT_GT(stats.cache.evictions_total, 0U);
  EXPECT_EQ(stats.preemptions_total, 0U);
  EXPECT_GT(run(request_for(some_tokens(139, 300 + 40 * 39))), 0) << "the newest is still there";
  EXPECT_EQ(run(request_for(some_tokens(100, 300))), 0) << "the oldest is not";
}

TEST_P(PrefixCacheTest, RequestsWaitForRoomAndAreSetBackWithoutLoss) {
  // Room for about three of the long answers at once.
  for (const bool keeps : {false, true}) {
    start({.max_num_seqs = 16,
           .max_num_batched_tokens = 64,
           .max_model_len = 900,
           .prefix_cache = keeps,
           .cache_memory = state_bytes(8) + 2 * state_bytes(5)});
    std::vector<Request> requests;
    std::vector<Answer> answers(16);
    for (uint32_t i = 0; i < 16; ++i) {
      requests.push_back(request_for(some_tokens(i % 5, 20 + 30 * (i % 5)), 600));
      requests.back().sampling.seed = i;
      ASSERT_TRUE(engine_->submit(requests.back(), answers[i].sink()));
    }
    for (uint32_t i = 0; i < 16; ++i) {
      expect_answer(answers[i], expected_answer(requests[i], model_, engine_->options()), std::to_string(i));
      EXPECT_EQ(answers[i].usage().prompt_tokens, std::ssize(requests[i].prompt));
    }
    const EngineStats stats = engine_->stats();
    EXPECT_GT(stats.preemptions_total, 0U);
    EXPECT_EQ(stats.running, 0);
    EXPECT_EQ(stats.waiting, 0);
    EXPECT_EQ(stats.finished_length_total, 16U);
    if (!keeps) {
      EXPECT_EQ(stats.cache.used_bytes, 0U);
    }
  }
}

TEST_P(PrefixCacheTest, CancelledPromptsLeaveNothingBehind) {
  start({.max_num_batched_tokens = 64, .prefix_cache = false});
  for (int i = 0; i < 20; ++i) {
    Answer answer;
    // So long that it is still at work when the cancellation comes, however busy the machine is.
    const auto handle = engine_->submit(request_for(some_tokens(30, 3000), 6000), answer.sink());
    ASSERT_TRUE(handle);
    if (i % 2 == 0) {
      while (engine_->stats().cache.used_bytes == 0 && !answer.finished()) {
      }
    }
    (*handle)->cancel();
    EXPECT_EQ(answer.finish(), FinishReason::kCancelled);
    EXPECT_EQ(engine_->stats().cache.used_bytes, 0U);
  }
}

TEST_P(PrefixCacheTest, AFailedPassLeavesNothingBehind) {
  FakeModel failing(
      {.vocab_size = 31, .max_positions = 10000, .layout = FakeModel::small_layout(has_replay())},
      [](std::span<const model::Segment> segments) -> Result<void> {
        if (segments[0].state->length() >= 256) {
          return fail(ErrorCode::kIo, "broken");
        }
        return {};
      });
  auto engine = Engine::start(failing, pool_, {.max_num_batched_tokens = 128});
  ASSERT_TRUE(engine);
  const Request request = request_for(some_tokens(31, 1000));
  for (int i = 0; i < 3; ++i) {
    Answer answer;
    ASSERT_TRUE((*engine)->submit(request, answer.sink()));
    EXPECT_EQ(answer.finish(), FinishReason::kError);
    EXPECT_EQ((*engine)->stats().cache.used_bytes, 0U);
  }
}

TEST_P(PrefixCacheTest, TheLongestSequenceIsWhatTheMemoryHolds) {
  start({.cache_memory = state_bytes(3) + 1});
  EXPECT_EQ(engine_->options().max_model_len, 3 * kBlock);
  Answer answer;
  const auto refused = engine_->submit(request_for(some_tokens(1, 3 * kBlock)), answer.sink());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("384"));
  EXPECT_EQ(run(request_for(some_tokens(1, 3 * kBlock - 1), 1)), 0);

  const auto none = Engine::start(model_, pool_, {.cache_memory = state_bytes(1) - 1});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("cache_memory"));
  EXPECT_THAT(none.error().message, HasSubstr(std::to_string(state_bytes(1))));
}

TEST_P(PrefixCacheTest, AnswersAreRightWhateverIsSharedEvictedSetBackOrCancelled) {
  std::mt19937 random(9);
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  for (int trial = 0; trial < 6; ++trial) {
    start({.max_num_seqs = 6,
           .max_num_batched_tokens = 6 + static_cast<int64_t>(below(300)),
           .max_model_len = 1500,
           .cache_memory = state_bytes(12 + static_cast<int64_t>(below(30))),
           .schedule_guesses = false},
          /*has_drafts=*/trial % 2 == 1);
    std::vector<Request> requests;
    std::vector<Answer> answers(50);
    std::vector<std::shared_ptr<RequestHandle>> cancelled(50);
    for (size_t i = 0; i < answers.size(); ++i) {
      Tokens prompt = some_tokens(below(2), kBlock * below(4)) + some_tokens(5 + below(2), below(300));
      prompt = prompt + some_tokens(10 + below(3), 1 + below(200));
      requests.push_back(request_for(std::move(prompt), 1 + below(150)));
      requests.back().cache_tenant = below(3) == 0 ? "other" : "";
      const auto handle = engine_->submit(requests.back(), answers[i].sink());
      ASSERT_TRUE(handle);
      if (below(6) == 0) {
        cancelled[i] = *handle;
      }
      if (below(4) == 0) {
        answers[below(static_cast<uint32_t>(i + 1))].finish();
      }
      if (const size_t which = below(static_cast<uint32_t>(i + 1)); cancelled[which]) {
        cancelled[which]->cancel();
      }
    }
    for (size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].finish() != FinishReason::kCancelled) {
        expect_answer(answers[i], expected_answer(requests[i], model_, engine_->options()),
                      std::to_string(i));
      }
    }
    EXPECT_LE(engine_->stats().cache.used_bytes, engine_->options().cache_memory);
  }
}

// --- the disk -------------------------------------------------------------------------------------------

class DiskCacheTest : public PrefixCacheTest {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 ("hadal-disk-cache-" + std::to_string(::getpid()) + (has_replay() ? "-a" : "-b"));
    std::filesystem::remove_all(directory_);
  }
  void TearDown() override {
    engine_.reset();
    std::filesystem::remove_all(directory_);
  }

  EngineOptions options(const std::string& identity = "model 1") const {
    return {.cache_identity = identity, .cache_dir = directory_, .cache_disk = 1 << 30};
  }
  /// Waits until everything that was kept is on disk.
  void settle() const {
    while (engine_->stats().cache.disk->queued > 0) {
      std::this_thread::yield();
    }
  }
  std::vector<std::filesystem::path> segments() const {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      if (entry.path().extension() == ".segment") {
        paths.push_back(entry.path());
      }
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  std::filesystem::path directory_;
};

INSTANTIATE_TEST_SUITE_P(Replay, DiskCacheTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "bounded" : "off"; });

TEST_P(DiskCacheTest, AfterARestartPromptsGoOnFromTheDisk) {
  const Tokens common = some_tokens(1, 5000);
  const Request request = request_for(common + some_tokens(2, 300));
  start(options());
  EXPECT_EQ(run(request), 0);
  start(options());
  EXPECT_EQ(run(request), most(5300));
  EXPECT_EQ(engine_->stats().cache.disk_hits_total, 1U);
  EXPECT_EQ(run(request), most(5300));
  EXPECT_EQ(engine_->stats().cache.disk_hits_total, 1U) << "now it is in memory";
  start(options());
  EXPECT_EQ(run(request_for(common + some_tokens(3, 300))), 4096);
  EXPECT_EQ(engine_->stats().cache.disk->bad_files_total, 0U);
}

TEST_P(DiskCacheTest, WhatWasEvictedFromMemoryComesBack) {
  EngineOptions small = options();
  small.max_model_len = 1000;
  small.cache_memory = state_bytes(24);
  start(small);
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < 8; ++i) {
      const int64_t cached = run(request_for(some_tokens(20 + i, 900)));
      EXPECT_EQ(cached, round == 0 ? 0 : most(900)) << round << ' ' << i;
      settle();
    }
  }
  EXPECT_GT(engine_->stats().cache.disk_hits_total, 0U);
}

TEST_P(DiskCacheTest, OtherModelsAndTenantsDoNotSeeIt) {
  Request request = request_for(some_tokens(4, 700));
  start(options());
  run(request);
  start(options("model 2"));
  EXPECT_EQ(run(request), 0);
  start(options());
  request.cache_tenant = "another";
  EXPECT_EQ(run(request), 0);
  request.cache_tenant.clear();
  EXPECT_EQ(run(request), most(700));
}

TEST_P(DiskCacheTest, DamagedFilesAreMisses) {
  const Request request = request_for(some_tokens(5, 700));
  std::mt19937 random(4);
  for (int trial = 0; trial < 12; ++trial) {
    start(options());
    run(request);
    engine_.reset();
    for (const auto& path : segments()) {
      const auto size = std::filesystem::file_size(path);
      if (trial % 3 == 0) {
        std::filesystem::resize_file(path, random() % size);
      } else if (trial % 3 == 1) {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        const auto at = static_cast<std::streamoff>(random() % size);
        file.seekg(at);
        const char byte = static_cast<char>(file.get() ^ (1 << (random() % 8)));
        file.seekp(at);
        file.put(byte);
      } else {
        std::filesystem::rename(path, path.string().replace(path.string().size() - 12, 4, "0000"));
      }
    }
    start(options());
    EXPECT_EQ(run(request), 0) << trial;
    EXPECT_GT(engine_->stats().cache.disk->bad_files_total, 0U) << trial;
  }
}

TEST_P(DiskCacheTest, ASecondEngineOnTheDirectoryRunsWithoutIt) {
  const Request request = request_for(some_tokens(6, 700));
  start(options());
  run(request);
  const auto second = Engine::start(model_, pool_, options());
  ASSERT_TRUE(second);
  EXPECT_FALSE((*second)->stats().cache.disk);
  Answer answer;
  ASSERT_TRUE((*second)->submit(request, answer.sink()));
  expect_answer(answer, expected_answer(request, model_, engine_->options()), "");
  EXPECT_EQ(answer.usage().cached_tokens, 0);
}

TEST_P(DiskCacheTest, ADirectoryThatCannotBeIsDoneWithout) {
  std::ofstream(directory_) << "a file";
  start(options());
  const Request request = request_for(some_tokens(7, 700));
  EXPECT_EQ(run(request), 0);
  EXPECT_EQ(run(request), most(700));
  EXPECT_FALSE(engine_->stats().cache.disk);
}

}  // namespace
}  // namespace hadal::engine
