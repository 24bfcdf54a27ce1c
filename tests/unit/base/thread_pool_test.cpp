#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <immintrin.h>
#include <pthread.h>

namespace hadal {
namespace {

/// A pool is never larger than the CPUs that the process may use.
int allowed_threads(int wanted) {
  return std::min(wanted, static_cast<int>(read_cpu_topology().cpus.size()));
}

class ThreadPoolTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3));

TEST_P(ThreadPoolTest, HasTheThreadsThatWereAskedForUpToTheAllowedCpus) {
  const ThreadPool pool(GetParam());
  EXPECT_EQ(pool.num_threads(), allowed_threads(GetParam()));
  EXPECT_EQ(pool.thread_nodes().size(), static_cast<size_t>(pool.num_threads()));
}

TEST_P(ThreadPoolTest, RunsEveryTaskOnce) {
  ThreadPool pool(GetParam());
  for (const int64_t num_tasks : {1, 2, 3, 7, 100, 10'000}) {
    std::vector<int> runs(static_cast<size_t>(num_tasks), 0);
    pool.parallel_for(num_tasks, [&](int64_t i) { ++runs[static_cast<size_t>(i)]; });
    EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), num_tasks);
  }
}

TEST_P(ThreadPoolTest, NothingToDoCallsNothing) {
  ThreadPool pool(GetParam());
  pool.parallel_for(0, [](int64_t) { FAIL(); });
  pool.parallel_for(-3, [](int64_t) { FAIL(); });
  pool.parallel_ranges(0, 1, [](int64_t, int64_t) { FAIL(); });
  pool.parallel_ranges(-1, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST_P(ThreadPoolTest, RangesCoverExactlyAndKeepTheGrain) {
  ThreadPool pool(GetParam());
  for (const int64_t count : {1, 2, 5, 16, 63, 64, 1000}) {
    for (const int64_t grain : {0, 1, 3, 16, 100, 5000}) {
      std::vector<int> runs(static_cast<size_t>(count), 0);
      std::atomic<int64_t> smallest{count};
      std::atomic<int64_t> ranges{0};
      pool.parallel_ranges(count, grain, [&](int64_t begin, int64_t end) {
        ++ranges;
        int64_t seen = smallest.load();
        while (end - begin < seen && !smallest.compare_exchange_weak(seen, end - begin)) {
        }
        for (int64_t i = begin; i < end; ++i) {
          ++runs[static_cast<size_t>(i)];
        }
      });
      EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), count) << count << ", grain " << grain;
      EXPECT_GE(smallest.load(), std::min(count, std::max<int64_t>(grain, 1)));
      EXPECT_LE(ranges.load(), static_cast<int64_t>(pool.num_threads()) * 4);
    }
  }
}

TEST_P(ThreadPoolTest, ManyShortJobsInARowLoseNothing) {
  ThreadPool pool(GetParam());
  std::atomic<int64_t> total{0};
  std::vector<int64_t> slots(8, 0);
  constexpr int64_t kJobs = 20'000;
  for (int64_t job = 0; job < kJobs; ++job) {
    // What a task writes is visible to the caller, and to the tasks of the next job, without more ado.
    pool.parallel_for(8, [&](int64_t i) { slots[static_cast<size_t>(i)] += i; });
    total.fetch_add(slots[7], std::memory_order_relaxed);
  }
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(slots[static_cast<size_t>(i)], kJobs * i);
  }
  EXPECT_EQ(total.load(), 7 * kJobs * (kJobs + 1) / 2);
}

TEST_P(ThreadPoolTest, JobsAfterTheWorkersFellAsleepRunToo) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> runs{0};
    pool.parallel_for(16, [&](int64_t) { ++runs; });
    EXPECT_EQ(runs.load(), 16);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST_P(ThreadPoolTest, SlowTasksAreWaitedFor) {
  ThreadPool pool(GetParam());
  std::atomic<int> finished{0};
  pool.parallel_for(4, [&](int64_t i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i * 5));
    ++finished;
  });
  EXPECT_EQ(finished.load(), 4);
}

