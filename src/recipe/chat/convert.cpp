#include <algorithm>
#include <set>

#include "recipe/chat/request.h"
#include "recipe/content.h"
#include "recipe/schema/check.h"
#include "recipe/schema/strict.h"

namespace hadal::recipe::chat {
namespace {

template <class... Args>
tl::unexpected<Error> refuse(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kInvalidArgument, format, std::forward<Args>(args)...);
}

/// The messages of a request, checked in their order.
class MessageConverter {
 public:
  MessageConverter(std::vector<RequestMessage>& messages, Conversation& conversation, ModelVersion version,
                   const SpecialTokens& tokens, Notices& notices)
      : messages_(messages), conversation_(conversation), content_(version, tokens, notices) {}

  Result<void> convert() {
    if (messages_.empty()) {
      return refuse("Empty input messages");
    }
    conversation_.messages.reserve(messages_.size());
    for (size_t index = 0; index < messages_.size(); ++index) {
      HADAL_CHECK(convert_message(index));
    }
    return {};
  }

 private:
  Result<void> convert_message(size_t index) {
    RequestMessage& from = messages_[index];
    Message message;
    message.role = from.role;
    HADAL_CHECK(convert_content(index, message));
    if (from.role == Role::kAssistant) {
      HADAL_CHECK(check_calls(index));
      if (from.prefix && index + 1 != messages_.size()) {
        return refuse(
            "Invalid completion message: prefix set true with message which is not final message or message "
            "role is "
            "not assistant");
      }
      if (from.reasoning) {
        message.reasoning.emplace(*from.reasoning);
      }
      message.tool_calls = std::move(from.tool_calls);
      message.prefix = from.prefix;
    }
    if (from.role == Role::kTool) {
      if (index >= results_end_) {
        return refuse(
            "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'");
      }
      message.tool_call_id.emplace(*from.tool_call_id);
    }
    if (from.role == Role::kSystem && message.content.empty()) {
      return {};
    }
    conversation_.messages.push_back(std::move(message));
    return {};
  }

