#pragma once
// Which CPUs this process may use, and which NUMA node each belongs to.

#include <vector>

namespace hadal {

struct CpuTopology {
  struct Cpu {
    int id = 0;         ///< the kernel's CPU number
    int numa_node = 0;  ///< 0 where the machine has no NUMA information
  };
  std::vector<Cpu> cpus;  ///< allowed by the affinity mask, ordered by node, then by number
  int num_nodes = 1;      ///< distinct nodes among `cpus`

  /// How many threads may compute at once: the allowed CPUs, cut to the cgroup's CPU quota (rounded up).
  int usable_threads = 1;
};

/// Reads the affinity mask, /sys/devices/system/node and the cgroup CPU limit. Never fails: what cannot
/// be read counts as one node and no limit.
CpuTopology read_cpu_topology();

/// Parses a kernel CPU list such as "0-3,8,10-11"; malformed parts are skipped.
std::vector<int> parse_cpu_list(const char* text);

}  // namespace hadal
