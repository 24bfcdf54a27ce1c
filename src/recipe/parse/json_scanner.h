#pragma once
// Where in a JSON text a byte is: inside a string or not, and whether the value is whole.

#include <cstdint>

namespace hadal::recipe {

/// Follows brackets and strings only; what is between them is not checked.
class JsonScanner {
 public:
  void feed(char byte) {
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (byte == '\\') {
        escaped_ = true;
      } else if (byte == '"') {
        in_string_ = false;
      }
      return;
    }
    switch (byte) {
      case '"':
        in_string_ = true;
        break;
      case '{':
      case '[':
        ++depth_;
        begun_ = true;
        break;
      case '}':
      case ']':
        depth_ -= depth_ > 0 ? 1 : 0;
        break;
      default:
        break;
    }
  }

  bool in_string() const { return in_string_; }
  /// An array or object began, and all that began has ended.
  bool whole() const { return begun_ && depth_ == 0 && !in_string_; }

 private:
  uint64_t depth_ = 0;
  bool begun_ = false;
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace hadal::recipe
