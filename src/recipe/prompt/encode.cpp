#include "recipe/prompt/encode.h"

#include <string_view>
#include <utility>

namespace hadal::recipe {

Result<std::vector<int32_t>> encode_prompt(const Prompt& prompt, const tokenizer::Tokenizer& tokenizer) {
  const std::string_view text = prompt.text;
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + prompt.special_ranges.size());
  // A prompt uses few spellings, over and over.
  std::vector<std::pair<std::string_view, int32_t>> known;
  size_t at = 0;
  for (const auto& [begin, end] : prompt.special_ranges) {
    if (begin < at || end < begin || end > text.size()) {
      return fail(ErrorCode::kInternal, "special range [{}, {}) of a prompt of {} bytes after byte {}", begin,
                  end, text.size(), at);
    }
    if (begin > at) {
      tokenizer.encode_plain(text.substr(at, begin - at), ids);
    }
    at = end;
    const std::string_view spelling = text.substr(begin, end - begin);
    const auto* found = static_cast<const std::pair<std::string_view, int32_t>*>(nullptr);
    for (const auto& entry : known) {
      if (entry.first == spelling) {
        found = &entry;
        break;
      }
    }
    if (found != nullptr) {
      ids.push_back(found->second);
      continue;
    }
    const std::optional<int32_t> id = tokenizer.token_id(spelling);
    if (!id || !tokenizer.is_added_token(*id)) {
      return fail(ErrorCode::kUnsupported, "the tokenizer has no special token `{}`", spelling);
    }
    known.emplace_back(spelling, *id);
    ids.push_back(*id);
  }
  if (at < text.size()) {
    tokenizer.encode_plain(text.substr(at), ids);
  }
  return ids;
}

}  // namespace hadal::recipe
