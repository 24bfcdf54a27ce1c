#pragma once
// Body fields, the same in all protocols, about whose request it is and when its turn comes.

#include "base/result.h"
#include "engine/request.h"
#include "server/json_body.h"

namespace hadal::server {

/// Reads cache_salt, priority (-1000 to 1000, lower first) and user (Messages: metadata.user_id) into the
/// request. kInvalidArgument names the field.
Result<void> read_queue_fields(const Json& members, engine::Request& request);

}  // namespace hadal::server
