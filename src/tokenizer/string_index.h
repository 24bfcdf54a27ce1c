#pragma once
// A flat hash index from strings to numbers.

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace hadal::tokenizer {

/// Hash of a string; mixes 8 bytes a step.
inline uint64_t hash_bytes(std::string_view text) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15U;
  uint64_t hash = text.size() * kMultiplier;
  const auto mix = [&hash](uint64_t chunk) {
    hash = (hash ^ chunk) * kMultiplier;
    hash ^= hash >> 29;
  };
  while (text.size() >= 8) {
    uint64_t chunk;
    std::memcpy(&chunk, text.data(), 8);
    mix(chunk);
    text.remove_prefix(8);
  }
  uint64_t chunk = 0;
  if (!text.empty()) {
    std::memcpy(&chunk, text.data(), text.size());
  }
  mix(chunk);
  return hash ^ hash >> 32;
}

/// Maps strings to values of 32 bits by open addressing. Keeps views: the strings must outlive the index.
class StringIndex {
 public:
  /// `capacity` strings will be inserted at most.
  explicit StringIndex(size_t capacity = 0) {
    size_t size = 16;
    while (size < capacity * 2) {
      size *= 2;
    }
    slots_.resize(size);
  }

  /// Inserts a new string and returns true, or returns false if it is already there.
  bool insert(std::string_view text, int32_t value) {
    Slot& slot = slots_[locate(text)];
    if (slot.text.data() != nullptr) {
      return false;
    }
    slot = {text.data() == nullptr ? std::string_view("") : text, value};
    return true;
  }

  std::optional<int32_t> find(std::string_view text) const {
    const Slot& slot = slots_[locate(text)];
    return slot.text.data() == nullptr ? std::nullopt : std::optional(slot.value);
  }

 private:
  struct Slot {
    std::string_view text;
    int32_t value = 0;
  };

  size_t locate(std::string_view text) const {
    size_t at = hash_bytes(text) & (slots_.size() - 1);
    while (slots_[at].text.data() != nullptr && slots_[at].text != text) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return at;
  }

  std::vector<Slot> slots_;
};

}  // namespace hadal::tokenizer
