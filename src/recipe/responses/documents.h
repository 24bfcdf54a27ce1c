#pragma once
// Files inside requests.

#include <optional>
#include <string>
#include <string_view>

namespace hadal::recipe::responses {

/// The text of a base64 data URL whose type says that it is text; nullopt for any other type, bad base64, and
/// bytes that are not UTF-8.
std::optional<std::string> text_of_data_url(std::string_view url);

}  // namespace hadal::recipe::responses
