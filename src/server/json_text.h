#pragma once
// Writing JSON without a document, for the paths that run once a token.

#include <cstdint>
#include <string>
#include <string_view>

namespace hadal::server {

/// Appends `text` as a JSON string with its quotes. Invalid UTF-8 becomes U+FFFD, so that the result is valid
/// JSON whatever the text is.
void append_json_string(std::string& out, std::string_view text);

void append_json_integer(std::string& out, int64_t value);

/// The shortest decimal form that reads back as the same number; infinities and NaN become null.
void append_json_number(std::string& out, double value);

/// One server-sent event; an empty name writes none. `data` must not hold line breaks (JSON text does not).
void append_event(std::string& out, std::string_view name, std::string_view data);

}  // namespace hadal::server
