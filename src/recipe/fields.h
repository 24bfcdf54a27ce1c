#pragma once
// Reading typed fields out of a JSON body, with errors that name the place: "messages[3].content[0]: missing
// field `text`".

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "recipe/json_value.h"

namespace hadal::recipe {

/// Where a value is in the body. A chain that lives on the stack while the value is read; its text is built
/// only for an error.
struct Place {
  const Place* parent = nullptr;
  std::string_view key;
  std::optional<size_t> index;

  Place() = default;
  Place(const Place& outer, std::string_view field) : parent(&outer), key(field) {}
  Place(const Place& outer, size_t item) : parent(&outer), index(item) {}

  /// "messages[3].content"; empty for the body itself.
  std::string text() const;
};

/// `expected` is a phrase such as "a string".
[[nodiscard]] tl::unexpected<Error> wrong_kind(const Place& place, std::string_view expected,
                                               const JsonValue& found);
[[nodiscard]] tl::unexpected<Error> wrong_value(const Place& place, std::string_view expected,
                                                std::string_view found);

/// The fields of one object. `null` counts as absent, except in required fields, where it is the wrong kind.
/// The object and its place must outlive this and all views that it gives.
class Fields {
 public:
  /// The value must be an object.
  static Result<Fields> of(const JsonValue& value, const Place& place);

  const Place& place() const { return *place_; }
  const JsonValue& object() const { return *object_; }

  /// The value of a field, nullptr if absent or null.
  const JsonValue* value(std::string_view key) const;
  bool has(std::string_view key) const { return object_->find(key) != nullptr; }

  Result<const JsonValue*> required(std::string_view key) const;
  Result<std::string_view> string(std::string_view key) const;
  Result<std::optional<std::string_view>> optional_string(std::string_view key) const;
  Result<std::optional<bool>> optional_bool(std::string_view key) const;
  Result<std::optional<uint64_t>> optional_unsigned(std::string_view key, uint64_t max) const;
  /// Any number, rounded to float.
  Result<std::optional<float>> optional_float(std::string_view key) const;
  Result<std::span<const JsonValue>> list(std::string_view key) const;
  Result<std::optional<std::span<const JsonValue>>> optional_list(std::string_view key) const;
  /// The index of the field's text among `choices`.
  Result<size_t> choice(std::string_view key, std::span<const std::string_view> choices) const;
  Result<std::optional<size_t>> optional_choice(std::string_view key,
                                                std::span<const std::string_view> choices) const;

 private:
  Fields(const JsonValue& object, const Place& place) : object_(&object), place_(&place) {}
  const JsonValue* object_;
  const Place* place_;
};

/// The fields of `body` that are not in `known`, for the log; at most 32, each cut to 64 bytes.
std::vector<std::string> unknown_fields(const JsonValue& body, std::span<const std::string_view> known);

}  // namespace hadal::recipe
