#pragma once
// JSON values as requests bring them: read once, never changed, kept in an arena.
//
// A value is 16 bytes; strings without escapes are views into the text that was read, everything else lives
// in the arena of its document. Objects keep the order of their keys; of a repeated key the first place and
// the last value count.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hadal::recipe {

struct JsonMember;

class JsonValue {
 public:
  enum class Kind : uint8_t { kNull, kBool, kInt, kUint, kDouble, kString, kArray, kObject };

  JsonValue() = default;
  static JsonValue boolean(bool value);
  static JsonValue integer(int64_t value);
  static JsonValue unsigned_integer(uint64_t value);
  static JsonValue number(double value);
  /// The viewed bytes must outlive the value.
  static JsonValue string(std::string_view text);
  static JsonValue array(std::span<const JsonValue> items);
  static JsonValue object(std::span<const JsonMember> members);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_bool() const { return kind_ == Kind::kBool; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_object() const { return kind_ == Kind::kObject; }
  /// A number written without point and exponent that fits 64 bits.
  bool is_integer() const { return kind_ == Kind::kInt || kind_ == Kind::kUint; }
  bool is_number() const { return is_integer() || kind_ == Kind::kDouble; }

  bool as_bool() const { return data_.boolean; }
  int64_t as_int() const { return data_.integer; }      ///< of kInt (always negative)
  uint64_t as_uint() const { return data_.unsigned_; }  ///< of kUint
  double as_double() const;                             ///< of any number
  std::string_view as_string() const { return {data_.text, size_}; }
  std::span<const JsonValue> items() const { return {data_.items, is_array() ? size_ : 0}; }
  std::span<const JsonMember> members() const;
  /// The value of a key, or nullptr; also nullptr where this is no object. Linear in the number of keys.
  const JsonValue* find(std::string_view key) const;

 private:
  JsonValue(Kind kind, size_t size) : kind_(kind), size_(static_cast<uint32_t>(size)) {}
  Kind kind_ = Kind::kNull;
  uint32_t size_ = 0;  ///< bytes of a string, elements of an array or object
  union {
    bool boolean;
    int64_t integer;
    uint64_t unsigned_;
    double number;
    const char* text;
    const JsonValue* items;
    const JsonMember* members;
  } data_ = {};
};

struct JsonMember {
  std::string_view key;
  JsonValue value;
};

inline std::span<const JsonMember> JsonValue::members() const {
  return {data_.members, is_object() ? size_ : 0};
}

/// Memory for values that live as long as the arena. Never gives memory back before its end.
class JsonArena {
 public:
  std::string_view copy(std::string_view text);
  std::span<const JsonValue> copy(std::span<const JsonValue> values);
  std::span<const JsonMember> copy(std::span<const JsonMember> members);
  /// Uninitialized bytes to write a string of at most `bytes` into.
  char* allocate_text(size_t bytes) { return static_cast<char*>(memory_.allocate(bytes, 1)); }
  void clear() { memory_.release(); }

 private:
  std::array<std::byte, 4096> first_block_;
  std::pmr::monotonic_buffer_resource memory_{first_block_.data(), first_block_.size()};
};

struct JsonLimits {
  size_t max_depth = 127;  ///< nested arrays and objects
  size_t max_bytes = size_t{256} << 20;
  size_t max_values = size_t{8} << 20;  ///< values of all kinds; each takes 16 to 32 bytes
};

/// Reads one JSON text (RFC 8259): UTF-8 only, no lone surrogates, no numbers beyond a double, nothing after
/// the value. Values are allocated in `arena`, and may view `text`, which must outlive them. The error says
/// what was wrong and at which byte. Linear time (n log n in the number of keys of one object).
Result<JsonValue> read_json(std::string_view text, JsonArena& arena, const JsonLimits& limits = {});

/// The byte offset of the first byte that is not part of valid UTF-8, or npos.
size_t find_invalid_utf8(std::string_view text);

/// What a value is, for error messages: "null", "an integer", "a list", ...
std::string_view describe_kind(const JsonValue& value);

}  // namespace hadal::recipe
