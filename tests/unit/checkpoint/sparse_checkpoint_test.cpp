// A checkpoint of the true size, data left out: names and shapes come from tools/sparse_checkpoint.py, which
// states them independently of the loader.
#include <ctime>

#include <sys/resource.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/memory_plan.h"
#include "test_support.h"

namespace hadal::checkpoint {
namespace {

TEST(SparseCheckpoint, TheTrueSizeOpensInSeconds) {
#ifndef HADAL_PYTHON
  GTEST_SKIP() << "no Python interpreter was found when the build was configured";
#else
  const TempDir dir;
  const std::string command = fmt::format("\"{}\" \"{}\" \"{}\" --compressed-vocab 99092 > /dev/null",
                                          HADAL_PYTHON, HADAL_SPARSE_CHECKPOINT, dir.path().string());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const std::clock_t begin = std::clock();
  const auto opened = Checkpoint::open(dir.path());
  // Time of all threads, so that busy neighbours do not count. 0.3 s in a release build.
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_LT(seconds, 10);
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 1'000'000) << "kB";  // 60 MB in a release build
  EXPECT_EQ(opened->num_tensors(), 96085U);
  EXPECT_EQ(opened->num_shards(), 48U);
  EXPECT_EQ(opened->total_bytes(), 510'286'023'000U);
  EXPECT_EQ(json::parse(read_file(dir.path() / "config.json")), config_of("flash-1017"));

  // The last row of the largest table lies where it should, beyond every 32-bit offset.
  const auto table = opened->tensor("layers.14.engram.embed.weight");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->shape, (std::vector<int64_t>{384016682, 256}));
  EXPECT_EQ(table->data[table->bytes - 1], std::byte{0});

  const auto plan = plan_memory(opened->config(), opened->parts(), 1 << 20, 1);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->disk_weights, (384006168ULL + 384016682) * (256 + 8));
  EXPECT_EQ(plan->resident_weights + plan->disk_weights, 510'286'023'000U);
#endif
}

}  // namespace
}  // namespace hadal::checkpoint
