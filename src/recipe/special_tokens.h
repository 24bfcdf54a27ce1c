#pragma once
// The special tokens that prompts are built of, and how each is spelled.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace hadal::recipe {

enum class SpecialToken : uint8_t {
  kBos,
  kEos,
  kThinkStart,
  kThinkEnd,
  kSystem,
  kUser,
  kAssistant,
  kLatestReminder,
  kDsml,
  kImage,
  // Marks of places in an image. Prompts have them where the assistant's own text has them, nowhere else.
  kRef,
  kRefEnd,
  kBox,
  kBoxEnd,
  kPoint,
  kPointEnd,
  kPolygon,
  kPolygonEnd,
};
inline constexpr size_t kNumSpecialTokens = 18;
inline constexpr size_t kFirstPlaceToken = static_cast<size_t>(SpecialToken::kRef);

/// Spellings of the special tokens; those of DeepSeek V4 and V4.1 unless replaced.
struct SpecialTokens {
  std::array<std::string, kNumSpecialTokens> spellings{
      "<｜begin▁of▁sentence｜>",
      "<｜end▁of▁sentence｜>",
      "<think>",
      "</think>",
      "<｜System｜>",
      "<｜User｜>",
      "<｜Assistant｜>",
      "<｜latest_reminder｜>",
      "｜DSML｜",
      "<｜image｜>",
      "<｜ref｜>",
      "<｜/ref｜>",
      "<｜box｜>",
      "<｜/box｜>",
      "<｜point｜>",
      "<｜/point｜>",
      "<｜polygon｜>",
      "<｜/polygon｜>",
  };

  const std::string& operator[](SpecialToken token) const { return spellings[static_cast<size_t>(token)]; }
  std::string& operator[](SpecialToken token) { return spellings[static_cast<size_t>(token)]; }
};

}  // namespace hadal::recipe
