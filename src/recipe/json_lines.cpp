#include "recipe/json_lines.h"

#include <algorithm>
#include <array>
#include <optional>

#include "recipe/conversation.h"
#include "recipe/fields.h"
#include "recipe/json_text.h"
#include "recipe/prompt/encode.h"
#include "recipe/prompt/render.h"

namespace hadal::recipe {
namespace {

constexpr std::string_view kProtocols[] = {"chat", "messages", "responses"};
constexpr std::string_view kVersions[] = {"v4", "v41"};

/// Byte offsets of `text` to code points, asked in ascending order.
class CodePoints {
 public:
  explicit CodePoints(std::string_view text) : text_(text) {}
  size_t before(size_t byte) {
    for (; at_ < byte; ++at_) {
      count_ += (static_cast<unsigned char>(text_[at_]) & 0xC0) != 0x80 ? 1 : 0;
    }
    return count_;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
  size_t count_ = 0;
};

Json describe_ranges(const Prompt& prompt) {
  Json ranges = Json::array();
  CodePoints points(prompt.text);
  for (const auto& [begin, end] : prompt.special_ranges) {
    const size_t first = points.before(begin);
    ranges.push_back(Json::array({first, points.before(end)}));
  }
  return ranges;
}

Json describe_image(const ImageSource& image) {
  constexpr std::string_view kDetails[] = {"low", "high", "original", "auto"};
  const bool is_url = image.kind == ImageSource::Kind::kUrl;
  return Json{{"kind", is_url ? "url" : "data_url"},
              {"detail", kDetails[static_cast<size_t>(image.detail)]},
              {"path", image.path},
              {is_url ? "url" : "data_url", image.url}};
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json describe_constraint(const std::optional<OutputConstraint>& constraint) {
  constexpr std::string_view kKinds[] = {"json", "regex", "tool_call", "tool_call_required"};
  if (!constraint) {
    return nullptr;
  }
  return Json{{"kind", kKinds[static_cast<size_t>(constraint->kind)]}, {"schema", constraint->schema}};
}

Json describe_parsing(const ParsingOptions& parsing) {
  Json stage;
  switch (parsing.thinking_initial_stage) {
    case ThinkingStage::kOff:
      break;
    case ThinkingStage::kReasoningStart:
      stage = "reasoning_start";
      break;
    case ThinkingStage::kReasoningContinuation:
      stage = "reasoning_continuation";
      break;
    case ThinkingStage::kContentContinuation:
      stage = "content_continuation";
      break;
  }
  return Json{{"parse_tool_calls", parsing.parse_tool_calls},
              {"starts_in_tool_calls", parsing.starts_in_tool_calls},
              {"parse_json_output", parsing.parse_json_output},
              {"thinking_initial_stage", stage},
              {"stop_sequences", parsing.stop_sequences}};
}

/// The text of a token; where its bytes are no text by themselves, the bytes.
std::string token_text(int32_t id, const tokenizer::Tokenizer& tokenizer) {
  const std::string_view bytes = tokenizer.token_bytes(id);
  std::string text = tokenizer.decode(std::array{id});
  if (text != bytes) {
    text.clear();
    for (const char byte : bytes) {
      text += fmt::format("\\x{:02X}", static_cast<unsigned char>(byte));
    }
  }
  return text;
}

void add_token_details(Json& result, const std::vector<int32_t>& ids, const tokenizer::Tokenizer& tokenizer) {
  Json& texts = result["token_texts"] = Json::array();
  Json& special = result["special_tokens"] = Json::array();
  for (size_t index = 0; index < ids.size(); ++index) {
    texts.push_back(token_text(ids[index], tokenizer));
    if (tokenizer.is_added_token(ids[index])) {
      special.push_back(index);
    }
  }
}

/// Adds the ids of the prompt where there is a tokenizer. An error is reported in their place.
void add_token_ids(Json& result, const Prompt& prompt, const tokenizer::Tokenizer* tokenizer, Detail detail) {
  if (tokenizer == nullptr) {
    return;
  }
  auto ids = encode_prompt(prompt, *tokenizer);
  if (ids) {
    if (detail == Detail::kEverything) {
      add_token_details(result, *ids, *tokenizer);
    }
    result["token_ids"] = std::move(*ids);
  } else {
    result["token_error"] = ids.error().message;
  }
}

}  // namespace

Json describe_request(PreparedRequest& request, const TokenizerSet& tokenizers, Detail detail) {
  // Long prompts leave out what can be read off them anyway.
  constexpr size_t kLongPrompt = 3000;
  Json result = Json::object();
  if (detail == Detail::kRecorded &&
      CodePoints(request.prompt.text).before(request.prompt.text.size()) >= kLongPrompt) {
    request.conversation.erase("messages");
    request.conversation.erase("tools");
  }
  result["prompt"] = request.prompt.text;
  result["special_ranges"] = describe_ranges(request.prompt);
  result["model_version"] = kVersions[static_cast<size_t>(request.model_version)];
  result["stream"] = request.stream;
  const InferenceParams& inference = request.inference;
  result["inference"] = Json{{"max_tokens", or_null(inference.max_tokens)},
                             {"temperature", inference.temperature},
                             {"top_p", inference.top_p},
                             {"logprobs", inference.logprobs},
                             {"top_logprobs", or_null(inference.top_logprobs)},
                             {"seed", or_null(inference.seed)}};
  result["output_constraint"] = describe_constraint(request.constraint);
  result["parsing"] = describe_parsing(request.parsing);
  if (!request.prompt.images.empty()) {
    Json& images = result["image_sources"] = Json::array();
    for (const ImageSource& image : request.prompt.images) {
      images.push_back(describe_image(image));
    }
  }
  result["conversation"] = std::move(request.conversation);
  if (request.protocol == Protocol::kResponses) {
    Json& names = result["namespace_tool_map"] = Json::object();
    for (const auto& [name, place] : request.namespace_tool_map) {
      if (!request.found_tools.contains(name)) {
        names[name] = Json::array({place.first, place.second});
      }
    }
    Json& echo = result["echo"] = Json::object();
    for (const char* key :
         {"instructions", "max_output_tokens", "temperature", "top_p", "top_logprobs", "user"}) {
      echo[key] = request.echo.is_object() ? request.echo.value(key, Json()) : Json();
    }
  }
  if (detail == Detail::kEverything) {
    result["notices"] = request.notices;
    result["ignored_fields"] = request.ignored_fields;
  }
  add_token_ids(result, request.prompt, tokenizers.of(request.model_version), detail);
  return result;
}

Json describe_error(const RequestError& error) {
  if (error.stage_parse) {
    return Json{{"stage", "parse"},
                {"message", error.message},
                {"status_code", error.status_code},
                {"body", error.body}};
  }
  return Json{{"stage", "convert"}, {"status_code", error.status_code}, {"body", error.body}};
}

namespace {

Result<ConversionOptions> read_options(const Fields& line) {
  ConversionOptions options;
  options.describe_conversation = true;
  const JsonValue* value = line.value("options");
  if (value == nullptr) {
    return options;
  }
  const Place place(line.place(), "options");
  HADAL_TRY(const Fields fields, Fields::of(*value, place));
  HADAL_TRY(const auto thinking, fields.optional_bool("default_thinking_mode"));
  options.default_thinking_mode = thinking.value_or(options.default_thinking_mode);
  constexpr std::string_view kReasoning[] = {"FillEmpty", "Reject"};
  constexpr std::string_view kWebSearch[] = {"Drop", "Reject"};
  HADAL_TRY(const auto reasoning, fields.optional_choice("reasoning_content_behavior", kReasoning));
  if (reasoning) {
    options.reasoning_content_behavior = static_cast<ConversionOptions::ReasoningContent>(*reasoning);
  }
  HADAL_TRY(const auto responses, fields.optional_choice("responses_web_search", kWebSearch));
  if (responses) {
    options.responses_web_search = static_cast<ConversionOptions::WebSearch>(*responses);
  }
  HADAL_TRY(const auto messages, fields.optional_choice("messages_web_search", kWebSearch));
  if (messages) {
    options.messages_web_search = static_cast<ConversionOptions::WebSearch>(*messages);
  }
  HADAL_TRY(const auto thinking_bound,
            fields.optional_unsigned("thinking_max_tokens_upper_bound", UINT64_MAX));
  options.thinking_max_tokens_upper_bound = thinking_bound.value_or(options.thinking_max_tokens_upper_bound);
  HADAL_TRY(const auto direct_bound,
            fields.optional_unsigned("non_thinking_max_tokens_upper_bound", UINT64_MAX));
  options.non_thinking_max_tokens_upper_bound =
      direct_bound.value_or(options.non_thinking_max_tokens_upper_bound);
  if (const JsonValue* aliases = fields.value("model_aliases")) {
    const Place aliases_place(place, "model_aliases");
    HADAL_TRY(const Fields names, Fields::of(*aliases, aliases_place));
    for (const JsonMember& alias : aliases->members()) {
      HADAL_TRY(const size_t version, names.choice(alias.key, kVersions));
      options.model_aliases.emplace(alias.key, static_cast<ModelVersion>(version));
    }
  }
  return options;
}

Result<std::string> read_body(const Fields& line) {
  HADAL_TRY(const auto text, line.optional_string("request_text"));
  if (text) {
    return std::string(*text);
  }
  HADAL_TRY(const JsonValue* request, line.required("request"));
  return json_text(*request);
}

Result<void> render_request(const Fields& line, const TokenizerSet& tokenizers, Json& answer) {
  HADAL_TRY(const size_t protocol, line.choice("protocol", kProtocols));
  HADAL_TRY(const ConversionOptions options, read_options(line));
  HADAL_TRY(const std::string body, read_body(line));
  auto prepared = prepare_request(static_cast<Protocol>(protocol), body, options);
  if (!prepared) {
    answer["error"] = describe_error(prepared.error());
    return {};
  }
  HADAL_TRY(const auto prompt_tokens, line.optional_unsigned("prompt_tokens", UINT64_MAX));
  HADAL_TRY(const auto context_limit, line.optional_unsigned("context_limit", UINT64_MAX));
  if (!prompt_tokens || !context_limit) {
    answer["result"] = describe_request(*prepared, tokenizers, Detail::kRecorded);
    return {};
  }
  auto max_tokens = resolve_max_tokens(*prepared, *prompt_tokens, *context_limit);
  if (max_tokens) {
    answer["max_tokens"] = *max_tokens;
  } else {
    answer["error"] = describe_error(max_tokens.error());
  }
  return {};
}

/// One use of a schema in a Chat request: as parameters of a tool `f` or as a reply format.
Json render_schema_use(const JsonValue& schema, bool is_tool, bool strict) {
  std::string body = R"({"model":"DeepSeek-V4.1-Flash","messages":[{"role":"user","content":"Hi"}],)";
  body += is_tool ? R"("tools":[{"type":"function","function":{"name":"f","parameters":)"
                  : R"("response_format":{"type":"json_schema","json_schema":{"name":"f","schema":)";
  append_json(body, schema, JsonStyle::kCompact);
  body += strict ? R"(,"strict":true)" : "";
  body += is_tool ? "}}]}" : "}}}";
  auto prepared = prepare_request(Protocol::kChat, body, {});
  if (!prepared) {
    return Json{{"error", describe_error(prepared.error())}};
  }
  const std::string_view begin = is_tool ? "### Available Tool Schemas\n\n" : "following schema to reply:\n";
  const std::string_view end = is_tool ? "\n\nYou MUST strictly follow" : "<｜User｜>";
  std::string_view text = prepared->prompt.text;
  text.remove_prefix(std::min(text.find(begin) + begin.size(), text.size()));
  return Json{{"rendered", text.substr(0, text.find(end))}, {"constraint", prepared->constraint->schema}};
}

void render_schema(const JsonValue& schema, Json& answer) {
  answer["tool"] = render_schema_use(schema, true, false);
  answer["tool_strict"] = render_schema_use(schema, true, true);
  answer["format"] = render_schema_use(schema, false, false);
  answer["format_strict"] = render_schema_use(schema, false, true);
}

Result<SpecialTokens> read_special_tokens(const Fields& line) {
  constexpr std::string_view kNames[] = {"bos",
                                         "eos",
                                         "thinking_start",
                                         "thinking_end",
                                         "system",
                                         "user",
                                         "assistant",
                                         "latest_reminder",
                                         "dsml",
                                         "image",
                                         "ref",
                                         "ref_end",
                                         "box",
                                         "box_end",
                                         "point",
                                         "point_end",
                                         "polygon",
                                         "polygon_end"};
  static_assert(std::size(kNames) == kNumSpecialTokens);
  SpecialTokens tokens;
  if (const JsonValue* value = line.value("special_tokens")) {
    const Place place(line.place(), "special_tokens");
    HADAL_TRY(const Fields fields, Fields::of(*value, place));
    for (size_t index = 0; index < kNumSpecialTokens; ++index) {
      HADAL_TRY(const auto spelling, fields.optional_string(kNames[index]));
      if (spelling) {
        tokens.spellings[index] = *spelling;
      }
    }
  }
  return tokens;
}

Result<ToolDefinition> read_tool(const JsonValue& value, const Place& place) {
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  ToolDefinition tool;
  HADAL_TRY(tool.name, fields.string("name"));
  HADAL_TRY(tool.description, fields.optional_string("description"));
  HADAL_TRY(tool.strict, fields.optional_bool("strict"));
  HADAL_TRY(const auto defer, fields.optional_bool("defer_loading"));
  tool.defer_loading = defer.value_or(false);
  if (const JsonValue* parameters = fields.value("parameters")) {
    tool.parameters = *parameters;
  }
  return tool;
}

Result<std::vector<ToolDefinition>> read_tools(const Fields& fields) {
  std::vector<ToolDefinition> tools;
  HADAL_TRY(const auto list, fields.optional_list("tools"));
  if (list) {
    const Place place(fields.place(), "tools");
    for (size_t index = 0; index < list->size(); ++index) {
      HADAL_TRY(ToolDefinition tool, read_tool((*list)[index], Place(place, index)));
      tools.push_back(std::move(tool));
    }
  }
  return tools;
}

/// A message of a conversation built by hand: its images stand at the first placeholders of its text.
Result<Message> read_message(const JsonValue& value, const Place& place, const SpecialTokens& tokens) {
  constexpr std::string_view kRoles[] = {"system", "user", "assistant", "tool", "latest_reminder"};
  HADAL_TRY(const Fields fields, Fields::of(value, place));
  Message message;
  HADAL_TRY(const size_t role, fields.choice("role", kRoles));
  message.role = static_cast<Role>(role);
  HADAL_TRY(message.content, fields.string("content"));
  HADAL_TRY(message.reasoning, fields.optional_string("reasoning_content"));
  HADAL_TRY(message.tool_call_id, fields.optional_string("tool_call_id"));
  HADAL_TRY(const auto prefix, fields.optional_bool("prefix"));
  message.prefix = prefix.value_or(false);
  HADAL_TRY(message.tools, read_tools(fields));
  HADAL_TRY(const auto calls, fields.optional_list("tool_calls"));
  if (calls) {
    const Place calls_place(place, "tool_calls");
    std::vector<ToolCall>& list = message.tool_calls.emplace();
    for (size_t index = 0; index < calls->size(); ++index) {
      const Place call_place(calls_place, index);
      HADAL_TRY(const Fields call, Fields::of((*calls)[index], call_place));
      HADAL_TRY(const std::string_view id, call.string("id"));
      HADAL_TRY(const std::string_view name, call.string("name"));
      HADAL_TRY(const std::string_view arguments, call.string("arguments"));
      list.push_back({std::string(id), std::string(name), std::string(arguments)});
    }
  }
  HADAL_TRY(const auto images, fields.optional_list("images"));
  if (images) {
    const std::string& placeholder = tokens[SpecialToken::kImage];
    size_t at = 0;
    for (const JsonValue& image : *images) {
      if (!image.is_string()) {
        return wrong_kind(Place(place, "images"), "a list of URLs", image);
      }
      at = placeholder.empty() ? std::string::npos : message.content.find(placeholder, at);
      PlacedImage& placed = message.images.emplace_back();
      placed.offset = at;
      placed.source.url = image.as_string();
      at = at == std::string::npos ? at : at + placeholder.size();
    }
  }
  return message;
}

Result<void> read_settings(const Fields& line, Conversation& conversation) {
  const JsonValue* settings = line.value("settings");
  if (settings == nullptr) {
    return {};
  }
  const Place place(line.place(), "settings");
  HADAL_TRY(const Fields fields, Fields::of(*settings, place));
  HADAL_TRY(const auto thinking, fields.optional_bool("thinking_mode"));
  conversation.thinking = thinking.value_or(true);
  HADAL_TRY(conversation.tools, read_tools(fields));
  constexpr std::string_view kChoices[] = {"auto", "none", "required"};
  HADAL_TRY(const auto choice, fields.optional_choice("tool_choice", kChoices));
  conversation.tool_choice = static_cast<ToolChoice>(choice.value_or(0));
  constexpr std::string_view kEfforts[] = {"low", "high", "xhigh", "max"};
  HADAL_TRY(const auto effort, fields.optional_choice("reasoning_effort", kEfforts));
  if (effort) {
    conversation.effort = static_cast<Effort>(*effort);
  }
  constexpr std::string_view kFormats[] = {"text", "json_object"};
  HADAL_TRY(const auto format, fields.optional_choice("response_format", kFormats));
  conversation.json_object = format.value_or(0) == 1;
  if (const JsonValue* schema = fields.value("response_schema")) {
    conversation.response_schema = *schema;
  }
  HADAL_TRY(conversation.response_regex, fields.optional_string("response_regex"));
  return {};
}

/// What cannot be combined in a conversation built by hand.
std::optional<std::string_view> conflict_of(const Conversation& conversation) {
  if (conversation.json_object && (conversation.response_schema || conversation.response_regex)) {
    return R"(response_format "json_object" cannot be combined with response_schema or response_regex)";
  }
  if (conversation.response_schema && conversation.response_regex) {
    return "response_schema and response_regex cannot be combined";
  }
  return std::nullopt;
}

Result<void> render_direct(const Fields& line, const TokenizerSet& tokenizers, Json& answer) {
  HADAL_TRY(const size_t version_index, line.choice("version", kVersions));
  const auto version = static_cast<ModelVersion>(version_index);
  HADAL_TRY(const SpecialTokens tokens, read_special_tokens(line));
  Conversation conversation;
  HADAL_TRY(const auto messages, line.list("messages"));
  const Place place(line.place(), "messages");
  for (size_t index = 0; index < messages.size(); ++index) {
    HADAL_TRY(Message message, read_message(messages[index], Place(place, index), tokens));
    conversation.messages.push_back(std::move(message));
  }
  HADAL_CHECK(read_settings(line, conversation));
  if (const auto conflict = conflict_of(conversation)) {
    answer["error"] = Json{{"type", "ValueError"}, {"message", *conflict}};
    return {};
  }
  const Prompt prompt = render_prompt(std::move(conversation), version, tokens);
  Json& result = answer["result"] = Json::object();
  result["prompt"] = prompt.text;
  result["special_ranges"] = describe_ranges(prompt);
  Json& images = result["image_sources"] = Json::array();
  for (const ImageSource& image : prompt.images) {
    images.push_back(image.url);
  }
  add_token_ids(result, prompt, tokenizers.of(version), Detail::kRecorded);
  return {};
}

Result<void> answer_line(const JsonValue& value, const TokenizerSet& tokenizers, Json& answer) {
  const Place root;
  HADAL_TRY(const Fields line, Fields::of(value, root));
  if (line.has("protocol")) {
    return render_request(line, tokenizers, answer);
  }
  if (line.has("schema")) {
    render_schema(*value.find("schema"), answer);
    return {};
  }
  if (line.has("messages")) {
    return render_direct(line, tokenizers, answer);
  }
  return fail(ErrorCode::kInvalidArgument, "a line needs `protocol`, `schema` or `messages`");
}

}  // namespace

std::string render_line(std::string_view line, const TokenizerSet& tokenizers) {
  JsonArena arena;
  Json answer{{"id", nullptr}};
  // A request inside a line may itself be as deep as bodies may be.
  JsonLimits limits;
  limits.max_depth += 8;
  auto value = read_json(line, arena, limits);
  Result<void> done;
  if (value) {
    if (const JsonValue* id = value->find("id"); id != nullptr && id->is_string()) {
      answer["id"] = id->as_string();
    }
    done = answer_line(*value, tokenizers, answer);
  } else {
    done = tl::make_unexpected(value.error());
  }
  if (!done) {
    answer["error"] = Json{{"stage", "line"}, {"message", done.error().message}};
  }
  return json_text(answer);
}

}  // namespace hadal::recipe
