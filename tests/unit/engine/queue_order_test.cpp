#include "engine/queue_order.h"

#include <vector>

#include <gtest/gtest.h>

namespace hadal::engine {
namespace {

TEST(NextToStart, IsTheOldestOfEqualOnes) {
  const std::vector<WaitingPlace> waiting{{.number = 5, .tenant = "", .user = ""},
                                          {.number = 3, .tenant = "", .user = ""},
                                          {.number = 4, .tenant = "", .user = ""}};
  EXPECT_EQ(next_to_start(waiting, {}), 1U);
  EXPECT_EQ(next_to_start({}, {}), std::nullopt);
}

TEST(NextToStart, SkipsWhatIsNotReady) {
  std::vector<WaitingPlace> waiting{{.number = 1, .tenant = "", .user = "", .is_ready = false},
                                    {.number = 2, .tenant = "", .user = ""}};
  EXPECT_EQ(next_to_start(waiting, {}), 1U);
  waiting[1].is_ready = false;
  EXPECT_EQ(next_to_start(waiting, {}), std::nullopt);
}

TEST(NextToStart, ALowerPriorityNumberGoesFirstUntilTheOtherHasWaitedLong) {
  std::vector<WaitingPlace> waiting{{.priority = 2, .overtaken = 0, .number = 1, .tenant = "", .user = ""},
                                    {.priority = 0, .overtaken = 0, .number = 2, .tenant = "", .user = ""}};
  EXPECT_EQ(next_to_start(waiting, {}), 1U);
  waiting[0].overtaken = 2 * kAdmissionsPerLevel - 1;
  EXPECT_EQ(next_to_start(waiting, {}), 1U);
  waiting[0].overtaken = 2 * kAdmissionsPerLevel;
  EXPECT_EQ(next_to_start(waiting, {}), 0U);
}

TEST(NextToStart, TheTenantAndThenTheUserWithFewerRunningGoesFirst) {
  const std::vector<WaitingPlace> waiting{{.number = 1, .tenant = "a", .user = "x"},
                                          {.number = 2, .tenant = "a", .user = "y"},
                                          {.number = 3, .tenant = "b", .user = "x"}};
  EXPECT_EQ(next_to_start(waiting, {}), 0U);
  const std::vector<RunningPlace> busy{{"a", "x"}};
  EXPECT_EQ(next_to_start(waiting, busy), 2U);
  const std::vector<RunningPlace> both{{"a", "x"}, {"b", "z"}};
  EXPECT_EQ(next_to_start(waiting, both), 1U);
}

TEST(NextToStart, NobodyWaitsForEver) {
  // Others with a better priority keep arriving, one for each that starts.
  uint64_t started = 0;
  std::vector<WaitingPlace> waiting{{.priority = 3, .overtaken = 0, .number = 0, .tenant = "a", .user = ""},
                                    {.priority = 0, .overtaken = 0, .number = 1, .tenant = "b", .user = ""}};
  while (next_to_start(waiting, {}) != 0U) {
    waiting[0].overtaken = ++started;
    waiting[1].number = started + 1;
    ASSERT_LE(started, 4 * kAdmissionsPerLevel);
  }
  EXPECT_EQ(started, 3 * kAdmissionsPerLevel);
}

}  // namespace
}  // namespace hadal::engine
