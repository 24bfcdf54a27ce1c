#include "engine/inbox.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal::engine {
namespace {

std::unique_ptr<RunningRequest> make_request(std::vector<int32_t> prompt) {
  return std::make_unique<RunningRequest>(
      Request{std::move(prompt), {}, ""}, [](Output) {},
      std::make_shared<Cancellation>(std::make_shared<CancellationCounter>(0)));
}

TEST(Inbox, HandsRequestsOverInArrivalOrder) {
  Inbox inbox(2, 10);
  for (int32_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(inbox.push(make_request(std::vector<int32_t>(static_cast<size_t>(i), 0))));
  }
  const Inbox::Arrivals arrivals = inbox.take(true);
  ASSERT_EQ(arrivals.requests.size(), 3U);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(arrivals.requests[i]->usage().prompt_tokens, i + 1);
  }
  EXPECT_FALSE(arrivals.stopping);
  EXPECT_TRUE(inbox.take(false).requests.empty());
  EXPECT_EQ(inbox.stats().prompt_tokens_total, 6U);
}

TEST(Inbox, RefusesWhatPassesTheLimitsAndNamesThem) {
  Inbox inbox(2, 1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(inbox.push(make_request({1})));
  }
  const Result<void> refused = inbox.push(make_request({1}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("max_waiting 1 and max_num_seqs 2"));
  EXPECT_EQ(inbox.stats().requests_total, 3U);

  StepRecord record;
  record.admitted = 2;
  inbox.record(record);
  EXPECT_FALSE(inbox.push(make_request({1}))) << "running ones count too";
  record = {};
  record.finished[static_cast<size_t>(FinishReason::kStop)] = 1;
  inbox.record(record);
  EXPECT_TRUE(inbox.push(make_request({1})));
  EXPECT_EQ(inbox.stats().running, 1);
  EXPECT_EQ(inbox.stats().waiting, 2);
}

TEST(Inbox, CountsWhatEndsWhileWaiting) {
  Inbox inbox(2, 5);
  ASSERT_TRUE(inbox.push(make_request({1})));
  ASSERT_TRUE(inbox.push(make_request({1})));
  StepRecord record;
  record.admitted = 1;
  record.ended_while_waiting = 1;
  record.finished[static_cast<size_t>(FinishReason::kCancelled)] = 2;  // one of them was running
  inbox.record(record);
  EXPECT_EQ(inbox.stats().running, 0);
  EXPECT_EQ(inbox.stats().waiting, 0);
  EXPECT_EQ(inbox.stats().finished_cancelled_total, 2U);
}

TEST(Inbox, WakesTheSleeperForARequestAndForTheStop) {
  Inbox inbox(1, 1);
  std::thread sleeper([&] {
    EXPECT_EQ(inbox.take(true).requests.size(), 1U);
    EXPECT_TRUE(inbox.take(true).stopping);
  });
  ASSERT_TRUE(inbox.push(make_request({1})));
  inbox.stop();
  sleeper.join();
}

}  // namespace
}  // namespace hadal::engine
