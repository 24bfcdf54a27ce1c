#pragma once
// The embedded demo page, as EmbedPage.cmake made it of recipe_page/.

#include <string_view>

namespace hadal::server {

extern const std::string_view kRecipePage;  ///< HTML with its style and script
/// Where the names of the prompt formats belong in it.
inline constexpr std::string_view kFormatsPlace = "@FORMATS@";
/// Value of the Content-Security-Policy header: the style and the script of the page, and calls to this
/// server.
extern const std::string_view kRecipePagePolicy;

}  // namespace hadal::server