TEST_P(ThreadPoolTest, SeveralCallersTakeTurns) {
  ThreadPool pool(GetParam());
  constexpr int kCallers = 4;
  std::vector<int64_t> sums(kCallers, 0);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (int job = 0; job < 500; ++job) {
        std::vector<int64_t> values(static_cast<size_t>(1 + (job + caller) % 9), 0);
        pool.parallel_for(static_cast<int64_t>(values.size()),
                          [&](int64_t i) { values[static_cast<size_t>(i)] = i + 1; });
        for (const int64_t value : values) {
          sums[static_cast<size_t>(caller)] += value;
        }
      }
    });
  }
  for (auto& caller : callers) {
    caller.join();
  }
  for (int caller = 0; caller < kCallers; ++caller) {
    int64_t want = 0;
    for (int job = 0; job < 500; ++job) {
      const int64_t size = 1 + (job + caller) % 9;
      want += size * (size + 1) / 2;
    }
    EXPECT_EQ(sums[static_cast<size_t>(caller)], want);
  }
}

TEST_P(ThreadPoolTest, MayBeDestroyedAtOnceWhileIdleAndAfterWork) {
  for (int round = 0; round < 50; ++round) {
    ThreadPool never_used(GetParam());
    ThreadPool used(GetParam());
    std::atomic<int> runs{0};
    used.parallel_for(round, [&](int64_t) { ++runs; });
    EXPECT_EQ(runs.load(), round);
  }
}

bool flushes_denormals() {
  volatile float denormal = 1e-40F;
  volatile float normal = 1e-30F;
  return denormal * 1e30F == 0.0F && normal * 1e-10F == 0.0F;
}

TEST_P(ThreadPoolTest, TasksRunWithDenormalsFlushedAndTheCallerIsLeftAsItWas) {
  ThreadPool pool(GetParam());
  ASSERT_FALSE(flushes_denormals());
  for (const int64_t num_tasks : {1, 64}) {
    std::atomic<int> flushing{0};
    pool.parallel_for(num_tasks, [&](int64_t) {
      flushing += flushes_denormals() ? 1 : 0;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    });
    EXPECT_EQ(flushing.load(), num_tasks);
    EXPECT_FALSE(flushes_denormals());
  }
}

TEST(FlushDenormals, NestsAndRestores) {
  ASSERT_FALSE(flushes_denormals());
  {
    const FlushDenormals outer;
    EXPECT_TRUE(flushes_denormals());
    {
      const FlushDenormals inner;
      EXPECT_TRUE(flushes_denormals());
    }
    EXPECT_TRUE(flushes_denormals());
  }
  EXPECT_FALSE(flushes_denormals());
}

TEST(ThreadPool, TakesAllUsableCpusByDefault) {
  EXPECT_EQ(ThreadPool().num_threads(), read_cpu_topology().usable_threads);
  EXPECT_EQ(ThreadPool(-1).num_threads(), read_cpu_topology().usable_threads);
  EXPECT_EQ(ThreadPool(1 << 20).num_threads(), static_cast<int>(read_cpu_topology().cpus.size()));
}

TEST(ThreadPool, PinnedWorkersStayOnTheirCpu) {
  const CpuTopology topology = read_cpu_topology();
  ThreadPool pool(0, true);
  if (pool.num_threads() < 2) {
    GTEST_SKIP() << "this process may use one CPU only";
  }
  const auto caller = pthread_self();
  std::atomic<int> wrong{0};
  std::atomic<int> by_workers{0};
  // Worker names tell which thread of the pool runs a task.
  pool.parallel_for(200, [&](int64_t) {
    if (pthread_equal(pthread_self(), caller) == 0) {
      char name[32] = {};
      pthread_getname_np(pthread_self(), name, sizeof(name));
      const auto index = static_cast<size_t>(std::atoi(name + sizeof("compute-") - 1));
      cpu_set_t set;
      CPU_ZERO(&set);
      pthread_getaffinity_np(pthread_self(), sizeof(set), &set);
      const bool right =
          index < topology.cpus.size() && CPU_COUNT(&set) == 1 && CPU_ISSET(topology.cpus[index].id, &set);
      wrong += right ? 0 : 1;
      ++by_workers;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  });
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_GT(by_workers.load(), 0);
}

TEST(FunctionRef, CallsLambdasFunctionObjectsAndConstOnes) {
  int calls = 0;
  auto count = [&](int by) { return calls += by; };
  const FunctionRef<int(int)> ref = count;
  EXPECT_EQ(ref(2), 2);
  EXPECT_EQ(ref(3), 5);
  const auto constant = [](int x) { return x * 10; };
  EXPECT_EQ(FunctionRef<int(int)>(constant)(4), 40);
}

}  // namespace
}  // namespace hadal
