#include "recipe/messages/history.h"

#include <algorithm>

#include "recipe/json_text.h"

namespace hadal::recipe::messages {
namespace {

using Kind = Block::Kind;

template <class... Args>
tl::unexpected<Error> refuse(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kInvalidArgument, format, std::forward<Args>(args)...);
}

void join(std::string& text, std::string_view more) {
  text += text.empty() ? "" : "\n\n";
  text += more;
}

std::string document_text(const Block& block) {
  return fmt::format("[Unsupported document type: {}]",
                     block.media_type.empty() ? "unknown" : block.media_type);
}

/// Says "error" where the text does not say so itself.
std::string_view error_mark(std::string_view text) {
  constexpr std::string_view kError = "error";
  const bool says_so =
      text.size() >= kError.size() &&
      std::equal(kError.begin(), kError.end(), text.begin(), [](char a, char b) { return a == (b | 0x20); });
  return says_so ? "" : "Error: ";
}

}  // namespace

HistoryConverter::HistoryConverter(std::span<const RequestMessage> messages,
                                   std::span<const std::string_view> tool_names, Conversation& conversation,
                                   ModelVersion version, const ConversionOptions& options, Notices& notices)
    : messages_(messages),
      tool_names_(tool_names.begin(), tool_names.end()),
      conversation_(conversation),
      content_(version, options.special_tokens, notices),
      notices_(notices),
      is_v4_(version == ModelVersion::kV4),
      drops_server_blocks_(options.messages_web_search == ConversionOptions::WebSearch::kDrop) {
  std::sort(tool_names_.begin(), tool_names_.end());
}

Result<void> HistoryConverter::convert() {
  if (messages_.empty()) {
    return refuse("messages: at least one message is required");
  }
  conversation_.messages.reserve(messages_.size() + 1);
  for (size_t index = 0; index < messages_.size(); ++index) {
    const RequestMessage& message = messages_[index];
    if (num_unanswered_ != 0 && message.role != RequestMessage::Role::kUser) {
      return refuse_unanswered(index, " ");
    }
    if (!message.text && message.blocks.empty() && message.role != RequestMessage::Role::kSystem) {
      return refuse("messages.{}: all messages must have non-empty content", index);
    }
    switch (message.role) {
      case RequestMessage::Role::kUser:
        HADAL_CHECK(convert_user(index));
        break;
      case RequestMessage::Role::kAssistant:
        HADAL_CHECK(convert_assistant(index));
        break;
      case RequestMessage::Role::kSystem:
        HADAL_CHECK(convert_system(index));
        break;
    }
  }
  if (num_unanswered_ != 0) {
    return refuse_unanswered(calls_turn_, "");
  }
  return {};
}

std::string HistoryConverter::unanswered() const {
  std::vector<std::string_view> ids;
  for (const auto& [id, answered] : calls_) {
    if (!answered) {
      ids.push_back(id);
    }
  }
  return fmt::format("{}", fmt::join(ids, ", "));
}

Result<void> HistoryConverter::refuse_unanswered(size_t index, std::string_view space) const {
  return refuse(
      "messages.{}:{}`tool_use` ids were found without `tool_result` blocks immediately after: {}. Each "
      "`tool_use` block "
      "must have a corresponding `tool_result` block in the next message.",
      index, space, unanswered());
}

/// What may only be in messages of one role.
Result<void> HistoryConverter::refuse_misplaced(size_t index, const Block& block,
                                                RequestMessage::Role role) const {
  using enum RequestMessage::Role;
  const auto only_in = [&](std::string_view kind, std::string_view where) {
    return refuse("messages.{}: `{}` blocks can only be in `{}` messages", index, kind, where);
  };
  switch (block.kind) {
    case Kind::kThinking:
      if (role != kAssistant) {
        return refuse("messages.{}.content: thinking blocks may only be in `assistant` messages", index);
      }
      break;
    case Kind::kToolUse:
    case Kind::kServerToolUse:
      if (role != kAssistant) {
        return only_in("tool_use", "assistant");
      }
      break;
    case Kind::kWebSearchResult:
      if (role != kAssistant) {
        return only_in("web_search_tool_result", "assistant");
      }
      break;
    case Kind::kToolResult:
      if (role != kUser) {
        return only_in("tool_result", "user");
      }
      break;
    case Kind::kToolAddition:
      if (role != kSystem) {
        return only_in("tool_addition", "system");
      }
      break;
    default:
      break;
  }
  return {};
}

