#pragma once
// The check of a seed on the command line; CLI11 itself would wrap what is out of range.

#include <charconv>
#include <cstdint>
#include <string>

namespace hadal::cli {

/// Empty for a whole number of 64 bits without sign, else what was expected.
inline std::string is_seed(const std::string& text) {
  uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, seed);
  return fault == std::errc() && stop == end ? "" : "expected a whole number from 0 to 18446744073709551615";
}

}  // namespace hadal::cli
