#pragma once
// References inside a JSON Schema.

#include <string_view>

#include "base/result.h"
#include "recipe/json_value.h"
#include "recipe/schema/keywords.h"

namespace hadal::recipe {

/// Fails at the first character that cannot stand in a URI reference (RFC 3986).
Result<void> check_uri_reference(std::string_view text);

/// Checks that each reference that matters for the root schema leads to a place in the document. `schema`
/// must have passed the checks of its keywords. No recursion.
Result<void> check_references(const JsonValue& schema, Draft draft);

}  // namespace hadal::recipe