void HistoryConverter::push_content(Role role) {
  Message message;
  message.role = role;
  content_.finish(message);
  push(std::move(message));
}

/// Results of one turn may be spread over several user messages, each of which goes on with a result.
bool HistoryConverter::results_go_on(size_t index) const {
  const bool only_results = std::all_of(messages_[index].blocks.begin(), messages_[index].blocks.end(),
                                        [](const Block& block) { return block.kind == Kind::kToolResult; });
  return only_results && index + 1 < messages_.size() &&
         messages_[index + 1].role == RequestMessage::Role::kUser && !messages_[index + 1].blocks.empty() &&
         messages_[index + 1].blocks[0].kind == Kind::kToolResult;
}

Result<void> HistoryConverter::convert_user(size_t index) {
  const RequestMessage& message = messages_[index];
  if (message.text) {
    if (num_unanswered_ != 0) {
      return refuse_unanswered(index, " ");
    }
    content_.text(*message.text);
    push_content(Role::kUser);
  }
  for (size_t number = 0; number < message.blocks.size(); ++number) {
    HADAL_CHECK(convert_user_block(index, number, message.blocks[number]));
  }
  if (num_unanswered_ != 0) {
    return results_go_on(index) ? Result<void>() : refuse_unanswered(calls_turn_, "");
  }
  calls_.clear();
  if (!found_tools_.empty() && !is_v4_) {
    known_from_.push_back({conversation_.messages.size(), std::move(found_tools_)});
    push_content(Role::kSystem);
  }
  found_tools_.clear();
  return {};
}

Result<void> HistoryConverter::convert_user_block(size_t index, size_t number, const Block& block) {
  HADAL_CHECK(refuse_misplaced(index, block, RequestMessage::Role::kUser));
  if (block.kind == Kind::kToolResult) {
    return convert_result(index, number, block);
  }
  if (num_unanswered_ != 0) {
    return refuse_unanswered(index, " ");
  }
  switch (block.kind) {
    case Kind::kImage: {
      const std::string path = fmt::format("messages.{}.content[{}]", index, number);
      HADAL_CHECK(add_image(block.image, path, path));
      break;
    }
    case Kind::kDocument:
      add_document(block);
      break;
    case Kind::kSearchResult:
      add_document(block);
      break;
    default:
      content_.text(block.text);
  }
  push_content(Role::kUser);
  return {};
}

Result<void> HistoryConverter::convert_result(size_t index, size_t number, const Block& block) {
  const auto call = calls_.find(block.id);
  if (call == calls_.end()) {
    return refuse(
        "unexpected `messages.{}.content.{}: tool_use_id` found in `tool_result` blocks: {}. Each "
        "`tool_result` block "
        "must have a corresponding `tool_use` block in the previous message.",
        index, number, block.id);
  }
  if (call->second) {
    return refuse(
        "messages.{}.content.{}: each tool_use must have a single result. Found multiple `tool_result` "
        "blocks with id: "
        "{}",
        index, number, block.id);
  }
  call->second = true;
  --num_unanswered_;

  Message message;
  message.role = Role::kTool;
  message.tool_call_id.emplace(block.id);
  const std::string path = fmt::format("messages.{}.content.{}.tool_result", index, number);
  if (block.plain) {
    content_.text(*block.plain);
  }
  for (size_t part = 0; part < block.parts.size(); ++part) {
    const Block& inner = block.parts[part];
    switch (inner.kind) {
      case Kind::kImage:
        HADAL_CHECK(add_image(inner.image, path, fmt::format("{}.content[{}]", path, part)));
        break;
      case Kind::kDocument:
        content_.document_notice(document_text(inner));
        break;
      case Kind::kSearchResult:
        add_document(inner);
        break;
      case Kind::kToolReference:
        HADAL_CHECK(check_tool_reference(index, number, inner.name));
        content_.text(inner.name);
        found_tools_.push_back(inner.name);
        break;
      default:
        content_.text(inner.text);
    }
  }
  content_.finish(message);
  if (block.is_error) {
    const std::string_view mark = error_mark(message.content);
    message.content.insert(0, mark);
    for (PlacedImage& image : message.images) {
      image.offset += mark.size();
    }
  }
  push(std::move(message));
  return {};
}

