#pragma once
// How much memory the system would still give this process.

#include <cstdint>
#include <filesystem>

namespace hadal {

/// Bytes that are free or could be freed (the page cache counts as free), within the limit of the control
/// group if there is one; 0 if the system does not say. `root` is where /proc and /sys are, for tests.
uint64_t available_memory(const std::filesystem::path& root = "/");

}  // namespace hadal
