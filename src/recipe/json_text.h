#pragma once
// Writing JSON text in the styles that prompts, constraints and answers need.

#include <cstdint>
#include <string>
#include <string_view>

#include "recipe/json_value.h"
#include "recipe/prepared_request.h"

namespace hadal::recipe {

/// How JSON text looks.
enum class JsonStyle {
  kCompact,    ///< `{"a":1,"b":[2]}`, numbers as kPromptV4: constraints, error bodies, events
  kPromptV41,  ///< `{"a": 1, "b": [2]}`, floats as `1e-07`, `1e+16`
  kPromptV4,   ///< `{"a": 1, "b": [2]}`, floats as `1e-7`, `1e+16`, decimal notation down to 1e-5
};

/// Appends `text` with JSON escapes and no quotes: `\"` `\\` `\n` `\r` `\t` `\b` `\f`, `\u00xx` below 0x20;
/// everything else as it is. The escape of a text is the concatenation of the escapes of its pieces.
void append_json_escaped(std::string& out, std::string_view text);

/// Appends `text` as a JSON string with its quotes.
void append_json_string(std::string& out, std::string_view text);

/// Appends a finite double: the shortest digits that read back as the same value, always with a point or
/// an exponent.
void append_json_double(std::string& out, double value, JsonStyle style);

/// Appends `value` as JSON text in `style`. No recursion: any depth is safe.
void append_json(std::string& out, const Json& value, JsonStyle style);

/// The same for a value as it was read. Recursive; values from read_json() are bounded by their JsonLimits.
void append_json(std::string& out, const JsonValue& value, JsonStyle style);

inline std::string json_text(const JsonValue& value, JsonStyle style = JsonStyle::kCompact) {
  std::string out;
  append_json(out, value, style);
  return out;
}

inline std::string json_text(const Json& value, JsonStyle style = JsonStyle::kCompact) {
  std::string out;
  append_json(out, value, style);
  return out;
}

}  // namespace hadal::recipe
