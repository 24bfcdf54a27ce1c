#include "recipe/json_value.h"

#include <cstring>

namespace hadal::recipe {

JsonValue JsonValue::boolean(bool value) {
  JsonValue result(Kind::kBool, 0);
  result.data_.boolean = value;
  return result;
}

JsonValue JsonValue::integer(int64_t value) {
  JsonValue result(Kind::kInt, 0);
  result.data_.integer = value;
  return result;
}

JsonValue JsonValue::unsigned_integer(uint64_t value) {
  JsonValue result(Kind::kUint, 0);
  result.data_.unsigned_ = value;
  return result;
}

JsonValue JsonValue::number(double value) {
  JsonValue result(Kind::kDouble, 0);
  result.data_.number = value;
  return result;
}

JsonValue JsonValue::string(std::string_view text) {
  JsonValue result(Kind::kString, text.size());
  result.data_.text = text.data();
  return result;
}

JsonValue JsonValue::array(std::span<const JsonValue> items) {
  JsonValue result(Kind::kArray, items.size());
  result.data_.items = items.data();
  return result;
}

JsonValue JsonValue::object(std::span<const JsonMember> members) {
  JsonValue result(Kind::kObject, members.size());
  result.data_.members = members.data();
  return result;
}

double JsonValue::as_double() const {
  switch (kind_) {
    case Kind::kInt:
      return static_cast<double>(data_.integer);
    case Kind::kUint:
      return static_cast<double>(data_.unsigned_);
    default:
      return data_.number;
  }
}

const JsonValue* JsonValue::find(std::string_view key) const {
  for (const JsonMember& member : members()) {
    if (member.key == key) {
      return &member.value;
    }
  }
  return nullptr;
}

std::string_view JsonArena::copy(std::string_view text) {
  if (text.empty()) {
    return {};
  }
  char* place = allocate_text(text.size());
  std::memcpy(place, text.data(), text.size());
  return {place, text.size()};
}

std::span<const JsonValue> JsonArena::copy(std::span<const JsonValue> values) {
  if (values.empty()) {
    return {};
  }
  auto* place = static_cast<JsonValue*>(memory_.allocate(values.size_bytes(), alignof(JsonValue)));
  std::uninitialized_copy(values.begin(), values.end(), place);
  return {place, values.size()};
}

std::span<const JsonMember> JsonArena::copy(std::span<const JsonMember> members) {
  if (members.empty()) {
    return {};
  }
  auto* place = static_cast<JsonMember*>(memory_.allocate(members.size_bytes(), alignof(JsonMember)));
  std::uninitialized_copy(members.begin(), members.end(), place);
  return {place, members.size()};
}

std::string_view describe_kind(const JsonValue& value) {
  switch (value.kind()) {
    case JsonValue::Kind::kNull:
      return "null";
    case JsonValue::Kind::kBool:
      return "a boolean";
    case JsonValue::Kind::kInt:
      return "a negative integer";
    case JsonValue::Kind::kUint:
      return "an integer";
    case JsonValue::Kind::kDouble:
      return "a number with a fraction or exponent";
    case JsonValue::Kind::kString:
      return "a string";
    case JsonValue::Kind::kArray:
      return "a list";
    case JsonValue::Kind::kObject:
      return "an object";
  }
  return "";
}

}  // namespace hadal::recipe