  Result<void> check_calls(size_t index) {
    const RequestMessage& message = messages_[index];
    if (!message.tool_calls) {
      if (!message.content.given()) {
        return refuse("Invalid assistant message: content or tool_calls must be set");
      }
      return {};
    }
    if (message.tool_calls->empty()) {
      return refuse(
          "Invalid 'messages[{}].tool_calls': empty array. Expected an array with minimum length 1, but got "
          "an empty "
          "array instead.",
          index);
    }
    std::set<std::string_view> ids;
    for (const ToolCall& call : *message.tool_calls) {
      if (!ids.insert(call.id).second) {
        return refuse("Duplicate value for 'tool_call_id' of {} in message[{}]", call.id, index);
      }
    }
    // Exactly one result for each call, directly after.
    std::set<std::string_view> answered;
    results_end_ = index + 1;
    for (size_t result = 0; result < message.tool_calls->size(); ++result, ++results_end_) {
      if (results_end_ >= messages_.size() || messages_[results_end_].role != Role::kTool) {
        return refuse(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. (insufficient tool messages following tool_calls message)");
      }
      const std::string_view id = *messages_[results_end_].tool_call_id;
      if (!ids.contains(id)) {
        return refuse(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id', The following tool_call_ids did not have response messages: {}",
            id);
      }
      if (!answered.insert(id).second) {
        return refuse("Duplicate value for 'tool_call_id' of {} in message[{}]", id, results_end_);
      }
    }
    return {};
  }

  Result<void> convert_content(size_t index, Message& message) {
    const Content& content = messages_[index].content;
    if (content.text) {
      message.content = *content.text;
      return {};
    }
    if (!content.parts) {
      return {};
    }
    for (size_t part = 0; part < content.parts->size(); ++part) {
      HADAL_CHECK(convert_part((*content.parts)[part], index, part));
    }
    content_.finish(message);
    return {};
  }

  Result<void> convert_part(const ContentPart& part, size_t index, size_t number) {
    if (part.kind == ContentPart::Kind::kText) {
      content_.text(part.text);
      return {};
    }
    if (!content_.supports_images()) {
      content_.image_notice();
      return {};
    }
    if (messages_[index].role == Role::kAssistant) {
      return refuse("Image in assistant message is not supported");
    }
    ImageSource source;
    source.path = fmt::format(".messages[{}]", index);
    source.detail = part.detail;
    if (part.kind == ContentPart::Kind::kFile) {
      HADAL_CHECK(check_file(part, source));
      source.url = *part.file_data;
    } else {
      HADAL_CHECK(check_image_url(part.text, index, number, source));
      source.url = part.text;
    }
    content_.image(std::move(source));
    return {};
  }

  static Result<void> check_file(const ContentPart& part, ImageSource& source) {
    if (part.has_file_id) {
      return part.file_data
                 ? refuse("{}: file cannot have both file_id and file_data", source.path)
                 : refuse("{}: file_id is not supported. Pass the image as a base64 data url instead.",
                          source.path);
    }
    if (!part.file_data) {
      return refuse("{}: file must have a file_id or file_data", source.path);
    }
    source.kind = ImageSource::Kind::kDataUrl;
    switch (classify_image_url(*part.file_data)) {
      case ImageUrlKind::kImageData:
        return {};
      case ImageUrlKind::kUnsupportedData:
        return refuse(
            "{}: You have uploaded an unsupported file. Please make sure your file is valid and has one of "
            "the following "
            "formats: webp, png, jpeg, and gif.",
            source.path);
      default:
        return refuse("{}: file_data is not a valid base64 data url", source.path);
    }
  }

  static Result<void> check_image_url(std::string_view url, size_t index, size_t number,
                                      ImageSource& source) {
    source.kind = ImageSource::Kind::kDataUrl;
    switch (classify_image_url(url)) {
      case ImageUrlKind::kHttp:
        source.kind = ImageSource::Kind::kUrl;
        if (url.size() > kLongestUrl) {
          return refuse(
              ".messages[{}].image_url.url[{}]: image_url.url external link length {} too long, max link "
              "length {}. "
              "Consider passing file data directly with base64 data url instead.",
              index, number, url.size(), kLongestUrl);
        }
        return {};
      case ImageUrlKind::kImageData:
        return {};
      case ImageUrlKind::kUnsupportedData:
        return refuse("{}: {}", source.path, kUnsupportedImageText);
      case ImageUrlKind::kInvalidBase64:
        return refuse("{}: Invalid base64 data", source.path);
      case ImageUrlKind::kOther:
        break;
    }
    return refuse("{}: Unsupported image_url format", source.path);
  }

  std::vector<RequestMessage>& messages_;
  Conversation& conversation_;
  ContentBuilder content_;
  size_t results_end_ = 0;  ///< one after the last result that belongs to the last turn with calls
};

Result<void> check_prefix(const Request& request, const Conversation& conversation) {
  if (conversation.messages.empty() || !conversation.messages.back().prefix) {
    return {};
  }
  if (request.response_format.kind == ResponseFormat::Kind::kJsonObject) {
    return refuse("response_format json_object should not be used with prefix");
  }
  const bool has_calls = std::any_of(conversation.messages.begin(), conversation.messages.end(),
                                     [](const Message& message) { return message.tool_calls.has_value(); });
  if (has_calls || !request.tools.empty()) {
    return refuse("Function call should not be used with prefix");
  }
  return {};
}

Result<void> convert_format(const Request& request, ConvertedRequest& converted) {
  Conversation& conversation = converted.conversation;
  const ResponseFormat& format = request.response_format;
  switch (format.kind) {
    case ResponseFormat::Kind::kText:
      break;
    case ResponseFormat::Kind::kJsonObject:
      conversation.json_object = true;
      break;
    case ResponseFormat::Kind::kJsonSchema: {
      HADAL_TRY(converted.constraint_schema,
                constraint_schema(*format.schema, format.strict, *conversation.arena));
      conversation.response_schema = *format.schema;
      break;
    }
    case ResponseFormat::Kind::kRegex:
      conversation.response_regex.emplace(format.regex);
      break;
  }
  return {};
}

Result<void> check_penalty(std::optional<float> penalty, std::string_view name) {
  if (penalty && !(*penalty >= -2.0F && *penalty <= 2.0F)) {
    return refuse("Invalid {0} value, the valid range of {0} is [-2, 2]", name);
  }
  return {};
}

Result<void> check_stop(const Request& request) {
  if (!request.stop_is_list && !request.stop.empty() && request.stop[0].empty()) {
    return refuse(
        "Invalid 'stop': empty string. Expected a string with minimum length 1, but got an empty string "
        "instead.");
  }
  return check_stop_sequences(request.stop, "stop");
}

Result<void> check_logprobs(const Request& request) {
  constexpr uint64_t kMost = 20;
  if (request.top_logprobs && !request.logprobs) {
    return refuse(
        "Invalid top_logprobs and logprobs value, logprobs must be set to true if top_logprobs is used.");
  }
  if (request.top_logprobs && *request.top_logprobs > kMost) {
    return refuse("Invalid top_logprobs value, the valid range of top_logprobs is [0, {}].", kMost);
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
  conversation.fidelity = {.keep_repeated_reminders = true,
                           .keep_call_order = true,
                           .keep_tool_loop_reasoning = true,
                           .keep_opening_reasoning = true};

  HADAL_TRY(prepared.model_version, select_model(request.model, options));
  prepared.model = request.model;
  const Thinking thinking = resolve_thinking(request.thinking, request.effort, options);
  conversation.thinking = thinking.on;
  conversation.effort = thinking.effort;
  for (size_t index = 0; index < request.tools.size(); ++index) {
    HADAL_CHECK(check_tool_name(request.tools[index].name, fmt::format("tools[{}].function.name", index)));
  }
  HADAL_CHECK(MessageConverter(request.messages, conversation, prepared.model_version, options.special_tokens,
                               converted.notices)
                  .convert());
  if (conversation.thinking &&
      options.reasoning_content_behavior == ConversionOptions::ReasoningContent::kReject) {
    HADAL_CHECK(check_reasoning_passed_back(conversation, !request.tools.empty(), "reasoning_content"));
  }
  settle_reasoning(conversation);
  if (request.response_format.kind == ResponseFormat::Kind::kJsonObject &&
      std::none_of(conversation.messages.begin(), conversation.messages.end(),
                   [](const Message& message) { return mentions_json(message.content); })) {
    return refuse(
        "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'.");
  }
  std::vector<ToolDefinition> tools;
  if (request.tool_choice.kind != RequestedChoice::Kind::kNone) {
    HADAL_TRY(tools, define_tools(request.tools, *conversation.arena));
  }
  request.tool_choice.while_thinking = options.required_call_while_thinking;
  HADAL_CHECK(choose_tools(conversation, std::move(tools), request.tool_choice));
  HADAL_CHECK(check_prefix(request, conversation));
  HADAL_CHECK(check_stop(request));
  if (request.include_usage && !request.stream) {
    return refuse("stream_options should be set along with stream = true");
  }
  HADAL_CHECK(convert_format(request, converted));
  HADAL_CHECK(check_strict_mix(conversation.tools));
  if (request.response_format.given && conversation.tools_in_force() &&
      conversation.tools[0].strict.value_or(false)) {
    return refuse("response_format should not be used with tools");
  }
  if (request.n.value_or(1) != 1) {
    return refuse("Invalid n value (currently only n = 1 is supported)");
  }
  HADAL_CHECK(check_penalty(request.presence_penalty, "presence_penalty"));
  HADAL_CHECK(check_penalty(request.frequency_penalty, "frequency_penalty"));
  HADAL_CHECK(check_temperature(request.temperature));
  HADAL_CHECK(check_top_p(request.top_p));
  HADAL_CHECK(check_logprobs(request));
  HADAL_CHECK(check_max_tokens(request.max_tokens, conversation.thinking, options));
  if (request.seed.value_or(0) >= uint64_t{1} << 63) {
    return refuse("Invalid seed value, the valid range of seed is [0, 2^63)");
  }

  prepared.stream = request.stream;
  prepared.include_usage = request.include_usage.value_or(false);
  prepared.inference.max_tokens = request.max_tokens;
  prepared.inference.logprobs = request.logprobs;
  if (request.top_logprobs) {
    prepared.inference.top_logprobs = static_cast<uint32_t>(*request.top_logprobs);
  }
  prepared.inference.seed = request.seed;
  set_sampling(prepared.inference, request.temperature, request.top_p, prepared.model_version,
               conversation.thinking, conversation.tools_in_force());
  prepared.parsing.stop_sequences = std::move(request.stop);
  prepared.ignored_fields = std::move(request.ignored_fields);
  finish_settings(converted);
  if (prepared.constraint) {
    prepared.constraint->at_most_one_call = !request.parallel_tool_calls;
  }
  return converted;
}

}  // namespace hadal::recipe::chat
