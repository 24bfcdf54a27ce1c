#include <algorithm>
#include <map>

#include "recipe/content.h"
#include "recipe/messages/history.h"
#include "recipe/messages/request.h"
#include "recipe/schema/strict.h"

namespace hadal::recipe::messages {
namespace {

template <class... Args>
tl::unexpected<Error> refuse(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kInvalidArgument, format, std::forward<Args>(args)...);
}

/// The client's tools; server tools are refused, or left out where the server says so (their names are in
/// `left_out`).
Result<std::vector<RequestedTool>> client_tools(std::vector<ToolField>& fields, ModelVersion version,
                                                const ConversionOptions& options,
                                                std::vector<std::string>& left_out) {
  std::vector<RequestedTool> tools;
  tools.reserve(fields.size());
  const bool drops = options.messages_web_search == ConversionOptions::WebSearch::kDrop;
  for (size_t index = 0; index < fields.size(); ++index) {
    ToolField& field = fields[index];
    if (field.type && *field.type != "custom") {
      if (drops && field.type->starts_with("web_search")) {
        left_out.push_back(std::move(field.tool.name));
        continue;
      }
      return refuse("tools[{}]: server tools are not supported", index);
    }
    HADAL_CHECK(check_tool_name(field.tool.name, fmt::format("tools[{}].name", index)));
    tools.push_back(std::move(field.tool));
  }
  if (version == ModelVersion::kV4) {
    for (RequestedTool& tool : tools) {
      tool.defer_loading = false;
    }
  } else if (!tools.empty() && std::all_of(tools.begin(), tools.end(),
                                           [](const RequestedTool& tool) { return tool.defer_loading; })) {
    return refuse("tools: at least one tool must have defer_loading=false. All tools cannot be deferred.");
  }
  return tools;
}

/// Puts the definitions where tools become known. Places that have nothing to say vanish.
void add_definitions(Conversation& conversation, std::span<const KnownFrom> places) {
  std::map<std::string_view, const ToolDefinition*> known;
  for (const ToolDefinition& tool : conversation.tools) {
    known.emplace(tool.name, &tool);
  }
  std::vector<bool> vanishes(conversation.messages.size());
  for (const KnownFrom& place : places) {
    Message& message = conversation.messages[place.message];
    for (const std::string_view name : place.names) {
      if (const auto tool = known.find(name); tool != known.end()) {
        message.tools.push_back(*tool->second);
      }
    }
    vanishes[place.message] = message.tools.empty() && message.content.empty();
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

RequestedChoice requested_choice(const ToolChoiceField& field, bool choice_was_dropped) {
  RequestedChoice choice;
  if (choice_was_dropped) {
    return choice;
  }
  switch (field.kind) {
    case ToolChoiceField::Kind::kAuto:
      break;
    case ToolChoiceField::Kind::kAny:
      choice.kind = RequestedChoice::Kind::kRequired;
      choice.while_thinking = true;
      break;
    case ToolChoiceField::Kind::kTool:
      choice.kind = RequestedChoice::Kind::kNamed;
      choice.name = field.name;
      break;
    case ToolChoiceField::Kind::kNone:
      choice.kind = RequestedChoice::Kind::kNone;
      break;
  }
  return choice;
}

}  // namespace

Result<ConvertedRequest> convert_request(Request&& request, const ConversionOptions& options,
                                         std::shared_ptr<JsonArena> arena) {
  ConvertedRequest converted;
  PreparedRequest& prepared = converted.prepared;
  Conversation& conversation = converted.conversation;
  conversation.arena = std::move(arena);
  conversation.fidelity.keep_call_order = true;
  conversation.fidelity.keep_opening_reasoning = true;

  HADAL_TRY(prepared.model_version, select_model(request.model, options));
  prepared.model = request.model;
  const Thinking thinking = resolve_thinking(request.thinking, request.effort, options);
  conversation.thinking = thinking.on;
  conversation.effort = thinking.effort;
  std::vector<std::string> left_out;
  HADAL_TRY(std::vector<RequestedTool> tools,
            client_tools(request.tools, prepared.model_version, options, left_out));
  for (const std::string& name : left_out) {
    converted.notices.add(
        fmt::format("tool `{}` would be executed by the server: not supported; left out", name));
  }
  const bool names_left_out =
      request.tool_choice.kind == ToolChoiceField::Kind::kTool &&
      std::find(left_out.begin(), left_out.end(), request.tool_choice.name) != left_out.end();

  if (request.system) {
    Message system;
    system.role = Role::kSystem;
    system.content = std::move(*request.system);
    conversation.messages.push_back(std::move(system));
  }
  std::vector<KnownFrom> known_from;
  {
    std::vector<std::string_view> names;
    for (const RequestedTool& tool : tools) {
      names.push_back(tool.name);
    }
    HistoryConverter history(request.messages, names, conversation, prepared.model_version, options,
                             converted.notices);
    HADAL_CHECK(history.convert());
    known_from = history.known_from();
  }
  if (conversation.thinking &&
      options.reasoning_content_behavior == ConversionOptions::ReasoningContent::kReject) {
    HADAL_CHECK(check_reasoning_passed_back(conversation, !tools.empty(), "content[].thinking"));
  }
  settle_reasoning(conversation);

  RequestedChoice choice = requested_choice(request.tool_choice, names_left_out);
  choice.while_thinking = choice.while_thinking || options.required_call_while_thinking;
  std::vector<ToolDefinition> definitions;
  if (choice.kind != RequestedChoice::Kind::kNone) {
    HADAL_TRY(definitions, define_tools(tools, *conversation.arena));
  }
  HADAL_CHECK(choose_tools(conversation, std::move(definitions), choice));
  add_definitions(conversation, known_from);
  HADAL_CHECK(check_stop_sequences(request.stop_sequences, "stop"));
  HADAL_CHECK(check_temperature(request.temperature));
  HADAL_CHECK(check_top_p(request.top_p));
  if (request.max_tokens == uint64_t{0}) {
    HADAL_CHECK(check_max_tokens(request.max_tokens, conversation.thinking, options));
  }
  if (request.output_schema != nullptr) {
    HADAL_TRY(converted.constraint_schema,
              constraint_schema(*request.output_schema, false, *conversation.arena));
    conversation.response_schema = *request.output_schema;
  }

  prepared.stream = request.stream;
  if (request.max_tokens) {
    prepared.inference.max_tokens =
        std::min(*request.max_tokens, max_tokens_bound(conversation.thinking, options));
  }
  prepared.inference.top_k = request.top_k;
  set_sampling(prepared.inference, request.temperature, request.top_p, prepared.model_version,
               conversation.thinking, conversation.tools_in_force());
  prepared.parsing.stop_sequences = std::move(request.stop_sequences);
  prepared.ignored_fields = std::move(request.ignored_fields);
  finish_settings(converted);
  if (prepared.constraint) {
    prepared.constraint->at_most_one_call = request.tool_choice.at_most_one_call;
  }
  return converted;
}

}  // namespace hadal::recipe::messages
