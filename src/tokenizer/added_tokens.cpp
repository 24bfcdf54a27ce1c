#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "tokenizer/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace hadal::tokenizer {
namespace {

bool is_space(uint32_t code_point) {
  return (unicode_classes(code_point) & (kSpace | kNewline)) != 0;
}
bool is_word(uint32_t code_point) {
  return (unicode_classes(code_point) & kWord) != 0;
}

bool touches_word(std::string_view text, size_t begin, size_t end) {
  return (begin != 0 && is_word(decode_code_point_before(text.data() + begin).value)) ||
         (end != text.size() && is_word(decode_code_point(text.data() + end).value));
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::vector<TrieEntry> entries;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    entries.push_back({tokens_[i].content, static_cast<int32_t>(i)});
    first_bytes_[static_cast<uint8_t>(tokens_[i].content[0])] = true;
  }
  trie_.build(std::move(entries));
}

void AddedTokenMatcher::split(std::string_view text, std::vector<AddedTokenPiece>& pieces) const {
  const char* const data = text.data();
  const char* const text_end = data + text.size();
  uint64_t steps = 0;
  size_t covered = 0;
  size_t spaces_end = 0;  // end of the run of white space looked at last, so that no run is scanned twice
  for (size_t at = 0; at < text.size();) {
    if (!first_bytes_[static_cast<uint8_t>(data[at])]) {
      ++at;
      continue;
    }
    const TokenTrie::Found found = trie_.longest(data + at, text_end, steps);
    if (found.token == TokenTrie::kNoToken) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(found.token)];
    size_t begin = at;
    size_t end = at + found.length;
    at = end;
    if (token.single_word && touches_word(text, begin, end)) {
      continue;
    }
    if (token.lstrip) {
      while (begin > covered) {
        const CodePoint before = decode_code_point_before(data + begin);
        if (!is_space(before.value)) {
          break;
        }
        begin -= before.length;
      }
    }
    if (token.rstrip) {
      if (spaces_end < end) {
        spaces_end = end;
      }
      while (spaces_end != text.size()) {
        const CodePoint next = decode_code_point(data + spaces_end);
        if (!is_space(next.value)) {
          break;
        }
        spaces_end += next.length;
      }
      end = spaces_end;
    }
    if (covered < begin) {
      pieces.push_back({text.substr(covered, begin - covered), AddedTokenPiece::kText});
    }
    pieces.push_back({{}, token.id});
    covered = end;
  }
  if (covered != text.size()) {
    pieces.push_back({text.substr(covered), AddedTokenPiece::kText});
  }
}

}  // namespace hadal::tokenizer
