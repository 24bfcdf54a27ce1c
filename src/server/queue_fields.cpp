#include "server/queue_fields.h"

#include <utility>

namespace hadal::server {

Result<void> read_queue_fields(const Json& members, engine::Request& request) {
  constexpr int64_t kMostPriority = 1000;
  HADAL_TRY(auto salt, string_member(members, "cache_salt"));
  request.cache_salt = std::move(salt).value_or("");
  HADAL_TRY(const auto priority, integer_member(members, "priority", -kMostPriority, kMostPriority));
  request.priority = static_cast<int32_t>(priority.value_or(0));
  HADAL_TRY(auto user, string_member(members, "user"));
  if (const auto metadata = members.find("metadata");
      !user && metadata != members.end() && metadata->is_object()) {
    HADAL_TRY(user, string_member(*metadata, "user_id"));
  }
  request.user = std::move(user).value_or("");
  return {};
}

}  // namespace hadal::server
