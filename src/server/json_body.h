#pragma once
// Reading JSON request bodies of the routes that the recipe does not read.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.h"

namespace hadal::server {

using Json = nlohmann::json;

/// Parses a body that must be an object nested at most 127 deep. Linear time, no recursion on the input.
Result<Json> parse_json_object(std::string_view body);

/// The named members of the top-level object, without building the rest of the document. A body that is not
/// JSON or not an object gives an empty object: whoever reads it in full reports that.
Json pick_members(std::string_view body, const std::vector<std::string_view>& names);

/// Typed access to members. An absent or null member is nothing; a wrong type or a value out of range is
/// kInvalidArgument and names the member, what was found and what was expected.
Result<std::optional<int64_t>> integer_member(const Json& object, const char* name, int64_t lowest,
                                              int64_t highest);
/// Bounds are inclusive unless `excludes_lowest`.
Result<std::optional<double>> number_member(const Json& object, const char* name, double lowest,
                                            double highest, bool excludes_lowest = false);
Result<std::optional<bool>> bool_member(const Json& object, const char* name);
Result<std::optional<std::string>> string_member(const Json& object, const char* name);
/// An array of token ids in [0, vocab_size). `name` is the path for errors.
Result<std::vector<int32_t>> token_ids(const Json& array, std::string_view name, int64_t vocab_size);

/// A short description of a value for errors: its type, and small values themselves.
std::string describe(const Json& value);

}  // namespace hadal::server
