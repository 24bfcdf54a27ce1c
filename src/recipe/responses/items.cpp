// Reading the input items of Responses requests.

#include "recipe/json_text.h"
#include "recipe/responses/request.h"

namespace hadal::recipe::responses {
namespace {

constexpr std::string_view kDetails[] = {"low", "high", "original", "auto"};

/// Where content stands decides which parts there may be.
enum class ContentContext { kMessage, kAssistant, kOutput };

Result<ContentPart> read_part(const JsonValue& value, const Place& place, ContentContext context) {
  constexpr std::string_view kOutputTypes[] = {"input_text", "input_image", "input_file"};
  constexpr std::string_view kMessageTypes[] = {"input_text", "input_image", "input_file", "output_text",
                                                "refusal"};
  const std::span<const std::string_view> types = context == ContentContext::kOutput ? std::span(kOutputTypes)
                                                  : context == ContentContext::kMessage
                                                      ? std::span(kMessageTypes).first(4)
                                                      : std::span<const std::string_view>(kMessageTypes);
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  HADAL_TRY(const size_t type, fields.choice("type", types));
  ContentPart part;
  switch (type) {
    case 1: {
      part.kind = ContentPart::Kind::kImage;
      HADAL_TRY(const auto url, fields.optional_string("image_url"));
      part.image_url = url.value_or("");
      HADAL_TRY(const auto file_id, fields.optional_string("file_id"));
      part.has_file_id = file_id.has_value();
      HADAL_TRY(const auto detail, fields.optional_choice("detail", kDetails));
      part.detail = static_cast<ImageDetail>(detail.value_or(static_cast<size_t>(ImageDetail::kHigh)));
      break;
    }
    case 2: {
      part.kind = ContentPart::Kind::kFile;
      HADAL_TRY(const auto name, fields.optional_string("filename"));
      part.filename = name.value_or("");
      HADAL_TRY(const auto data, fields.optional_string("file_data"));
      part.file_data = data.value_or("");
      break;
    }
    case 4: {
      HADAL_TRY(part.text, fields.string("refusal"));
      break;
    }
    default: {
      HADAL_TRY(part.text, fields.string("text"));
    }
  }
  return part;
}

Result<Content> read_content(const Fields& item, std::string_view key, ContentContext context) {
  HADAL_TRY(const JsonValue* value, item.required(key));
  const Place place(item.place(), key);
  Content content;
  if (value->is_string()) {
    content.text = value->as_string();
    return content;
  }
  if (!value->is_array()) {
    return wrong_kind(place, "a string or a list of parts", *value);
  }
  content.parts.reserve(value->items().size());
  for (size_t index = 0; index < value->items().size(); ++index) {
    HADAL_TRY(ContentPart part, read_part(value->items()[index], Place(place, index), context));
    content.parts.push_back(part);
  }
  return content;
}

Result<void> read_message(const Fields& fields, Item& item) {
  constexpr std::string_view kRoles[] = {"user", "assistant", "system", "developer"};
  HADAL_TRY(const size_t role, fields.choice("role", kRoles));
  item.role = static_cast<Item::Role>(role);
  const bool is_assistant = item.role == Item::Role::kAssistant;
  HADAL_TRY(item.content, read_content(fields, "content",
                                       is_assistant ? ContentContext::kAssistant : ContentContext::kMessage));
  return {};
}

Result<void> read_reasoning(const Fields& fields, Item& item) {
  item.kind = Item::Kind::kReasoning;
  HADAL_TRY(const auto content, fields.optional_list("content"));
  if (content) {
    const Place place(fields.place(), "content");
    for (size_t index = 0; index < content->size(); ++index) {
      const Place part_place(place, index);
      HADAL_TRY(const Fields part, Fields::of((*content)[index], part_place));
      HADAL_TRY(const std::string_view text, part.string("text"));
      item.reasoning.push_back(text);
    }
  }
  // A summary is all that some clients give back.
  const JsonValue* summary = fields.value("summary");
  if (summary != nullptr) {
    for (const JsonValue& part : summary->items()) {
      const JsonValue* text = part.find("text");
      if (text != nullptr && text->is_string()) {
        item.summary.push_back(text->as_string());
      }
    }
  }
  return {};
}

Result<void> read_call(const Fields& fields, bool custom, Item& item) {
  item.kind = Item::Kind::kCall;
  HADAL_TRY(item.call_id, fields.string("call_id"));
  HADAL_TRY(item.name, fields.string("name"));
  if (custom) {
    HADAL_TRY(const std::string_view input, fields.string("input"));
    item.arguments = R"({"input":)";
    append_json_string(item.arguments, input);
    item.arguments += '}';
    return {};
  }
  HADAL_TRY(item.arguments, fields.string("arguments"));
  HADAL_TRY(item.name_space, fields.optional_string("namespace"));
  return {};
}

Result<void> read_search_call(const Fields& fields, Item& item) {
  item.kind = Item::Kind::kSearchCall;
  HADAL_TRY(item.call_id, fields.string("call_id"));
  HADAL_TRY(const JsonValue* arguments, fields.required("arguments"));
  if (!arguments->is_object()) {
    return wrong_kind(Place(fields.place(), "arguments"), "an object", *arguments);
  }
  item.name = "tool_search";
  item.arguments = json_text(*arguments);
  return {};
}

Result<void> read_search_output(const Fields& fields, Item& item) {
  item.kind = Item::Kind::kSearchOutput;
  HADAL_TRY(item.call_id, fields.string("call_id"));
  HADAL_TRY(const auto tools, fields.list("tools"));
  const Place place(fields.place(), "tools");
  for (size_t index = 0; index < tools.size(); ++index) {
    HADAL_TRY(ToolField tool, read_tool(tools[index], Place(place, index)));
    item.tools.push_back(std::move(tool));
  }
  return {};
}

}  // namespace

Result<Item> read_item(const JsonValue& value, const Place& place) {
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  Item item;
  if (!fields.has("type")) {
    HADAL_CHECK(read_message(fields, item));
    return item;
  }
  HADAL_TRY(item.type, fields.string("type"));
  if (item.type == "message") {
    HADAL_CHECK(read_message(fields, item));
  } else if (item.type == "reasoning") {
    HADAL_CHECK(read_reasoning(fields, item));
  } else if (item.type == "function_call" || item.type == "custom_tool_call") {
    HADAL_CHECK(read_call(fields, item.type == "custom_tool_call", item));
  } else if (item.type == "function_call_output" || item.type == "custom_tool_call_output") {
    item.kind = Item::Kind::kOutput;
    HADAL_TRY(item.call_id, fields.string("call_id"));
    HADAL_TRY(item.content, read_content(fields, "output", ContentContext::kOutput));
  } else if (item.type == "tool_search_call") {
    HADAL_CHECK(read_search_call(fields, item));
  } else if (item.type == "tool_search_output") {
    HADAL_CHECK(read_search_output(fields, item));
  } else {
    item.kind = Item::Kind::kLeftOut;
  }
  return item;
}

}  // namespace hadal::recipe::responses
