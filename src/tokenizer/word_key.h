#pragma once
// The first bytes of a word as two integers, to hash and compare short words at once.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hadal::tokenizer {

/// Up to 15 bytes, zeros after them, and their number in the last byte.
struct WordKey {
  static constexpr size_t kMaxBytes = 15;

  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const WordKey&) const = default;

  uint64_t hash() const {
    uint64_t mixed = (low ^ std::rotl(high, 29)) * 0x9E3779B97F4A7C15U;
    mixed ^= high * 0xD6E8FEB86659FD93U;
    return (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9U;
  }
};

namespace internal {
static_assert(std::endian::native == std::endian::little, "the masks count bytes from the low end");
struct KeyMask {
  uint64_t low;
  uint64_t high;
};
constexpr std::array<KeyMask, 16> make_key_masks() {
  std::array<KeyMask, 16> masks{};
  for (uint32_t size = 1; size < 16; ++size) {
    masks[size].low = size >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * size) - 1;
    masks[size].high = size <= 8 ? 0 : (uint64_t{1} << 8 * (size - 8)) - 1;
  }
  return masks;
}
inline constexpr std::array<KeyMask, 16> kKeyMasks = make_key_masks();
}  // namespace internal

/// Sixteen bytes from `at` on, or as many as there are before `readable_end`, with zeros after them.
class WordWindow {
 public:
  WordWindow(const char* at, const char* readable_end) {
    if (readable_end - at >= 16) {
      std::memcpy(bytes_.data(), at, 16);
    } else {
      std::memcpy(bytes_.data(), at, static_cast<size_t>(readable_end - at));
    }
  }

  /// The key of the first `size` bytes, 1..15.
  WordKey key(size_t size) const {
    const internal::KeyMask& mask = internal::kKeyMasks[size];
    return {bytes_[0] & mask.low, (bytes_[1] & mask.high) | static_cast<uint64_t>(size) << 56};
  }

  uint32_t first_three() const { return static_cast<uint32_t>(bytes_[0] & 0xFFFFFF); }

 private:
  std::array<uint64_t, 2> bytes_{};
};

}  // namespace hadal::tokenizer
