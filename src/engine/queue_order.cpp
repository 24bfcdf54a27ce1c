#include "engine/queue_order.h"

#include <map>
#include <tuple>
#include <utility>

namespace hadal::engine {

std::optional<size_t> next_to_start(std::span<const WaitingPlace> waiting,
                                    std::span<const RunningPlace> running) {
  std::map<std::string_view, int64_t> of_tenant;
  std::map<std::pair<std::string_view, std::string_view>, int64_t> of_user;
  for (const RunningPlace& place : running) {
    ++of_tenant[place.tenant];
    ++of_user[{place.tenant, place.user}];
  }
  const auto count = [](const auto& counts, const auto& key) {
    const auto found = counts.find(key);
    return found == counts.end() ? int64_t{0} : found->second;
  };
  const auto rank = [&](const WaitingPlace& place) {
    return std::tuple(int64_t{place.priority} - static_cast<int64_t>(place.overtaken / kAdmissionsPerLevel),
                      count(of_tenant, place.tenant), count(of_user, std::pair(place.tenant, place.user)),
                      place.number);
  };
  std::optional<size_t> best;
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i].is_ready && (!best || rank(waiting[i]) < rank(waiting[*best]))) {
      best = i;
    }
  }
  return best;
}

}  // namespace hadal::engine
