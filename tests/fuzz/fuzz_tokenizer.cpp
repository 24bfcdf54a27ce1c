// A tokenizer.json from anyone: it is refused, or it can be used. Decoding id by id gives what decoding at
// once gives.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

constexpr std::string_view kTexts[] = {
    "The galley is on deck 2.\n\n  12345 don't",
    "深海の駅 🐙 e\xcc\x81 \xff\xf0\x9f",
    "<｜begin▁of▁sentence｜><｜User｜>Hello<｜Assistant｜></think>",
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hadal::tokenizer::Tokenizer;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = Tokenizer::parse(json, "input");
  if (!tokenizer) {
    require(!tokenizer.error().message.empty());
    return 0;
  }
  for (const std::string_view text : kTexts) {
    std::vector<int32_t> ids;
    (*tokenizer)->encode_plain(text, ids);
    (*tokenizer)->encode_with_special(text, ids);
    hadal::tokenizer::IncrementalDecoder decoder(*tokenizer);
    std::string pieces;
    for (const int32_t id : ids) {
      require(id >= 0 && id < (*tokenizer)->vocab_size());
      pieces += decoder.push(id);
    }
    pieces += decoder.finish();
    require(pieces == (*tokenizer)->decode(ids));
  }
  return 0;
}
