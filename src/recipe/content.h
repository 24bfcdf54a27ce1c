#pragma once
// Message contents made of parts: texts, images, and what cannot be shown.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/conversation.h"
#include "recipe/notices.h"

namespace hadal::recipe {

inline constexpr std::string_view kUnsupportedImage = "[Unsupported Image]";
inline constexpr size_t kLongestUrl = 8192;

/// What an image URL is. Schemes and media types are compared without regard to case.
enum class ImageUrlKind {
  kHttp,
  kImageData,        ///< a data URL of a known image type with valid base64
  kUnsupportedData,  ///< a base64 data URL of another type
  kInvalidBase64,
  kOther,
};
ImageUrlKind classify_image_url(std::string_view url);

/// Whether `text` is base64 as the standard has it: padded, without spaces. Nothing at all is base64, too.
bool is_strict_base64(std::string_view text);

inline constexpr std::string_view kUnsupportedImageText =
    "You have uploaded an unsupported image. Please make sure your image is valid and has one of the "
    "following "
    "formats: webp, png, jpeg, and gif.";

/// Joins parts by a blank line. V4 has no images: each becomes a notice, whatever it is.
class ContentBuilder {
 public:
  ContentBuilder(ModelVersion version, const SpecialTokens& tokens, Notices& notices)
      : version_(version), tokens_(tokens), notices_(notices) {}

  void text(std::string_view text);
  void image(ImageSource source);
  /// Adds what stands for an image where the model version has none.
  void image_notice() {
    text(kUnsupportedImage);
    notices_.image_replaced();
  }
  /// Adds what stands for a document that cannot be read.
  void document_notice(std::string_view notice) {
    text(notice);
    notices_.document_replaced();
  }
  bool supports_images() const { return version_ != ModelVersion::kV4; }
  bool has_parts() const { return num_parts_ != 0; }
  /// Moves the content into a message.
  void finish(Message& message);

 private:
  void separate();
  ModelVersion version_;
  const SpecialTokens& tokens_;
  Notices& notices_;
  size_t num_parts_ = 0;
  std::string text_;
  std::vector<PlacedImage> images_;
};

/// Whether `text` holds "json" in any case. Linear.
bool mentions_json(std::string_view text);

/// What thinking mode asks of the history: after the last user message, turns with calls (with `all_turns`:
/// all turns of the assistant) must have their reasoning, unless one of the call ids proves that there was
/// none. `field` names in the error what is missing.
Result<void> check_reasoning_passed_back(const Conversation& conversation, bool all_turns,
                                         std::string_view field);

/// Fills missing reasoning with nothing in thinking mode; removes all reasoning where thinking is off.
void settle_reasoning(Conversation& conversation);

}  // namespace hadal::recipe
