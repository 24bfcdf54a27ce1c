#include "base/available_memory.h"

#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace hadal {
namespace {

namespace fs = std::filesystem;

class AvailableMemory : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("hadal-available-memory-" + std::to_string(::getpid()));
    fs::create_directories(root_ / "proc");
    fs::create_directories(root_ / "sys/fs/cgroup");
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const { std::ofstream(root_ / path) << text; }

  fs::path root_;
};

TEST_F(AvailableMemory, IsWhatTheSystemSays) {
  EXPECT_EQ(available_memory(root_), 0U);
  write("proc/meminfo", "MemTotal:  100 kB\nMemFree:  10 kB\nMemAvailable:   50 kB\n");
  EXPECT_EQ(available_memory(root_), 50U * 1024);
  EXPECT_GT(available_memory(), 0U);
}

TEST_F(AvailableMemory, StaysWithinTheControlGroup) {
  write("proc/meminfo", "MemAvailable:   50 kB\n");
  write("sys/fs/cgroup/memory.current", "20000\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(available_memory(root_), 50U * 1024) << "no limit";
  write("sys/fs/cgroup/memory.max", "30000\n");
  EXPECT_EQ(available_memory(root_), 10000U);
  write("sys/fs/cgroup/memory.stat", "anon 1\nfile 15000\n");
  EXPECT_EQ(available_memory(root_), 25000U) << "the page cache can be dropped";
  write("sys/fs/cgroup/memory.max", "1000\n");
  EXPECT_EQ(available_memory(root_), 0U);
}

}  // namespace
}  // namespace hadal
