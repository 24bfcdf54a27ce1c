#pragma once
// The prompt while it grows.

#include <span>
#include <string_view>
#include <utility>

#include "recipe/conversation.h"
#include "recipe/prepared_request.h"
#include "recipe/special_tokens.h"

namespace hadal::recipe {

class PromptBuilder {
 public:
  PromptBuilder(const SpecialTokens& tokens, size_t expected_bytes) : tokens_(tokens) {
    prompt_.text.reserve(expected_bytes);
    prompt_.special_ranges.reserve(64);
  }

  /// Text that stays text, whatever it spells.
  void text(std::string_view text) { prompt_.text += text; }

  /// A token that the model must see as one id.
  void special(SpecialToken token) {
    const size_t begin = prompt_.text.size();
    prompt_.text += tokens_[token];
    if (prompt_.text.size() != begin) {  // a spelling may be set to nothing
      prompt_.special_ranges.emplace_back(begin, prompt_.text.size());
    }
  }

  /// What the model itself said: marks of places in an image (SpecialToken::kRef and after) become tokens
  /// again, all else stays text.
  void model_text(std::string_view text);

  /// The content of a message; its images become special tokens.
  void content(Message& message) {
    const size_t begin = prompt_.text.size();
    prompt_.text += message.content;
    const size_t placeholder = tokens_[SpecialToken::kImage].size();
    for (PlacedImage& image : message.images) {
      if (image.offset != PlacedImage::kNowhere && placeholder != 0) {
        prompt_.special_ranges.emplace_back(begin + image.offset, begin + image.offset + placeholder);
      }
      prompt_.images.push_back(std::move(image.source));
    }
  }

  /// Where JSON text is appended.
  std::string& raw() { return prompt_.text; }

  Prompt take() { return std::move(prompt_); }

 private:
  const SpecialTokens& tokens_;
  Prompt prompt_;
};

}  // namespace hadal::recipe
