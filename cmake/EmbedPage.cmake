# Makes one C++ source of the page in FOLDER (page.html with page.css and page.js), and the Content-Security-Policy
# that allows just these two by their hashes:
#   cmake -DFOLDER=... -DOUTPUT=... -P EmbedPage.cmake
cmake_minimum_required(VERSION 3.25)

# The base64 text of the SHA-256 of `text`, as the policy wants it.
function(base64_sha256 text result)
  set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(SHA256 hex "${text}")
  string(APPEND hex "00") # 32 bytes to 33, eleven groups of three
  set(base64 "")
  foreach(group RANGE 0 10)
    math(EXPR at "${group} * 6")
    string(SUBSTRING "${hex}" ${at} 6 bytes)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${bytes} >> ${shift}) & 63")
      string(SUBSTRING "${digits}" ${digit} 1 digit)
      string(APPEND base64 "${digit}")
    endforeach()
  endforeach()
  string(SUBSTRING "${base64}" 0 43 base64)
  set(${result} "${base64}=" PARENT_SCOPE)
endfunction()

file(READ ${FOLDER}/page.css style)
file(READ ${FOLDER}/page.js script)
file(READ ${FOLDER}/page.html page)
if("${style}${script}${page}" MATCHES "\\)page\"")
  message(FATAL_ERROR "${FOLDER}: a file holds the end of the C++ string that it goes into")
endif()
# The hashes are of all that is between the tags.
base64_sha256("\n${style}" style_hash)
base64_sha256("\n${script}" script_hash)
string(REPLACE "@STYLE@" "\n${style}" page "${page}")
string(REPLACE "@SCRIPT@" "\n${script}" page "${page}")

set(policy "default-src 'none'")
string(APPEND policy "; style-src 'sha256-${style_hash}'; script-src 'sha256-${script_hash}'; connect-src 'self'")
string(APPEND policy "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
string(APPEND policy "; require-trusted-types-for 'script'; trusted-types 'none'")
file(WRITE ${OUTPUT} "// Made by cmake/EmbedPage.cmake.
#include \"server/recipe_page.h\"

namespace hadal::server {

const std::string_view kRecipePage = R\"page(${page})page\";
const std::string_view kRecipePagePolicy = R\"page(${policy})page\";

}  // namespace hadal::server
")
