#include "cli/token_list.h"

#include <charconv>

#include "base/log.h"
#include "base/mapped_file.h"

namespace hadal::cli {

Result<std::vector<int32_t>> parse_token_list(std::string_view text, int64_t vocab_size) {
  constexpr size_t kMaxBytes = 64 << 20;
  if (text.starts_with('@')) {
    HADAL_TRY(const std::string content, read_text_file(text.substr(1), kMaxBytes));
    if (content.starts_with('@')) {
      return fail(ErrorCode::kInvalidArgument, "{}: expected token ids", printable(text, 200));
    }
    return parse_token_list(content, vocab_size);
  }
  constexpr std::string_view kSeparators = " \t\r\n,[]";
  std::vector<int32_t> ids;
  for (size_t begin = text.find_first_not_of(kSeparators); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSeparators, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    int32_t id = -1;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || stop != word.data() + word.size() || id < 0 || id >= vocab_size) {
      return fail(ErrorCode::kInvalidArgument, "token id {}: '{}' is not a whole number from 0 to {}",
                  ids.size(), printable(word, 40), vocab_size - 1);
    }
    ids.push_back(id);
    begin = text.find_first_not_of(kSeparators, end);
  }
  if (ids.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the list of token ids is empty");
  }
  return ids;
}

}  // namespace hadal::cli
