#include "base/cpu_topology.h"

#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

namespace hadal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ParseCpuList, ReadsNumbersAndRanges) {
  EXPECT_THAT(parse_cpu_list("0"), ElementsAre(0));
  EXPECT_THAT(parse_cpu_list("0-3,8,10-11"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(parse_cpu_list("5-5\n"), ElementsAre(5));
}

TEST(ParseCpuList, SkipsMalformedParts) {
  EXPECT_THAT(parse_cpu_list(""), IsEmpty());
  EXPECT_THAT(parse_cpu_list("x,3"), ElementsAre(3));
  EXPECT_THAT(parse_cpu_list(",,4,"), ElementsAre(4));
  EXPECT_THAT(parse_cpu_list("7-5,1"), ElementsAre(1));
  EXPECT_THAT(parse_cpu_list("2-,6"), ElementsAre(6));
  EXPECT_THAT(parse_cpu_list("-3,4"), ElementsAre(4));
  EXPECT_THAT(parse_cpu_list("1--2,4"), ElementsAre(4));
  EXPECT_THAT(parse_cpu_list("3x,4"), ElementsAre(4));
}

TEST(ParseCpuList, IsBoundedWhateverTheNumbersSay) {
  EXPECT_EQ(parse_cpu_list("0-99999999999999999999").size(), 65536U);
  EXPECT_THAT(parse_cpu_list("70000-80000,2"), ElementsAre(2));
  EXPECT_THAT(parse_cpu_list("-9000000000000000000-5,2"), ElementsAre(2));
}

TEST(CpuTopology, ListsExactlyTheAllowedCpus) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  const CpuTopology topology = read_cpu_topology();
  ASSERT_EQ(static_cast<int>(topology.cpus.size()), CPU_COUNT(&allowed));
  std::set<int> nodes;
  for (const auto& cpu : topology.cpus) {
    EXPECT_TRUE(CPU_ISSET(cpu.id, &allowed)) << cpu.id;
    nodes.insert(cpu.numa_node);
  }
  EXPECT_EQ(topology.num_nodes, static_cast<int>(nodes.size()));
  EXPECT_GE(topology.usable_threads, 1);
  EXPECT_LE(topology.usable_threads, static_cast<int>(topology.cpus.size()));
  EXPECT_TRUE(std::is_sorted(topology.cpus.begin(), topology.cpus.end(), [](const auto& a, const auto& b) {
    return std::pair(a.numa_node, a.id) < std::pair(b.numa_node, b.id);
  }));
}

TEST(CpuTopology, FollowsTheAffinityMask) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  const int last = read_cpu_topology().cpus.back().id;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const CpuTopology narrowed = read_cpu_topology();
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  ASSERT_EQ(narrowed.cpus.size(), 1U);
  EXPECT_EQ(narrowed.cpus[0].id, last);
  EXPECT_EQ(narrowed.usable_threads, 1);
}

}  // namespace
}  // namespace hadal
