#pragma once
// Refusals in the shape of each protocol.

#include <string>
#include <string_view>

#include "recipe/prepared_request.h"

namespace hadal::recipe {

/// The JSON body of an error of kind `invalid_request_error`.
std::string error_body(Protocol protocol, std::string_view message);

/// A body that cannot be read as a request of the protocol.
RequestError unreadable_request(Protocol protocol, std::string message);

/// A request that was read and is refused.
RequestError refused_request(Protocol protocol, std::string message);

}  // namespace hadal::recipe
