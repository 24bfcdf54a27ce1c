#include "recipe/fields.h"

#include <algorithm>
#include <limits>

#include "base/log.h"

namespace hadal::recipe {
namespace {

tl::unexpected<Error> at_place(const Place& place, std::string message) {
  const std::string where = place.text();
  return tl::make_unexpected(
      Error{ErrorCode::kInvalidArgument, where.empty() ? std::move(message) : where + ": " + message});
}

std::string list_choices(std::span<const std::string_view> choices) {
  std::string text;
  for (const std::string_view choice : choices) {
    text += text.empty() ? "`" : ", `";
    text += choice;
    text += '`';
  }
  return (choices.size() > 1 ? "one of " : "") + text;
}

Result<size_t> find_choice(const JsonValue& value, const Place& place,
                           std::span<const std::string_view> choices) {
  if (!value.is_string()) {
    return wrong_kind(place, list_choices(choices), value);
  }
  const auto found = std::find(choices.begin(), choices.end(), value.as_string());
  if (found == choices.end()) {
    return wrong_value(place, list_choices(choices), value.as_string());
  }
  return static_cast<size_t>(found - choices.begin());
}

}  // namespace

std::string Place::text() const {
  std::vector<const Place*> chain;
  for (const Place* place = this; place != nullptr; place = place->parent) {
    chain.push_back(place);
  }
  std::string text;
  for (auto place = chain.rbegin(); place != chain.rend(); ++place) {
    if ((*place)->index) {
      text += fmt::format("[{}]", *(*place)->index);
    } else if (!(*place)->key.empty()) {
      text += text.empty() ? "" : ".";
      text += (*place)->key;
    }
  }
  return text;
}

tl::unexpected<Error> wrong_kind(const Place& place, std::string_view expected, const JsonValue& found) {
  return at_place(place, fmt::format("expected {}, found {}", expected, describe_kind(found)));
}

tl::unexpected<Error> wrong_value(const Place& place, std::string_view expected, std::string_view found) {
  return at_place(place, fmt::format("expected {}, found `{}`", expected, printable(found, 64)));
}

Result<Fields> Fields::of(const JsonValue& value, const Place& place) {
  if (!value.is_object()) {
    return wrong_kind(place, "an object", value);
  }
  return Fields(value, place);
}

const JsonValue* Fields::value(std::string_view key) const {
  const JsonValue* found = object_->find(key);
  return found != nullptr && found->is_null() ? nullptr : found;
}

Result<const JsonValue*> Fields::required(std::string_view key) const {
  const JsonValue* found = object_->find(key);
  if (found == nullptr) {
    return at_place(*place_, fmt::format("missing field `{}`", key));
  }
  return found;
}

Result<std::string_view> Fields::string(std::string_view key) const {
  HADAL_TRY(const JsonValue* found, required(key));
  if (!found->is_string()) {
    return wrong_kind(Place(*place_, key), "a string", *found);
  }
  return found->as_string();
}

Result<std::optional<std::string_view>> Fields::optional_string(std::string_view key) const {
  const JsonValue* found = value(key);
  if (found == nullptr) {
    return std::nullopt;
  }
  if (!found->is_string()) {
    return wrong_kind(Place(*place_, key), "a string", *found);
  }
  return found->as_string();
}

Result<std::optional<bool>> Fields::optional_bool(std::string_view key) const {
  const JsonValue* found = value(key);
  if (found == nullptr) {
    return std::nullopt;
  }
  if (!found->is_bool()) {
    return wrong_kind(Place(*place_, key), "a boolean", *found);
  }
  return found->as_bool();
}

Result<std::optional<uint64_t>> Fields::optional_unsigned(std::string_view key, uint64_t max) const {
  const JsonValue* found = value(key);
  if (found == nullptr) {
    return std::nullopt;
  }
  const std::string expected = fmt::format("an integer from 0 to {}", max);
  if (found->kind() != JsonValue::Kind::kUint) {
    return wrong_kind(Place(*place_, key), expected, *found);
  }
  if (found->as_uint() > max) {
    return wrong_value(Place(*place_, key), expected, std::to_string(found->as_uint()));
  }
  return found->as_uint();
}

Result<std::optional<float>> Fields::optional_float(std::string_view key) const {
  const JsonValue* found = value(key);
  if (found == nullptr) {
    return std::nullopt;
  }
  if (!found->is_number()) {
    return wrong_kind(Place(*place_, key), "a number", *found);
  }
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(found->as_double(), -kLargest, kLargest));
}

Result<std::span<const JsonValue>> Fields::list(std::string_view key) const {
  HADAL_TRY(const JsonValue* found, required(key));
  if (!found->is_array()) {
    return wrong_kind(Place(*place_, key), "a list", *found);
  }
  return found->items();
}

Result<std::optional<std::span<const JsonValue>>> Fields::optional_list(std::string_view key) const {
  const JsonValue* found = value(key);
  if (found == nullptr) {
    return std::nullopt;
  }
  if (!found->is_array()) {
    return wrong_kind(Place(*place_, key), "a list", *found);
  }
  return found->items();
}

Result<size_t> Fields::choice(std::string_view key, std::span<const std::string_view> choices) const {
  HADAL_TRY(const JsonValue* found, required(key));
  return find_choice(*found, Place(*place_, key), choices);
}

Result<std::optional<size_t>> Fields::optional_choice(std::string_view key,
                                                      std::span<const std::string_view> choices) const {
  const JsonValue* found = value(key);
  if (found == nullptr) {
    return std::nullopt;
  }
  HADAL_TRY(const size_t index, find_choice(*found, Place(*place_, key), choices));
  return index;
}

std::vector<std::string> unknown_fields(const JsonValue& body, std::span<const std::string_view> known) {
  constexpr size_t kMost = 32;
  std::vector<std::string> names;
  for (const JsonMember& member : body.members()) {
    if (names.size() < kMost && std::find(known.begin(), known.end(), member.key) == known.end()) {
      names.push_back(printable(member.key, 64));
    }
  }
  return names;
}

}  // namespace hadal::recipe
