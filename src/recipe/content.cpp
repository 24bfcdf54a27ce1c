#include "recipe/content.h"

#include <algorithm>

namespace hadal::recipe {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower_prefix) {
  return text.size() >= lower_prefix.size() &&
         std::equal(lower_prefix.begin(), lower_prefix.end(), text.begin(),
                    [](char a, char b) { return a == lower(b); });
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_space(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

bool is_base64(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}

int hex_value(char c) {
  return c >= '0' && c <= '9' ? c - '0' : lower(c) >= 'a' && lower(c) <= 'f' ? lower(c) - 'a' + 10 : -1;
}

/// Base64 as data URLs may have it: percent-encoded, with white space, with or without padding; a fragment
/// ends it.
bool is_forgiving_base64(std::string_view text) {
  text = text.substr(0, text.find('#'));
  size_t letters = 0;
  size_t padding = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '%') {
      if (at + 2 >= text.size() || hex_value(text[at + 1]) < 0 || hex_value(text[at + 2]) < 0) {
        return false;
      }
      c = static_cast<char>(hex_value(text[at + 1]) * 16 + hex_value(text[at + 2]));
      at += 2;
    }
    if (is_space(c)) {
      continue;
    }
    if (c == '=') {
      ++padding;
    } else if (!is_base64(c) || padding != 0) {
      return false;
    } else {
      ++letters;
    }
  }
  return letters % 4 != 1 && (padding == 0 || (padding <= 2 && (letters + padding) % 4 == 0));
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Ids of the form call_DD_ET_... are given to calls of a turn that had no reasoning.
bool proves_empty_reasoning(std::string_view id) {
  return id.size() >= 11 && id.starts_with("call_") && is_digit(id[5]) && is_digit(id[6]) &&
         id.substr(7).starts_with("_ET_");
}

}  // namespace

bool is_strict_base64(std::string_view text) {
  size_t size = text.size();
  if (size % 4 != 0) {
    return false;
  }
  for (int padding = 0; padding < 2 && size > 0 && text[size - 1] == '='; ++padding) {
    --size;
  }
  return std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(size), is_base64);
}

ImageUrlKind classify_image_url(std::string_view url) {
  if (starts_with_ignoring_case(url, "http://") || starts_with_ignoring_case(url, "https://")) {
    return ImageUrlKind::kHttp;
  }
  if (!starts_with_ignoring_case(url, "data:")) {
    return ImageUrlKind::kOther;
  }
  url.remove_prefix(5);
  const size_t comma = url.find(',');
  std::string_view header = trimmed(url.substr(0, comma));
  constexpr std::string_view kBase64 = "base64";
  if (comma == std::string_view::npos || header.size() < kBase64.size() ||
      !starts_with_ignoring_case(header.substr(header.size() - kBase64.size()), kBase64)) {
    return ImageUrlKind::kOther;
  }
  header = trimmed(header.substr(0, header.size() - kBase64.size()));
  if (!header.ends_with(';')) {
    return ImageUrlKind::kOther;
  }
  const std::string_view type = trimmed(header.substr(0, header.find(';')));
  constexpr std::string_view kTypes[] = {"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"};
  const bool known = std::any_of(std::begin(kTypes), std::end(kTypes), [&](std::string_view name) {
    return type.size() == name.size() && starts_with_ignoring_case(type, name);
  });
  if (!known) {
    return ImageUrlKind::kUnsupportedData;
  }
  return is_forgiving_base64(url.substr(comma + 1)) ? ImageUrlKind::kImageData : ImageUrlKind::kInvalidBase64;
}

void ContentBuilder::separate() {
  if (num_parts_++ != 0) {
    text_ += "\n\n";
  }
}

void ContentBuilder::text(std::string_view text) {
  separate();
  text_ += text;
}

void ContentBuilder::image(ImageSource source) {
  separate();
  images_.push_back({text_.size(), std::move(source)});
  text_ += tokens_[SpecialToken::kImage];
}

void ContentBuilder::finish(Message& message) {
  message.content = std::move(text_);
  message.images = std::move(images_);
  text_.clear();
  images_.clear();
  num_parts_ = 0;
}

bool mentions_json(std::string_view text) {
  constexpr std::string_view kWord = "json";
  for (size_t at = 0; at + kWord.size() <= text.size(); ++at) {
    at = text.find_first_of("jJ", at);
    if (at == std::string_view::npos) {
      return false;
    }
    if (starts_with_ignoring_case(text.substr(at), kWord)) {
      return true;
    }
  }
  return false;
}

Result<void> check_reasoning_passed_back(const Conversation& conversation, bool all_turns,
                                         std::string_view field) {
  for (size_t index = conversation.messages.size(); index > 0; --index) {
    const Message& message = conversation.messages[index - 1];
    if (message.role == Role::kUser) {
      return {};
    }
    if (message.role != Role::kAssistant || message.reasoning || !(all_turns || message.tool_calls)) {
      continue;
    }
    const bool proven = message.tool_calls &&
                        std::any_of(message.tool_calls->begin(), message.tool_calls->end(),
                                    [](const ToolCall& call) { return proves_empty_reasoning(call.id); });
    if (!proven) {
      return fail(ErrorCode::kInvalidArgument,
                  "The `{}` in the thinking mode must be passed back to the API.", field);
    }
  }
  return {};
}

void settle_reasoning(Conversation& conversation) {
  for (Message& message : conversation.messages) {
    if (message.role != Role::kAssistant) {
      continue;
    }
    if (!conversation.thinking) {
      message.reasoning.reset();
    } else if (!message.reasoning) {
      message.reasoning.emplace();
    }
  }
}

}  // namespace hadal::recipe
