#pragma once
// Strict schemas: the subset of JSON Schema that `strict: true` allows, written anew in one canonical form.

#include "base/result.h"
#include "recipe/json_value.h"

namespace hadal::recipe {

/// The parameters of a strict tool: every property required, no others allowed, keywords outside the subset
/// dropped, definitions kept where a `$ref` uses them. `parameters` may be null (none given: an object
/// without properties). Values are allocated in `arena`, and share strings with the input.
Result<JsonValue> strict_tool_parameters(const JsonValue* parameters, JsonArena& arena);

/// What the output of a `json_schema` format must match: the schema itself after a check, or with `strict`
/// its canonical form.
Result<JsonValue> constraint_schema(const JsonValue& schema, bool strict, JsonArena& arena);

}  // namespace hadal::recipe
