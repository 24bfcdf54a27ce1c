#include "recipe/prompt/builder.h"

#include <algorithm>

namespace hadal::recipe {

void PromptBuilder::model_text(std::string_view text) {
  const std::span places = std::span(tokens_.spellings).subspan(kFirstPlaceToken);
  // All spellings have a first byte in common unless they were replaced; that byte is rare in text.
  const bool share_first = std::all_of(places.begin(), places.end(), [&](const std::string& spelling) {
    return !spelling.empty() && spelling[0] == places[0][0];
  });
  const size_t begin = prompt_.text.size();
  prompt_.text += text;
  for (size_t at = 0; at < text.size();) {
    at = share_first ? text.find(places[0][0], at) : at;
    if (at == std::string_view::npos) {
      return;
    }
    const std::string_view rest = text.substr(at);
    const auto found = std::find_if(places.begin(), places.end(), [&](const std::string& spelling) {
      return !spelling.empty() && rest.starts_with(spelling);
    });
    if (found == places.end()) {
      ++at;
      continue;
    }
    prompt_.special_ranges.emplace_back(begin + at, begin + at + found->size());
    at += found->size();
  }
}

}  // namespace hadal::recipe
