#pragma once
// Streaming search for markers (Knuth-Morris-Pratt): one byte at a time, amortized constant time per byte.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/parse/origin.h"

namespace hadal::recipe {

/// A byte string to look for, a part of which may have to come from a special token.
class Marker {
 public:
  /// All of it is ordinary text.
  explicit Marker(std::string bytes) : Marker(std::move(bytes), 0, 0) {}
  /// Bytes [special_begin, special_end) are the spelling of a special token.
  Marker(std::string bytes, size_t special_begin, size_t special_end);

  std::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  /// The longest proper prefix that is a suffix of the first `matched` bytes.
  size_t fallback(size_t matched) const { return fallback_[matched]; }

  /// The length of the longest prefix of the marker that ends with `byte`, given the one that ended before it
  /// (`matched` < size()). A result of size() is a match.
  size_t step(size_t matched, char byte, Origin origin) const {
    while (!accepts(matched, byte, origin)) {
      if (matched == 0) {
        return 0;
      }
      matched = fallback_[matched];
    }
    return matched + 1;
  }

 private:
  bool accepts(size_t at, char byte, Origin origin) const {
    return bytes_[at] == byte &&
           (origin == Origin::kText || (origin == Origin::kSpecialToken) == special(at));
  }
  bool special(size_t at) const { return at >= special_begin_ && at < special_end_; }

  std::string bytes_;
  size_t special_begin_;
  size_t special_end_;
  std::vector<size_t> fallback_;
};

/// Looks for several markers at once.
class MarkerSet {
 public:
  MarkerSet() = default;
  /// Earlier markers win where several end at the same byte. Empty markers are never found.
  explicit MarkerSet(std::vector<Marker> markers);

  /// The first marker of the list that ends with this byte. After a match call reset() or pass_over().
  std::optional<size_t> step(char byte, Origin origin) {
    std::optional<size_t> found;
    for (size_t index = 0; index < markers_.size(); ++index) {
      const size_t size = markers_[index].size();
      if (size == 0) {
        continue;
      }
      matched_[index] = markers_[index].step(matched_[index], byte, origin);
      if (matched_[index] == size && !found) {
        found = index;
      }
    }
    return found;
  }

  void reset() { matched_.assign(markers_.size(), 0); }
  /// Takes matches for text and goes on.
  void pass_over() {
    for (size_t index = 0; index < markers_.size(); ++index) {
      if (matched_[index] == markers_[index].size()) {
        matched_[index] = markers_[index].fallback(matched_[index]);
      }
    }
  }

  /// How many of the last bytes may still become marker `index`.
  size_t matched(size_t index) const { return matched_[index]; }
  /// How many of the last bytes may still become a marker.
  size_t longest_match() const;

  /// False for a byte that no marker starts with: it changes nothing while longest_match() is 0.
  bool may_start_with(char byte) const { return starts_[static_cast<uint8_t>(byte)]; }

  const Marker& marker(size_t index) const { return markers_[index]; }
  size_t size() const { return markers_.size(); }

 private:
  std::vector<Marker> markers_;
  std::vector<size_t> matched_;
  std::array<bool, 256> starts_{};
};

}  // namespace hadal::recipe
