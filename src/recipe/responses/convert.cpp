#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "recipe/content.h"
#include "recipe/json_text.h"
#include "recipe/responses/echo.h"
#include "recipe/responses/history.h"
#include "recipe/responses/request.h"
#include "recipe/responses/tools.h"
#include "recipe/schema/strict.h"

namespace hadal::recipe::responses {
namespace {

template <class... Args>
tl::unexpected<Error> refuse(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kInvalidArgument, format, std::forward<Args>(args)...);
}

Result<void> check_input(const Request& request, const ConversionOptions& options) {
  if (request.previous_response_id && !options.previous_items) {
    return refuse("previous_response_id: not supported: responses are not stored here");
  }
  if (!request.unsupported_field.empty()) {
    return refuse(
        "{}: not supported: there are no stored conversations and prompts here, and nothing runs in the "
        "background",
        request.unsupported_field);
  }
  if (!request.input && !request.input_text && request.instructions.value_or("").empty()) {
    return refuse("Either input or instructions must be provided");
  }
  if (!request.input) {
    return {};
  }
  if (std::all_of(request.input->begin(), request.input->end(),
                  [](const Item& item) { return item.kind == Item::Kind::kLeftOut; })) {
    return refuse("Input items array must not be empty");
  }
  for (size_t index = 0; index < request.input->size(); ++index) {
    if ((*request.input)[index].type == "item_reference") {
      return refuse(
          "input[{}]: item_reference cannot be resolved; send the item itself, or previous_response_id",
          index);
    }
  }
  return {};
}

/// The request's own input as a list of items.
std::string input_items_text(const Request& request) {
  if (request.input_json == nullptr) {
    return "[]";
  }
  std::string text = json_text(*request.input_json);
  return request.input_json->is_string()
             ? fmt::format(R"([{{"type":"message","role":"user","content":{}}}])", text)
             : text;
}

/// Puts the items of earlier responses in front of the input, as if the client had sent them; how many.
Result<size_t> add_previous_items(std::string_view items, Request& request, JsonArena& arena) {
  HADAL_TRY(const JsonValue list, read_json(items, arena));
  std::vector<Item> all;
  all.reserve(list.items().size() + (request.input ? request.input->size() : 1));
  const Place root;
  const Place place(root, "previous_response_id");
  for (size_t index = 0; index < list.items().size(); ++index) {
    HADAL_TRY(Item item, read_item(list.items()[index], Place(place, index)));
    all.push_back(std::move(item));
  }
  const size_t num_previous = all.size();
  if (request.input_text) {
    Item item;
    item.content.text = *std::exchange(request.input_text, std::nullopt);
    all.push_back(std::move(item));
  } else if (request.input) {
    std::move(request.input->begin(), request.input->end(), std::back_inserter(all));
  }
  request.input = std::move(all);
  return num_previous;
}

Result<void> convert_input(Request& request, ToolTable& tools, Conversation& conversation,
                           ModelVersion version, const ConversionOptions& options,
                           std::vector<KnownFrom>& known_from) {
  HADAL_CHECK(check_input(request, options));
  size_t num_previous = 0;
  if (request.previous_response_id) {
    HADAL_TRY(num_previous, add_previous_items(*options.previous_items, request, *conversation.arena));
  }
  const auto add = [&](Role role, std::string_view text) {
    Message message;
    message.role = role;
    message.content = text;
    conversation.messages.push_back(std::move(message));
  };
  if (!request.instructions.value_or("").empty()) {
    add(Role::kSystem, *request.instructions);
  }
  if (request.input_text) {
    add(Role::kUser, *request.input_text);
  }
  if (request.input) {
    HistoryConverter history(*request.input, num_previous, tools, conversation, version, options);
    HADAL_CHECK(history.convert());
    known_from = history.known_from();
  }
  return {};
}

std::string shown_choice(const ToolChoiceField::Name& name, const ToolTable& tools) {
  if (name.name_space && tools.knows(name.name, *name.name_space)) {
    return tools.shown_name(name.name, name.name_space);
  }
  return std::string(name.name);
}

Result<RequestedChoice> requested_choice(const ToolChoiceField& field, const ToolTable& tools,
                                         const ConversionOptions& options) {
  RequestedChoice choice;
  switch (field.kind) {
    case ToolChoiceField::Kind::kAuto:
      break;
    case ToolChoiceField::Kind::kNone:
      choice.kind = RequestedChoice::Kind::kNone;
      break;
    case ToolChoiceField::Kind::kRequired:
      choice.kind = RequestedChoice::Kind::kRequired;
      break;
    case ToolChoiceField::Kind::kFunction:
    case ToolChoiceField::Kind::kCustom:
      choice.kind = RequestedChoice::Kind::kNamed;
      choice.name = shown_choice(field.name, tools);
      break;
    case ToolChoiceField::Kind::kWebSearch:
      if (options.responses_web_search == ConversionOptions::WebSearch::kReject) {
        return refuse("Server tools are not supported");
      }
      break;
    case ToolChoiceField::Kind::kAllowed:
      choice.kind = field.must_call ? RequestedChoice::Kind::kRequired : RequestedChoice::Kind::kAuto;
      break;
  }
  return choice;
}

/// The tools that an `allowed_tools` choice leaves callable.
Result<void> restrict_tools(const ToolChoiceField& field, const ToolTable& tools,
                            ConvertedRequest& converted) {
  if (field.kind != ToolChoiceField::Kind::kAllowed || !converted.conversation.tools_in_force()) {
    return {};
  }
  auto& callable = converted.callable.emplace();
  for (const ToolChoiceField::Name& name : field.allowed) {
    std::string shown = shown_choice(name, tools);
    const auto& all = converted.conversation.tools;
    if (std::none_of(all.begin(), all.end(),
                     [&](const ToolDefinition& tool) { return tool.name == shown; })) {
      return refuse(
          "Invalid value for 'tool_call': no function named '{}' was specified in the 'tools' parameter.",
          shown);
    }
    callable.insert(std::move(shown));
  }
  if (callable.empty()) {
    return refuse("tool_choice.tools: expected at least one tool");
  }
  return {};
}

/// Puts the definitions where tools became known. Places that have nothing to say vanish.
void add_definitions(Conversation& conversation, std::span<const KnownFrom> places) {
  std::map<std::string_view, const ToolDefinition*> known;
  for (const ToolDefinition& tool : conversation.tools) {
    known.emplace(tool.name, &tool);
  }
  std::vector<bool> vanishes(conversation.messages.size());
  for (const KnownFrom& place : places) {
    Message& message = conversation.messages[place.message];
    for (const std::string& name : place.names) {
      if (const auto tool = known.find(name); tool != known.end()) {
        message.tools.push_back(*tool->second);
      }
    }
    vanishes[place.message] = message.tools.empty();
  }
  size_t kept = 0;
  for (size_t index = 0; index < conversation.messages.size(); ++index) {
    if (!vanishes[index]) {
      if (kept != index) {
        conversation.messages[kept] = std::move(conversation.messages[index]);
      }
      ++kept;
    }
  }
  conversation.messages.resize(kept);
}

Result<void> check_json_word(const Request& request, const Conversation& conversation) {
  if (request.format.kind == FormatField::Kind::kJsonObject &&
      std::none_of(conversation.messages.begin(), conversation.messages.end(),
                   [](const Message& message) { return mentions_json(message.content); })) {
    return refuse(
        "Response input messages must contain the word 'json' in some form to use 'text.format' of type "
        "'json_object'.");
  }
  return {};
}

Result<void> convert_format(const Request& request, ConvertedRequest& converted) {
  Conversation& conversation = converted.conversation;
  switch (request.format.kind) {
    case FormatField::Kind::kText:
      return {};
    case FormatField::Kind::kJsonObject:
      conversation.json_object = true;
      break;
    case FormatField::Kind::kJsonSchema: {
      HADAL_TRY(converted.constraint_schema,
                constraint_schema(*request.format.schema, request.format.strict.value_or(false),
                                  *conversation.arena));
      conversation.response_schema = *request.format.schema;
      break;
    }
  }
  return {};
}

}  // namespace

