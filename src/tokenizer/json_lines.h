#pragma once
// Tokenizing as a filter over JSON Lines: one line in, one line out. For tools and tests.

#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace hadal::tokenizer {

/// `{"id": …, "text": "…"}` -> the same object with `"ids": […]` added (or replaced). Other members stay as
/// they are, in their order. With `with_special`, spellings of added tokens become their ids. A line that is
/// no such object gives `{"id": …, "error": "…"}` (id null if it cannot be read). No newline.
std::string tokenize_line(const Tokenizer& tokenizer, std::string_view line, bool with_special);

/// `{"id": …, "ids": […]}` -> the same object with `"text": "…"` added (or replaced); errors as above.
std::string detokenize_line(const Tokenizer& tokenizer, std::string_view line,
                            bool skip_special_tokens = false);

}  // namespace hadal::tokenizer
