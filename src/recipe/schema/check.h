#pragma once
// Whether a JSON Schema is one: keywords of the right kind, references that resolve, patterns that compile.

#include "base/result.h"
#include "recipe/json_value.h"

namespace hadal::recipe {

/// Checks a schema of draft 4, 6, 7, 2019-09 or 2020-12 (`$schema` selects; 2020-12 without it). References
/// are only looked up inside the document: nothing is ever fetched. Linear in the size of the schema, up to a
/// logarithm. The error is a sentence about the first fault, without a prefix.
Result<void> check_schema(const JsonValue& schema);

/// The same, and the top level must have `"type": "object"`.
Result<void> check_tool_schema(const JsonValue& schema);

}  // namespace hadal::recipe
