#include "model/vocabulary_map.h"

#include <unordered_map>

#include <utf8proc.h>

namespace hadal::model {
namespace {

constexpr int32_t kMaxIds = 1 << 24;
constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

bool is_white_space(utf8proc_int32_t code_point) {
  return (code_point >= 0x09 && code_point <= 0x0d) || code_point == 0x20 || code_point == 0x85 ||
         code_point == 0xa0 || code_point == 0x1680 || (code_point >= 0x2000 && code_point <= 0x200a) ||
         code_point == 0x2028 || code_point == 0x2029 || code_point == 0x202f || code_point == 0x205f ||
         code_point == 0x3000;
}

bool is_collapsed(utf8proc_int32_t code_point) {
  return code_point == ' ' || code_point == '\t' || code_point == '\r' || code_point == '\n';
}

/// Appends the decomposition of one code point, marks dropped and letters lowered, runs of spaces collapsed.
/// NFD after NFKC is NFKD, and NFKD works on code points one by one but for the order of marks, which are
/// dropped here.
void append_normalized(utf8proc_int32_t code_point, std::vector<utf8proc_int32_t>& out) {
  constexpr auto kOptions =
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_STRIPMARK);
  utf8proc_int32_t parts[32];  // the longest decomposition has 18 code points
  int boundary = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      code_point, parts, static_cast<utf8proc_ssize_t>(std::size(parts)), kOptions, &boundary);
  for (utf8proc_ssize_t index = 0; index < count; ++index) {
    const utf8proc_int32_t lower = utf8proc_tolower(parts[index]);
    if (!is_collapsed(lower)) {
      out.push_back(lower);
    } else if (out.empty() || out.back() != ' ') {
      out.push_back(' ');
    }
  }
}

}  // namespace

std::string normalize_token_text(std::string_view text) {
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size());
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t index = 0; index < text.size();) {
    utf8proc_int32_t code_point = 0;
    const auto length =
        utf8proc_iterate(bytes + index, static_cast<utf8proc_ssize_t>(text.size() - index), &code_point);
    append_normalized(length > 0 ? code_point : 0xfffd, out);
    index += length > 0 ? static_cast<size_t>(length) : 1;
  }

  size_t begin = 0;
  size_t end = out.size();
  if (!(end == 1 && out[0] == ' ')) {
    while (begin < end && is_white_space(out[begin])) {
      ++begin;
    }
    while (begin < end && is_white_space(out[end - 1])) {
      --end;
    }
  }
  std::string result;
  for (size_t index = begin; index < end; ++index) {
    utf8proc_uint8_t encoded[4];
    const auto length = utf8proc_encode_char(out[index], encoded);
    result.append(reinterpret_cast<const char*>(encoded), static_cast<size_t>(length));
  }
  return result;
}

Result<std::vector<int32_t>> build_vocabulary_map(const tokenizer::Tokenizer& tokenizer) {
  const int32_t num_ids = tokenizer.vocab_size();
  if (num_ids > kMaxIds) {
    return fail(ErrorCode::kUnsupported, "tokenizer: found {} ids, expected at most {}", num_ids, kMaxIds);
  }
  std::vector<int32_t> map(static_cast<size_t>(num_ids));
  std::unordered_map<std::string, int32_t> compressed_ids;
  compressed_ids.reserve(map.size());
  for (int32_t id = 0; id < num_ids; ++id) {
    std::string text = tokenizer.decode({&id, 1});
    std::string key;
    if (text.find(kReplacementCharacter) != text.npos) {
      key = tokenizer.token_spelling(id);
    } else if (key = normalize_token_text(text); key.empty()) {
      key = std::move(text);
    }
    const auto next_id = static_cast<int32_t>(compressed_ids.size());
    map[static_cast<size_t>(id)] = compressed_ids.try_emplace(std::move(key), next_id).first->second;
  }
  return map;
}

}  // namespace hadal::model
