#include "recipe/responses/history.h"

#include <algorithm>
#include <iterator>

#include "recipe/json_text.h"
#include "recipe/responses/apply_patch.h"
#include "recipe/responses/documents.h"

namespace hadal::recipe::responses {
namespace {

template <class... Args>
tl::unexpected<Error> refuse(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kInvalidArgument, format, std::forward<Args>(args)...);
}

void append_nullable(std::string& out, std::string_view key, const std::optional<std::string_view>& text) {
  out += fmt::format(R"(,"{}":)", key);
  if (text) {
    append_json_string(out, *text);
  } else {
    out += "null";
  }
}

void append_found_function(std::string& out, const FunctionField& function, const ToolField* name_space) {
  out += R"({"type":"function","name":)";
  append_json_string(out, function.name);
  append_nullable(out, "description", function.description);
  out += R"(,"parameters":)";
  append_json(out, function.parameters != nullptr ? *function.parameters : JsonValue(), JsonStyle::kCompact);
  out += R"(,"strict":)";
  out += !function.strict ? "null" : *function.strict ? "true" : "false";
  if (name_space != nullptr) {
    out += R"(,"namespace":{"name":)";
    append_json_string(out, name_space->function.name);
    append_nullable(out, "description", name_space->function.description.value_or(""));
    out += '}';
  }
  out += "},";
}

/// The description of apply_patch is fixed; the definition that follows the results carries it.
void append_found_custom_tool(std::string& out, const FunctionField& tool) {
  out += R"({"type":"custom","name":)";
  append_json_string(out, tool.name);
  if (tool.name != kApplyPatchName) {
    append_nullable(out, "description", tool.description);
  }
  out += "},";
}

void append_found_search(std::string& out, const ToolField& tool) {
  out += R"({"type":"tool_search")";
  append_nullable(out, "execution", tool.execution);
  append_nullable(out, "description", tool.function.description);
  out += R"(,"parameters":)";
  append_json(out, tool.function.parameters != nullptr ? *tool.function.parameters : JsonValue(),
              JsonStyle::kCompact);
  out += "},";
}

/// What a tool search found, as the model reads it.
std::string found_tools_text(std::span<const ToolField> tools) {
  std::string out = "[";
  for (const ToolField& tool : tools) {
    switch (tool.kind) {
      case ToolField::Kind::kFunction:
        append_found_function(out, tool.function, nullptr);
        break;
      case ToolField::Kind::kNamespace:
        for (const ToolField& inner : tool.tools) {
          append_found_function(out, inner.function, &tool);
        }
        break;
      case ToolField::Kind::kCustom:
        append_found_custom_tool(out, tool.function);
        break;
      case ToolField::Kind::kToolSearch:
        append_found_search(out, tool);
        break;
      case ToolField::Kind::kWebSearch:
      case ToolField::Kind::kUnsupported:
        break;
    }
  }
  if (out.back() == ',') {
    out.pop_back();
  }
  out += ']';
  return out;
}

}  // namespace

HistoryConverter::HistoryConverter(std::span<Item> items, size_t num_previous, ToolTable& tools,
                                   Conversation& conversation, ModelVersion version,
                                   const ConversionOptions& options)
    : items_(items),
      num_previous_(num_previous),
      tools_(tools),
      conversation_(conversation),
      content_(version, options.special_tokens, tools.notices),
      is_v4_(version == ModelVersion::kV4),
      uses_summaries_(options.reasoning_content_behavior != ConversionOptions::ReasoningContent::kReject) {}

std::string HistoryConverter::place_of(size_t index) const {
  return index < num_previous_ ? fmt::format("previous_response_id[{}]", index)
                               : fmt::format("input[{}]", index - num_previous_);
}

Result<void> HistoryConverter::convert() {
  for (size_t index = 0; index < items_.size(); ++index) {
    if (items_[index].kind == Item::Kind::kSearchOutput && !is_v4_) {
      HADAL_CHECK(tools_.check_all(items_[index].tools, fmt::format("{}.tools", place_of(index))));
    }
  }
  for (size_t index = 0; index < items_.size(); ++index) {
    HADAL_CHECK(convert_item(index));
  }
  return finish_turn();
}

Result<void> HistoryConverter::convert_item(size_t index) {
  Item& item = items_[index];
  switch (item.kind) {
    case Item::Kind::kLeftOut:
      tools_.notices.add(
          fmt::format("{}: items of type `{}` are not supported; left out", place_of(index), item.type));
      return {};
    case Item::Kind::kSearchCall:
    case Item::Kind::kSearchOutput:
      if (is_v4_) {
        return {};
      }
      return item.kind == Item::Kind::kSearchCall ? convert_call(index) : convert_output(index);
    case Item::Kind::kCall:
      return convert_call(index);
    case Item::Kind::kOutput:
      return convert_output(index);
    case Item::Kind::kMessage:
      return convert_message(index);
    case Item::Kind::kReasoning:
      return convert_reasoning(item);
  }
  return {};
}

