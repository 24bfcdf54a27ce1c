#pragma once
// The written forms of setting values: text to typed value and back. Every error says what was expected.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hadal {

/// A whole number in [lowest, highest].
Result<int64_t> parse_integer_setting(std::string_view text, int64_t lowest, int64_t highest);
std::string integer_setting_form(int64_t lowest, int64_t highest);

/// on, true, yes, 1 / off, false, no, 0 and the empty text (which is off, as in the reference).
Result<bool> parse_switch_setting(std::string_view text);
inline constexpr std::string_view kSwitchForm = "on or off";

/// Bytes: a whole number, optionally with K, M, G, T (KiB, MiB, ...), all of them powers of 1024.
Result<uint64_t> parse_size_setting(std::string_view text);
std::string print_size_setting(uint64_t bytes);
inline constexpr std::string_view kSizeForm = "a number of bytes, optionally with KiB, MiB, GiB or TiB";

/// A time: a number of seconds, or a number with ms, s, m or h.
Result<std::chrono::milliseconds> parse_duration_setting(std::string_view text);
std::string print_duration_setting(std::chrono::milliseconds duration);
inline constexpr std::string_view kDurationForm = "seconds, or a number with ms, s, m or h (at most 30 days)";

/// Parts between commas, trimmed; an empty part is an error.
Result<std::vector<std::string>> parse_list_setting(std::string_view text);
inline constexpr std::string_view kListForm = "a list separated by commas";

}  // namespace hadal
