#pragma once
// Stop sequences in a stream of text.

#include <string>
#include <string_view>
#include <vector>

namespace hadal::server {

/// Ends a text before the first stop sequence in it, without ever letting out a part of one. The sequence
/// that completes first wins, among equals the first in the list. Work per byte is the number of sequences.
class StopMatcher {
 public:
  explicit StopMatcher(const std::vector<std::string>& sequences);

  /// Appends to `out` the text that cannot be part of a stop sequence any more. True once a sequence was
  /// found: `out` then ends before it, and further text is dropped.
  bool push(std::string_view text, std::string& out);
  /// Appends what was held back.
  void finish(std::string& out);

 private:
  struct Sequence {
    std::string text;
    std::vector<size_t> fallback;  ///< [i]: length of the longest proper border of the first i bytes
    size_t matched = 0;            ///< bytes of `text` that the input ends with
  };
  std::vector<Sequence> sequences_;
  std::string held_;
  bool is_stopped_ = false;
};

}  // namespace hadal::server