Result<void> HistoryConverter::convert_reasoning(const Item& item) {
  std::string text = fmt::format(
      "{}", fmt::join(item.reasoning.empty() && uses_summaries_ ? item.summary : item.reasoning, "\n"));
  if (text.empty()) {
    return unanswered_.empty() ? Result<void>() : finish_turn();
  }
  if (!turn_is_open_ || !conversation_.messages.back().content.empty() ||
      conversation_.messages.back().tool_calls) {
    HADAL_CHECK(finish_turn());
  }
  Message& turn = open_turn();
  if (turn.reasoning) {
    *turn.reasoning += '\n';
    *turn.reasoning += text;
  } else {
    turn.reasoning = std::move(text);
  }
  return {};
}

Message& HistoryConverter::open_turn() {
  if (!turn_is_open_) {
    Message turn;
    turn.role = Role::kAssistant;
    conversation_.messages.push_back(std::move(turn));
    turn_is_open_ = true;
  }
  return conversation_.messages.back();
}

std::string_view HistoryConverter::first_unanswered() const {
  const auto before = [](const auto& one, const auto& other) { return one.second < other.second; };
  return std::min_element(unanswered_.begin(), unanswered_.end(), before)->first;
}

Result<void> HistoryConverter::finish_turn() {
  turn_is_open_ = false;
  if (!unanswered_.empty()) {
    return refuse("No tool output found for tool call {}.", first_unanswered());
  }
  append_answers();
  for (std::vector<std::string>& names : found_) {
    Message system;
    system.role = Role::kSystem;
    known_from_.push_back({conversation_.messages.size(), std::move(names)});
    conversation_.messages.push_back(std::move(system));
  }
  found_.clear();
  return {};
}

/// The model of V4.1 reads the calls of a turn, and what answers them, in the order of their ids.
void HistoryConverter::append_answers() {
  if (answers_.empty()) {
    return;
  }
  std::vector<ToolCall>& calls = *conversation_.messages.back().tool_calls;
  std::vector<Message> answers;
  answers.reserve(answers_.size());
  for (auto& [place, answer] : answers_) {
    answers.push_back(std::move(answer));
  }
  answers_.clear();
  if (!is_v4_) {
    std::sort(calls.begin(), calls.end(),
              [](const ToolCall& one, const ToolCall& other) { return one.id < other.id; });
    std::sort(answers.begin(), answers.end(), [](const Message& one, const Message& other) {
      return *one.tool_call_id < *other.tool_call_id;
    });
  }
  std::move(answers.begin(), answers.end(), std::back_inserter(conversation_.messages));
}

Result<void> HistoryConverter::convert_message(size_t index) {
  const Item& item = items_[index];
  const bool is_assistant = item.role == Item::Role::kAssistant;
  if (!is_assistant || !turn_is_open_ || conversation_.messages.back().tool_calls) {
    HADAL_CHECK(finish_turn());
  }
  HADAL_CHECK(check_images(index));
  convert_content(item, index);
  Message message;
  content_.finish(message);
  if (is_assistant) {
    Message& turn = open_turn();
    turn.content += turn.content.empty() || message.content.empty() ? "" : "\n\n";
    turn.content += message.content;
    return {};
  }
  switch (item.role) {
    case Item::Role::kSystem:
      message.role = Role::kSystem;
      break;
    case Item::Role::kDeveloper:
      message.role = is_v4_ ? Role::kUser : Role::kSystem;
      break;
    default:
      message.role = Role::kUser;
  }
  conversation_.messages.push_back(std::move(message));
  return {};
}

Result<void> HistoryConverter::convert_call(size_t index) {
  Item& item = items_[index];
  if (!turn_is_open_ && unanswered_.empty()) {
    HADAL_CHECK(finish_turn());
  }
  if (item.call_id.empty()) {
    return refuse(
        "Invalid '{}.call_id': empty string. Expected a string with minimum length 1, but got an empty "
        "string "
        "instead.",
        place_of(index));
  }
  if (!all_calls_.emplace(item.call_id, false).second) {
    return refuse("Duplicate 'call_id': {}.", item.call_id);
  }
  // Some clients give calls of one turn among its answers.
  Message& turn = unanswered_.empty() ? open_turn() : conversation_.messages.back();
  if (!turn.tool_calls) {
    turn.tool_calls.emplace();
  }
  unanswered_.emplace(item.call_id, turn.tool_calls->size());
  turn.tool_calls->push_back(
      {std::string(item.call_id), tools_.shown_name(item.name, item.name_space), std::move(item.arguments)});
  return {};
}

