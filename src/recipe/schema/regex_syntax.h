#pragma once
// Whether a text is a regular expression, without running it.

#include <string_view>

namespace hadal::recipe {

/// Checks the syntax of an ECMA-262 pattern (Unicode mode; a `]` that opens a class is a member of it, as
/// elsewhere), with the inline flags and possessive quantifiers that other engines add. No backtracking and
/// no recursion: linear time on any input.
bool is_regex(std::string_view pattern);

}  // namespace hadal::recipe