Result<ConvertedRequest> convert_request(Request&& request, const ConversionOptions& options,
                                         std::shared_ptr<JsonArena> arena) {
  ConvertedRequest converted;
  PreparedRequest& prepared = converted.prepared;
  Conversation& conversation = converted.conversation;
  conversation.arena = std::move(arena);
  conversation.fidelity.keep_call_order = true;

  HADAL_TRY(prepared.model_version, select_model(request.model, options));
  prepared.model = request.model;
  const Thinking thinking = resolve_thinking(std::nullopt, request.effort, options);
  conversation.thinking = thinking.on;
  conversation.effort = thinking.effort;
  ToolTable tools(prepared.model_version, options, *conversation.arena, converted.notices);
  HADAL_CHECK(tools.declare(request.tools));
  std::vector<KnownFrom> known_from;
  HADAL_CHECK(convert_input(request, tools, conversation, prepared.model_version, options, known_from));
  HADAL_TRY(RequestedChoice choice, requested_choice(request.tool_choice, tools, options));
  choice.while_thinking = options.required_call_while_thinking;
  std::vector<RequestedTool> all_tools = tools.take_tools();
  if (conversation.thinking &&
      options.reasoning_content_behavior == ConversionOptions::ReasoningContent::kReject) {
    HADAL_CHECK(check_reasoning_passed_back(conversation, !all_tools.empty(), "reasoning_text"));
  }
  settle_reasoning(conversation);
  std::vector<ToolDefinition> definitions;
  if (choice.kind != RequestedChoice::Kind::kNone) {
    HADAL_TRY(definitions, define_tools(all_tools, *conversation.arena));
  }
  HADAL_CHECK(choose_tools(conversation, std::move(definitions), choice));
  HADAL_CHECK(restrict_tools(request.tool_choice, tools, converted));
  HADAL_CHECK(check_json_word(request, conversation));
  add_definitions(conversation, known_from);
  HADAL_CHECK(convert_format(request, converted));
  HADAL_CHECK(check_strict_mix(conversation.tools));
  if (request.format.kind != FormatField::Kind::kText && conversation.tools_in_force() &&
      conversation.tools[0].strict.value_or(false)) {
    return refuse("response_format should not be used with tools");
  }
  HADAL_CHECK(check_temperature(request.temperature));
  HADAL_CHECK(check_top_p(request.top_p));
  constexpr uint64_t kMostLogprobs = 20;
  if (request.top_logprobs && *request.top_logprobs > kMostLogprobs) {
    return refuse("Invalid top_logprobs value, the valid range of top_logprobs is [0, {}].", kMostLogprobs);
  }
  HADAL_CHECK(check_max_tokens(request.max_output_tokens, conversation.thinking, options));

  prepared.stream = request.stream;
  prepared.inference.max_tokens = request.max_output_tokens;
  prepared.inference.logprobs = request.top_logprobs.has_value();
  if (request.top_logprobs) {
    prepared.inference.top_logprobs = static_cast<uint32_t>(*request.top_logprobs);
  }
  set_sampling(prepared.inference, request.temperature, request.top_p, prepared.model_version,
               conversation.thinking, conversation.tools_in_force());
  prepared.echo = make_echo(request);
  if (options.keep_input) {
    prepared.input_items = input_items_text(request);
  }
  prepared.namespace_tool_map = std::move(tools.namespaces);
  prepared.found_tools = std::move(tools.found);
  prepared.custom_tools = std::move(tools.custom);
  prepared.tool_search = tools.has_tool_search;
  prepared.ignored_fields = std::move(request.ignored_fields);
  finish_settings(converted);
  if (prepared.constraint) {
    prepared.constraint->at_most_one_call = !request.parallel_tool_calls;
  }
  return converted;
}

}  // namespace hadal::recipe::responses
