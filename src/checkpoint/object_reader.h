#pragma once
// Typed, range-checked access to the fields of a JSON object, with errors that name the dotted field.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.h"

namespace hadal::checkpoint {

/// What an integer field must satisfy.
struct IntegerRule {
  int64_t min = 0;
  int64_t max = 0;
  int64_t multiple_of = 1;
};

/// What a number field must satisfy: finite, and min <= value <= max.
struct NumberRule {
  double min = 0;
  double max = 0;
};

/// Reads one JSON object. Keeps a reference: the document must outlive it. All getters fail with
/// kInvalidArgument "PATH.field: found X, expected Y" or "PATH.field: missing, expected Y".
class ObjectReader {
 public:
  /// `path` is the dotted place of the object, empty for the top level.
  static Result<ObjectReader> create(const nlohmann::json& value, std::string path);

  Result<int64_t> integer(std::string_view field, IntegerRule rule) const;
  Result<double> number(std::string_view field, NumberRule rule) const;
  Result<bool> boolean(std::string_view field) const;
  Result<std::string> string(std::string_view field) const;
  Result<std::vector<int64_t>> integers(std::string_view field, IntegerRule rule, size_t max_count) const;
  Result<ObjectReader> object(std::string_view field) const;

  /// True if the field is there and not null.
  bool has(std::string_view field) const;

  /// The same as integer() if the field is there or `needed`; 0 for one that is absent or null.
  Result<int64_t> integer_if(bool needed, std::string_view field, IntegerRule rule) const;
  Result<std::vector<int64_t>> integers_or_empty(std::string_view field, IntegerRule rule,
                                                 size_t max_count) const;

  /// The field must be this text (kUnsupported otherwise).
  Result<void> require(std::string_view field, std::string_view expected) const;
  /// The field must be this JSON value, or be absent if `optional` (kUnsupported otherwise).
  Result<void> require(std::string_view field, const nlohmann::json& expected, bool optional) const;

  /// Dotted names of fields that were never asked for.
  std::vector<std::string> unread() const;

  std::string dotted(std::string_view field) const;

 private:
  ObjectReader(const nlohmann::json& object, std::string path) : object_(&object), path_(std::move(path)) {}
  const nlohmann::json* find(std::string_view field) const;
  tl::unexpected<Error> wrong(std::string_view field, const nlohmann::json* found, std::string_view expected,
                              ErrorCode code = ErrorCode::kInvalidArgument) const;

  const nlohmann::json* object_;
  std::string path_;
  mutable std::set<std::string, std::less<>> read_;
};

/// A JSON value as an error message shows it: short, on one line, with its type where that is not obvious.
std::string describe_json(const nlohmann::json& value);

}  // namespace hadal::checkpoint
