#pragma once
// Request fields that would change the answer but that this build does not obey: they are refused by name.

#include <optional>
#include <string_view>
#include <vector>

#include "server/api_errors.h"
#include "server/json_body.h"

namespace hadal::server {

enum class UnsupportedFieldsOf { kCompletions, kChat, kMessages, kResponses };

/// The names that find_unsupported_field looks for, for pick_members.
const std::vector<std::string_view>& unsupported_field_names(UnsupportedFieldsOf protocol);

/// An error that names the first such field with a value other than the one that changes nothing.
std::optional<ApiError> find_unsupported_field(UnsupportedFieldsOf protocol, const Json& members);

}  // namespace hadal::server
