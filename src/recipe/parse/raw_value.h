#pragma once
// A JSON value as a model writes it: passed on while it arrives, and repaired where it is not JSON.

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "recipe/parse/piece_queue.h"

namespace hadal::recipe {

/// Follows the bytes of one value and settles them as argument text, so that what has been passed on is
/// always the beginning of valid JSON. From the first byte that cannot be part of JSON on, all text of the
/// value goes into a JSON string at a place where one may stand: nothing that the model wrote is lost.
///
///   `[1, x]` -> `[1, "x]"]`    `{x: 1}` -> `{"x: 1}": null}`    `{"a": 1,}` -> `{"a": 1}`
///   `[1, 2`  -> `[1, 2]`       `hello`  -> `"hello"`            ``          -> `null`
///
/// Constant time per byte. Deeper nesting than kMaxDepth counts as not JSON.
class RawValue {
 public:
  static constexpr size_t kMaxDepth = 128;

  /// Settles bytes of `queue`, which must outlive this.
  explicit RawValue(PieceQueue& queue) : queue_(queue) {}

  /// The next byte of the value. The pending bytes of the queue must begin with those that were fed and are
  /// held back, and go on with this one.
  void feed(char byte);

  /// The value ends behind the bytes that were fed.
  void finish();

  /// The output ends inside of the value: what is held back is passed on as it is.
  void abandon() { emit(held_); }

  /// Bytes that were fed and are not settled yet.
  size_t num_held() const { return held_; }
  /// What was passed on is not what the model wrote.
  bool repaired() const { return repaired_; }

 private:
  enum class State : uint8_t {
    kValue,      ///< a value must follow
    kFirstItem,  ///< a value or `]`
    kFirstKey,   ///< a key or `}`
    kKey,        ///< a key, behind a comma
    kColon,
    kAfterValue,  ///< a comma or the end of the container
    kDone,        ///< the value is whole; its last bytes and space behind it are held back
    kString,
    kEscape,     ///< behind a backslash
    kHexDigits,  ///< behind \u
    kNumber,
    kLiteral,
    kGarbage,
  };
  enum class NumberPart : uint8_t { kMinus, kZero, kInteger, kPoint, kFraction, kE, kESign, kExponent };

  void feed_space();
  void feed_structure(char byte);
  void feed_string(char byte);
  void feed_hex_digit(char byte);
  bool number_takes(char byte);
  bool number_complete() const;
  void begin_value(char byte);
  void end_value();
  void close_container();

  /// Passes on the first `count` held bytes, as they are or as the inside of a JSON string.
  void emit(size_t count);
  void emit_escaped(size_t count);
  void insert(std::string_view text);
  /// What is held, and all that follows, goes into a string.
  void begin_garbage();
  void close_containers();
  bool in_object() const { return depth_ > 0 && objects_[depth_ - 1]; }

  PieceQueue& queue_;
  State state_ = State::kValue;
  NumberPart number_ = NumberPart::kMinus;
  std::string_view literal_;  ///< what is left of true, false or null
  size_t held_ = 0;
  size_t depth_ = 0;
  std::bitset<kMaxDepth> objects_;  ///< which open containers are objects
  bool behind_comma_ = false;       ///< a comma and space are held
  bool in_key_ = false;
  bool top_string_ = false;
  bool empty_container_ = false;  ///< kDone: `{}` or `[]`
  size_t hex_left_ = 0;
  uint32_t code_ = 0;        ///< of \uXXXX
  bool high_held_ = false;   ///< the escape of a high surrogate is held, the low one must follow
  std::string garbage_end_;  ///< ends the string of garbage and all containers
  bool repaired_ = false;
};

}  // namespace hadal::recipe