Result<void> HistoryConverter::check_tool_reference(size_t index, size_t number,
                                                    std::string_view name) const {
  if (!std::binary_search(tool_names_.begin(), tool_names_.end(), name)) {
    return refuse("messages.{}.content.{}: tool reference '{}' not found in available tools", index, number,
                  name);
  }
  return {};
}

Result<void> HistoryConverter::add_image(const ImageField& image, const std::string& path,
                                         const std::string& error_path) {
  if (!content_.supports_images()) {
    content_.image_notice();
    return {};
  }
  ImageSource source;
  source.path = path;
  switch (image.kind) {
    case ImageField::Kind::kFile:
      return refuse("{}: file_id is not supported. Pass the image as a base64 data url instead.", error_path);
    case ImageField::Kind::kUrl:
      if (classify_image_url(image.data) != ImageUrlKind::kHttp) {
        return refuse("{}: invalid url: {}", error_path, json_text(JsonValue::string(image.data)));
      }
      if (image.data.size() > kLongestUrl) {
        return refuse(
            "{}: external link length {} too long, max link length {}. Consider passing file data directly "
            "with base64 "
            "data url instead.",
            error_path, image.data.size(), kLongestUrl);
      }
      source.kind = ImageSource::Kind::kUrl;
      source.url = image.data;
      break;
    case ImageField::Kind::kBase64:
      if (!is_strict_base64(image.data)) {
        return refuse("{}: base64 decode error", error_path);
      }
      source.kind = ImageSource::Kind::kDataUrl;
      source.url.reserve(image.data.size() + 32);
      source.url = "data:";
      source.url += image.media_type == "image/jpg" ? "image/jpeg" : image.media_type;
      source.url += ";base64,";
      source.url += image.data;
      break;
  }
  content_.image(std::move(source));
  return {};
}

/// A document or search result of the user as text; what is not text has a notice in its place.
void HistoryConverter::add_document(const Block& block) {
  const bool is_search = block.kind == Kind::kSearchResult;
  const bool has_text = std::any_of(block.parts.begin(), block.parts.end(),
                                    [](const Block& part) { return part.kind == Kind::kText; });
  if (!is_search && !block.plain && !has_text) {
    content_.document_notice(document_text(block));
    return;
  }
  const std::string_view tag = is_search ? "search_result" : "document";
  std::string text = fmt::format("<{}>\n", tag);
  if (is_search) {
    text += fmt::format("<source>{}</source>\n", block.text);
  }
  if (!block.title.empty()) {
    text += fmt::format("<title>{}</title>\n", block.title);
  }
  if (!block.context.empty()) {
    text += fmt::format("<context>{}</context>\n", block.context);
  }
  text += block.plain.value_or("");
  for (size_t index = 0; index < block.parts.size(); ++index) {
    text += index == 0 ? "" : "\n\n";
    text += block.parts[index].kind == Kind::kText ? block.parts[index].text : kUnsupportedImage;
  }
  text += fmt::format("\n</{}>", tag);
  content_.text(text);
}

Result<void> HistoryConverter::convert_assistant(size_t index) {
  const RequestMessage& message = messages_[index];
  Message turn;
  turn.role = Role::kAssistant;
  if (message.text) {
    turn.content = *message.text;
  }
  calls_.clear();
  calls_turn_ = index;
  for (size_t number = 0; number < message.blocks.size(); ++number) {
    HADAL_CHECK(convert_assistant_block(index, number, message.blocks[number], turn));
  }
  num_unanswered_ = calls_.size();
  // A final turn without calls is what the answer goes on from.
  turn.prefix = index + 1 == messages_.size() && calls_.empty();
  push(std::move(turn));
  return {};
}