Result<void> HistoryConverter::convert_output(size_t index) {
  const Item& item = items_[index];
  HADAL_CHECK(check_images(index));
  const auto call = all_calls_.find(item.call_id);
  if (call == all_calls_.end()) {
    return refuse("No tool call found for tool output with call_id {}.", item.call_id);
  }
  if (call->second) {
    return refuse("Duplicate tool output for call_id: {}.", item.call_id);
  }
  call->second = true;
  turn_is_open_ = false;
  const auto place = unanswered_.find(item.call_id);
  Message answer;
  answer.role = Role::kTool;
  answer.tool_call_id.emplace(item.call_id);
  if (item.kind == Item::Kind::kSearchOutput) {
    answer.content = found_tools_text(item.tools);
    std::vector<std::string> names = tools_.add_found(item.tools, fmt::format("{}.tools", place_of(index)));
    if (!names.empty()) {
      found_.push_back(std::move(names));
    }
  } else {
    convert_content(item, index);
    content_.finish(answer);
  }
  answers_.emplace(place->second, std::move(answer));
  unanswered_.erase(place);
  return {};
}

void HistoryConverter::convert_content(const Item& item, size_t index) {
  if (item.content.text) {
    content_.text(*item.content.text);
  }
  for (const ContentPart& part : item.content.parts) {
    switch (part.kind) {
      case ContentPart::Kind::kText:
        content_.text(part.text);
        break;
      case ContentPart::Kind::kImage:
        if (content_.supports_images()) {
          content_.image({part.image_kind, part.detail, place_of(index), std::string(part.image_url)});
        } else {
          content_.image_notice();
        }
        break;
      case ContentPart::Kind::kFile:
        add_file(part, item.kind == Item::Kind::kMessage && item.role == Item::Role::kUser);
        break;
    }
  }
}

/// Text files of the user are shown; other files have a notice in their place.
void HistoryConverter::add_file(const ContentPart& part, bool is_user) {
  const std::optional<std::string> text = is_user ? text_of_data_url(part.file_data) : std::nullopt;
  if (!text) {
    content_.document_notice("[Unsupported Document]");
    return;
  }
  std::string shown = "<document>\n";
  if (!part.filename.empty()) {
    shown += fmt::format("<title>{}</title>\n", part.filename);
  }
  content_.text(shown + *text + "\n</document>");
}

Result<void> HistoryConverter::check_images(size_t index) {
  const size_t count = content_.supports_images() ? items_[index].content.parts.size() : 0;
  for (size_t number = 0; number < count; ++number) {
    if (items_[index].content.parts[number].kind == ContentPart::Kind::kImage) {
      HADAL_CHECK(check_image(items_[index], index, number));
    }
  }
  return {};
}

Result<void> HistoryConverter::check_image(Item& item, size_t index, size_t number) {
  ContentPart& part = item.content.parts[number];
  const bool is_message = item.kind == Item::Kind::kMessage;
  const std::string place =
      fmt::format("{}.{}[{}]", place_of(index), is_message ? "content" : "output", number);
  if (part.has_file_id && !part.image_url.empty()) {
    return refuse("{}: input_image cannot have both image_url and file_id", place);
  }
  if (part.has_file_id) {
    return refuse("{}: file_id is not supported. Pass the image as a base64 data url instead.", place);
  }
  if (part.image_url.empty()) {
    return refuse("{}: input_image must have image_url or file_id", place);
  }
  if (is_message && item.role == Item::Role::kAssistant) {
    return refuse("{}: Image in assistant message is unsupported", place_of(index));
  }
  switch (classify_image_url(part.image_url)) {
    case ImageUrlKind::kHttp:
      if (part.image_url.size() > kLongestUrl) {
        return refuse(
            "{}: image_url external link length {} too long, max link length {}. Consider passing file data "
            "directly with "
            "base64 data url instead.",
            place, part.image_url.size(), kLongestUrl);
      }
      part.image_kind = ImageSource::Kind::kUrl;
      return {};
    case ImageUrlKind::kImageData:
      part.image_kind = ImageSource::Kind::kDataUrl;
      return {};
    case ImageUrlKind::kUnsupportedData:
      return refuse("{}: {}", place_of(index), kUnsupportedImageText);
    case ImageUrlKind::kInvalidBase64:
      return refuse("{}: Invalid base64 data", place_of(index));
    case ImageUrlKind::kOther:
      break;
  }
  return refuse("{}: Unsupported image_url format", place_of(index));
}

}  // namespace hadal::recipe::responses
