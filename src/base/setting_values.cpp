#include "base/setting_values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/log.h"

namespace hadal {
namespace {

/// The leading number of `text`; `rest` gets what follows it.
template <class Number>
bool take_number(std::string_view text, Number& number, std::string_view& rest) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  rest = text.substr(static_cast<size_t>(end - text.data()));
  return error == std::errc();
}

tl::unexpected<Error> bad_value(std::string_view text, std::string_view form) {
  return fail(ErrorCode::kInvalidArgument, "'{}' is not {}", printable(text, 80), form);
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

std::string integer_setting_form(int64_t lowest, int64_t highest) {
  if (highest == std::numeric_limits<int64_t>::max()) {
    return fmt::format("a whole number of at least {}", lowest);
  }
  return fmt::format("a whole number from {} to {}", lowest, highest);
}

Result<int64_t> parse_integer_setting(std::string_view text, int64_t lowest, int64_t highest) {
  int64_t value = 0;
  std::string_view rest;
  if (!take_number(text, value, rest) || !rest.empty() || value < lowest || value > highest) {
    return bad_value(text, integer_setting_form(lowest, highest));
  }
  return value;
}

Result<bool> parse_switch_setting(std::string_view text) {
  for (const std::string_view word : {"on", "true", "True", "yes", "1"}) {
    if (text == word) {
      return true;
    }
  }
  for (const std::string_view word : {"off", "false", "False", "no", "0", ""}) {
    if (text == word) {
      return false;
    }
  }
  return bad_value(text, kSwitchForm);
}

Result<uint64_t> parse_size_setting(std::string_view text) {
  struct Unit {
    std::string_view name;
    int shift;
  };
  static constexpr std::array<Unit, 10> kUnits{{{"", 0},
                                                {"B", 0},
                                                {"K", 10},
                                                {"KiB", 10},
                                                {"M", 20},
                                                {"MiB", 20},
                                                {"G", 30},
                                                {"GiB", 30},
                                                {"T", 40},
                                                {"TiB", 40}}};
  uint64_t value = 0;
  std::string_view rest;
  if (take_number(text, value, rest)) {
    for (const Unit& unit : kUnits) {
      if (trim(rest) == unit.name && value <= (uint64_t{1} << 62) >> unit.shift) {
        return value << unit.shift;
      }
    }
  }
  return bad_value(text, kSizeForm);
}

std::string print_size_setting(uint64_t bytes) {
  static constexpr std::array<const char*, 4> kUnits{"KiB", "MiB", "GiB", "TiB"};
  if (bytes == 0 || bytes % 1024 != 0) {
    return std::to_string(bytes);
  }
  size_t unit = 0;
  bytes /= 1024;
  while (bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

Result<std::chrono::milliseconds> parse_duration_setting(std::string_view text) {
  struct Unit {
    std::string_view name;
    double milliseconds;
  };
  static constexpr std::array<Unit, 5> kUnits{
      {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};
  constexpr double kLongest = 30.0 * 24 * 3'600'000;
  double value = 0;
  std::string_view rest;
  if (take_number(text, value, rest) && value >= 0) {
    for (const Unit& unit : kUnits) {
      if (trim(rest) == unit.name && value * unit.milliseconds <= kLongest) {
        return std::chrono::milliseconds(std::llround(value * unit.milliseconds));
      }
    }
  }
  return bad_value(text, kDurationForm);
}

std::string print_duration_setting(std::chrono::milliseconds duration) {
  if (duration.count() % 1000 == 0) {
    return fmt::format("{}s", duration.count() / 1000);
  }
  return fmt::format("{}ms", duration.count());
}

Result<std::vector<std::string>> parse_list_setting(std::string_view text) {
  std::vector<std::string> parts;
  if (trim(text).empty()) {
    return parts;
  }
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view part = trim(text.substr(0, comma));
    if (part.empty()) {
      return fail(ErrorCode::kInvalidArgument, "part {} is empty; expected {}", parts.size() + 1, kListForm);
    }
    parts.emplace_back(part);
    if (comma == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(comma + 1);
  }
}

}  // namespace hadal