Result<void> HistoryConverter::convert_assistant_block(size_t index, size_t number, const Block& block,
                                                       Message& turn) {
  HADAL_CHECK(refuse_misplaced(index, block, RequestMessage::Role::kAssistant));
  const bool is_content = block.kind == Kind::kText || block.kind == Kind::kImage ||
                          block.kind == Kind::kDocument || block.kind == Kind::kSearchResult;
  if (is_content && !calls_.empty()) {
    return refuse(
        "messages.{}.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each "
        "`tool_use` "
        "block must have a corresponding `tool_result` block in the next message.",
        index, number, unanswered());
  }
  switch (block.kind) {
    case Kind::kText:
      join(turn.content, block.text);
      break;
    case Kind::kImage:
      if (content_.supports_images()) {
        const std::string path = fmt::format("messages.{}.content[{}]", index, number);
        HADAL_CHECK(add_image(block.image, path, path));
        return refuse("Image in assistant message is unsupported");
      }
      join(turn.content, kUnsupportedImage);
      notices_.image_replaced();
      break;
    case Kind::kDocument:
      join(turn.content, document_text(block));
      notices_.document_replaced();
      break;
    case Kind::kSearchResult: {
      add_document(block);
      Message text;
      content_.finish(text);
      join(turn.content, text.content);
      break;
    }
    case Kind::kThinking:
      if (turn.reasoning) {
        *turn.reasoning += "\n\n";
        *turn.reasoning += block.text;
      } else {
        turn.reasoning.emplace(block.text);
      }
      break;
    case Kind::kServerToolUse:
    case Kind::kWebSearchResult:
      if (!drops_server_blocks_) {
        return refuse("Unsupported content block: server tools are not supported");
      }
      notices_.add(
          fmt::format("messages.{}.content.{}: server tools are not supported; left out", index, number));
      break;
    case Kind::kToolUse:
      if (!calls_.emplace(block.id, false).second) {
        return refuse("messages.{}.content.{}: `tool_use` ids must be unique", index, number);
      }
      if (!turn.tool_calls) {
        turn.tool_calls.emplace();
      }
      turn.tool_calls->push_back(
          {std::string(block.id), std::string(block.name),
           json_text(*block.input, is_v4_ ? JsonStyle::kPromptV4 : JsonStyle::kPromptV41)});
      break;
    default:
      break;
  }
  return {};
}

Result<void> HistoryConverter::convert_system(size_t index) {
  const RequestMessage& message = messages_[index];
  std::vector<std::string_view> added;
  if (message.text) {
    content_.text(*message.text);
  }
  for (size_t number = 0; number < message.blocks.size(); ++number) {
    const Block& block = message.blocks[number];
    HADAL_CHECK(refuse_misplaced(index, block, RequestMessage::Role::kSystem));
    switch (block.kind) {
      case Kind::kImage:
        HADAL_CHECK(add_image(block.image, fmt::format("messages.{}", index),
                              fmt::format("messages.{}.content[{}]", index, number)));
        break;
      case Kind::kDocument:
        content_.document_notice(document_text(block));
        break;
      case Kind::kSearchResult:
        add_document(block);
        break;
      case Kind::kToolAddition:
        if (!std::binary_search(tool_names_.begin(), tool_names_.end(), block.name)) {
          return refuse("messages.{}.content.{}: `tool_addition` references unknown tool '{}'", index, number,
                        block.name);
        }
        added.push_back(block.name);
        break;
      default:
        content_.text(block.text);
    }
  }
  Message system;
  system.role = Role::kSystem;
  content_.finish(system);
  if (is_v4_) {
    if (!system.content.empty()) {
      system.role = Role::kUser;
      system.content = fmt::format("<system-reminder>\n{}\n</system-reminder>", system.content);
      push(std::move(system));
    }
    return {};
  }
  if (!added.empty()) {
    known_from_.push_back({conversation_.messages.size(), std::move(added)});
  }
  push(std::move(system));
  return {};
}

}  // namespace hadal::recipe::messages
