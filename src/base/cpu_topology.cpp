#include "base/cpu_topology.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <sched.h>

namespace hadal {
namespace {

std::map<int, int> read_node_of_cpu() {
  std::map<int, int> node_of_cpu;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/devices/system/node", ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("node") || name.size() < 5 || name[4] < '0' || name[4] > '9') {
      continue;
    }
    std::ifstream file(entry.path() / "cpulist");
    std::string list;
    std::getline(file, list);
    for (const int cpu : parse_cpu_list(list.c_str())) {
      node_of_cpu[cpu] = std::atoi(name.c_str() + 4);
    }
  }
  return node_of_cpu;
}

/// The CPU quota in whole threads, or 0 if there is none (cgroup v2, then v1).
int read_cgroup_limit() {
  std::string quota;
  double period = 0;
  if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file >> quota >> period && quota != "max" && period > 0) {
    return static_cast<int>((std::atof(quota.c_str()) + period - 1) / period);
  }
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double limit = 0;
  if (quota_file >> limit && period_file >> period && limit > 0 && period > 0) {
    return static_cast<int>((limit + period - 1) / period);
  }
  return 0;
}

}  // namespace

std::vector<int> parse_cpu_list(const char* text) {
  constexpr long kMaxCpu = 1 << 16;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::vector<int> cpus;
  while (*text != '\0') {
    char* end = nullptr;
    const long first = std::strtol(text, &end, 10);
    long last = first;
    bool is_valid = is_digit(*text);
    if (*end == '-') {
      is_valid = is_valid && is_digit(end[1]);
      last = std::strtol(end + 1, &end, 10);
    }
    is_valid = is_valid && (*end == ',' || *end == '\n' || *end == '\0');
    for (long cpu = first; is_valid && cpu <= last && cpu < kMaxCpu; ++cpu) {
      cpus.push_back(static_cast<int>(cpu));
    }
    text = end + std::strcspn(end, ",");
    text += *text == ',' ? 1 : 0;
  }
  return cpus;
}

CpuTopology read_cpu_topology() {
  CpuTopology topology;
  const auto node_of_cpu = read_node_of_cpu();
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &allowed)) {
        const auto found = node_of_cpu.find(cpu);
        topology.cpus.push_back({cpu, found == node_of_cpu.end() ? 0 : found->second});
      }
    }
  }
  if (topology.cpus.empty()) {
    topology.cpus.push_back({0, 0});
  }
  std::stable_sort(topology.cpus.begin(), topology.cpus.end(),
                   [](const auto& a, const auto& b) { return a.numa_node < b.numa_node; });
  std::set<int> nodes;
  for (const auto& cpu : topology.cpus) {
    nodes.insert(cpu.numa_node);
  }
  topology.num_nodes = static_cast<int>(nodes.size());
  topology.usable_threads = static_cast<int>(topology.cpus.size());
  if (const int limit = read_cgroup_limit(); limit > 0) {
    topology.usable_threads = std::clamp(limit, 1, topology.usable_threads);
  }
  return topology;
}

}  // namespace hadal
