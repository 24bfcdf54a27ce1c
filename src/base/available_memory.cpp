#include "base/available_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>

namespace hadal {
namespace {

std::optional<uint64_t> first_number(const std::string& text) {
  const size_t begin = text.find_first_of("0123456789");
  uint64_t value = 0;
  if (begin == std::string::npos ||
      std::from_chars(text.data() + begin, text.data() + text.size(), value).ec != std::errc()) {
    return std::nullopt;
  }
  return value;
}

std::optional<uint64_t> read_number(const std::filesystem::path& path, std::string_view line_start = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(line_start)) {
      return first_number(line);
    }
  }
  return std::nullopt;
}

}  // namespace

uint64_t available_memory(const std::filesystem::path& root) {
  uint64_t available = read_number(root / "proc/meminfo", "MemAvailable:").value_or(0) * 1024;
  const std::filesystem::path group = root / "sys/fs/cgroup";
  const auto limit = read_number(group / "memory.max");  // "max" has no number: no limit
  const auto used = read_number(group / "memory.current");
  if (limit && used) {
    // Pages of files are counted as used but can be dropped.
    const uint64_t droppable = read_number(group / "memory.stat", "file ").value_or(0);
    const uint64_t taken = *used - std::min(*used, droppable);
    available = std::min(available, *limit - std::min(*limit, taken));
  }
  return available;
}

}  // namespace hadal
