#include <utility>

#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace hadal::tokenizer {

std::string IncrementalDecoder::push(int32_t id) {
  if (skip_special_tokens_ && tokenizer_->is_special_token(id)) {
    return {};
  }
  const std::string_view bytes = tokenizer_->token_bytes(id);
  if (bytes.empty()) {
    return {};
  }
  std::string joined;
  std::string_view rest = bytes;
  if (!pending_.empty()) {
    joined = std::exchange(pending_, {}).append(bytes);
    rest = joined;
  }
  while (!rest.empty()) {
    const size_t valid = valid_utf8_prefix(rest);
    held_.append(rest.substr(0, valid));
    rest.remove_prefix(valid);
    if (rest.empty()) {
      break;
    }
    const Utf8Part part = next_utf8_part(rest);
    if (part.kind == Utf8Part::Kind::kIncomplete) {
      pending_ = rest;
      return {};
    }
    held_.append(kReplacement);
    rest.remove_prefix(part.length);
  }
  return held_.ends_with(kReplacement) ? std::string() : std::exchange(held_, {});
}

std::string IncrementalDecoder::finish() {
  if (!pending_.empty()) {
    pending_.clear();
    held_.append(kReplacement);
  }
  return std::exchange(held_, {});
}

}  // namespace hadal::tokenizer
