#include "recipe/messages/blocks.h"

#include <algorithm>

namespace hadal::recipe::messages {
namespace {

using Kind = Block::Kind;

struct BlockType {
  std::string_view name;
  Kind kind;
};

// The last is the assistant's alone.
constexpr BlockType kMessageTypes[] = {
    {"text", Kind::kText},
    {"image", Kind::kImage},
    {"document", Kind::kDocument},
    {"thinking", Kind::kThinking},
    {"server_tool_use", Kind::kServerToolUse},
    {"tool_use", Kind::kToolUse},
    {"tool_result", Kind::kToolResult},
    {"web_search_tool_result", Kind::kWebSearchResult},
    {"tool_addition", Kind::kToolAddition},
    {"search_result", Kind::kSearchResult},
    {"redacted_thinking", Kind::kRedactedThinking},
};
constexpr BlockType kSystemTypes[] = {{"text", Kind::kText}};
constexpr BlockType kToolResultTypes[] = {
    {"text", Kind::kText},
    {"image", Kind::kImage},
    {"document", Kind::kDocument},
    {"tool_reference", Kind::kToolReference},
    {"search_result", Kind::kSearchResult},
};
constexpr BlockType kDocumentTypes[] = {{"text", Kind::kText}, {"image", Kind::kImage}};

std::span<const BlockType> types_of(BlockContext context) {
  switch (context) {
    case BlockContext::kMessage:
      return std::span(kMessageTypes).first(std::size(kMessageTypes) - 1);
    case BlockContext::kAssistant:
      return kMessageTypes;
    case BlockContext::kSystem:
      return kSystemTypes;
    case BlockContext::kToolResult:
      return kToolResultTypes;
    case BlockContext::kDocument:
      return kDocumentTypes;
  }
  return {};
}

Result<ImageField> read_image(const Fields& block) {
  constexpr std::string_view kKinds[] = {"base64", "url", "file"};
  constexpr std::string_view kMediaTypes[] = {"image/jpeg", "image/jpg", "image/png", "image/gif",
                                              "image/webp"};
  HADAL_TRY(const JsonValue* source, block.required("source"));
  const Place place(block.place(), "source");
  HADAL_TRY(const Fields fields, Fields::of(*source, place));
  HADAL_TRY(const size_t kind, fields.choice("type", kKinds));
  ImageField image;
  image.kind = static_cast<ImageField::Kind>(kind);
  switch (image.kind) {
    case ImageField::Kind::kBase64: {
      HADAL_TRY(const size_t type, fields.choice("media_type", kMediaTypes));
      image.media_type = kMediaTypes[type];
      HADAL_TRY(image.data, fields.string("data"));
      break;
    }
    case ImageField::Kind::kUrl: {
      HADAL_TRY(image.data, fields.string("url"));
      break;
    }
    case ImageField::Kind::kFile: {
      HADAL_TRY(image.data, fields.string("file_id"));
      break;
    }
  }
  return image;
}

Result<void> read_document(const Fields& fields, Block& block) {
  HADAL_TRY(const auto title, fields.optional_string("title"));
  block.title = title.value_or("");
  HADAL_TRY(const auto context, fields.optional_string("context"));
  block.context = context.value_or("");
  HADAL_TRY(const JsonValue* source, fields.required("source"));
  const Place place(fields.place(), "source");
  HADAL_TRY(const Fields source_fields, Fields::of(*source, place));
  HADAL_TRY(const auto type, source_fields.optional_string("type"));
  HADAL_TRY(const auto media_type, source_fields.optional_string("media_type"));
  block.media_type = media_type.value_or("");
  if (type == "text") {
    HADAL_TRY(block.plain, source_fields.optional_string("data"));
  } else if (type == "content") {
    if (const JsonValue* content = source_fields.value("content")) {
      if (content->is_string()) {
        block.plain = content->as_string();
      } else {
        HADAL_TRY(block.parts, read_blocks(*content, Place(place, "content"), BlockContext::kDocument));
      }
    }
  }
  return {};
}

Result<void> read_tool_result(const Fields& fields, Block& block) {
  HADAL_TRY(block.id, fields.string("tool_use_id"));
  HADAL_TRY(const auto is_error, fields.optional_bool("is_error"));
  block.is_error = is_error.value_or(false);
  const JsonValue* content = fields.value("content");
  if (content == nullptr) {
    block.plain = "";
  } else if (content->is_string()) {
    block.plain = content->as_string();
  } else {
    HADAL_TRY(block.parts,
              read_blocks(*content, Place(fields.place(), "content"), BlockContext::kToolResult));
  }
  return {};
}

Result<void> read_search_result(const Fields& fields, Block& block) {
  HADAL_TRY(block.text, fields.string("source"));
  HADAL_TRY(block.title, fields.string("title"));
  HADAL_TRY(const JsonValue* content, fields.required("content"));
  HADAL_TRY(block.parts, read_blocks(*content, Place(fields.place(), "content"), BlockContext::kSystem));
  return {};
}

Result<void> read_tool_addition(const Fields& fields, Block& block) {
  constexpr std::string_view kTypes[] = {"tool_reference"};
  HADAL_TRY(const JsonValue* tool, fields.required("tool"));
  const Place place(fields.place(), "tool");
  HADAL_TRY(const Fields tool_fields, Fields::of(*tool, place));
  HADAL_CHECK(tool_fields.choice("type", kTypes));
  HADAL_TRY(block.name, tool_fields.string("name"));
  return {};
}

Result<void> read_fields(const Fields& fields, Block& block) {
  switch (block.kind) {
    case Kind::kText: {
      HADAL_TRY(block.text, fields.string("text"));
      return {};
    }
    case Kind::kImage: {
      HADAL_TRY(block.image, read_image(fields));
      return {};
    }
    case Kind::kDocument:
      return read_document(fields, block);
    case Kind::kThinking: {
      HADAL_TRY(block.text, fields.string("thinking"));
      return {};
    }
    case Kind::kToolUse: {
      HADAL_TRY(block.id, fields.string("id"));
      HADAL_TRY(block.name, fields.string("name"));
      HADAL_TRY(block.input, fields.required("input"));
      return {};
    }
    case Kind::kToolResult:
      return read_tool_result(fields, block);
    case Kind::kToolAddition:
      return read_tool_addition(fields, block);
    case Kind::kSearchResult:
      return read_search_result(fields, block);
    case Kind::kToolReference: {
      HADAL_TRY(block.name, fields.string("tool_name"));
      return {};
    }
    case Kind::kRedactedThinking:
    case Kind::kServerToolUse:
    case Kind::kWebSearchResult:
      return {};
  }
  return {};
}

Result<Block> read_block(const JsonValue& value, const Place& place, BlockContext context) {
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  const std::span<const BlockType> types = types_of(context);
  HADAL_TRY(const std::string_view name, fields.string("type"));
  const auto type =
      std::find_if(types.begin(), types.end(), [&](const BlockType& known) { return known.name == name; });
  if (type == types.end()) {
    std::string expected;
    for (const BlockType& known : types) {
      expected += fmt::format("{}`{}`", expected.empty() ? "" : ", ", known.name);
    }
    return wrong_value(Place(place, "type"), expected, name);
  }
  Block block;
  block.kind = type->kind;
  HADAL_CHECK(read_fields(fields, block));
  return block;
}

}  // namespace

Result<std::vector<Block>> read_blocks(const JsonValue& value, const Place& place, BlockContext context) {
  if (!value.is_array()) {
    return wrong_kind(place, "a string or a list of blocks", value);
  }
  std::vector<Block> blocks;
  blocks.reserve(value.items().size());
  for (size_t index = 0; index < value.items().size(); ++index) {
    HADAL_TRY(Block block, read_block(value.items()[index], Place(place, index), context));
    blocks.push_back(std::move(block));
  }
  return blocks;
}

}  // namespace hadal::recipe::messages
