#pragma once
// Which waiting request starts next. A pure function of what it is shown.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace hadal::engine {

/// So many requests that start meanwhile raise a waiting one by one level of priority, so that none waits for
/// ever.
inline constexpr uint64_t kAdmissionsPerLevel = 64;

struct WaitingPlace {
  int32_t priority = 0;
  uint64_t overtaken = 0;  ///< requests that have started since it arrived
  uint64_t number = 0;     ///< order of arrival
  std::string_view tenant;
  std::string_view user;  ///< within the tenant
  bool is_ready = true;
};

struct RunningPlace {
  std::string_view tenant;
  std::string_view user;
};

/// The index of the request to start next, none if none is ready: the lowest priority number after raising;
/// of equal ones that of the tenant with the fewest running requests, then of the user with the fewest, then
/// the oldest.
std::optional<size_t> next_to_start(std::span<const WaitingPlace> waiting,
                                    std::span<const RunningPlace> running);

}  // namespace hadal::engine
