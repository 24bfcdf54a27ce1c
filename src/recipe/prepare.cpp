// prepare_request: body -> typed request -> conversation and settings -> prompt.

#include <algorithm>

#include "recipe/chat/request.h"
#include "recipe/errors.h"
#include "recipe/json_value.h"
#include "recipe/messages/request.h"
#include "recipe/prepared_request.h"
#include "recipe/prompt/render.h"
#include "recipe/responses/request.h"
#include "recipe/settings.h"

namespace hadal::recipe {
namespace {

/// Reads and converts with the functions of one protocol's namespace.
template <class Read, class Convert>
RequestResult<ConvertedRequest> read_and_convert(Protocol protocol, std::string_view body, Read read,
                                                 Convert convert) {
  auto arena = std::make_shared<JsonArena>();
  auto json = read_json(body, *arena);
  if (!json) {
    return tl::make_unexpected(unreadable_request(protocol, "invalid JSON request: " + json.error().message));
  }
  auto request = read(*json);
  if (!request) {
    return tl::make_unexpected(
        unreadable_request(protocol, "invalid request body: " + request.error().message));
  }
  auto converted = convert(std::move(*request), arena);
  if (!converted) {
    return tl::make_unexpected(refused_request(protocol, std::move(converted.error().message)));
  }
  return std::move(*converted);
}

RequestResult<ConvertedRequest> convert(Protocol protocol, std::string_view body,
                                        const ConversionOptions& options) {
  if (protocol == Protocol::kResponses) {
    return read_and_convert(protocol, body, responses::read_request,
                            [&](responses::Request&& request, std::shared_ptr<JsonArena> arena) {
                              return responses::convert_request(std::move(request), options,
                                                                std::move(arena));
                            });
  }
  if (protocol == Protocol::kMessages) {
    return read_and_convert(protocol, body, messages::read_request,
                            [&](messages::Request&& request, std::shared_ptr<JsonArena> arena) {
                              return messages::convert_request(std::move(request), options, std::move(arena));
                            });
  }
  return read_and_convert(protocol, body, chat::read_request,
                          [&](chat::Request&& request, std::shared_ptr<JsonArena> arena) {
                            return chat::convert_request(std::move(request), options, std::move(arena));
                          });
}

}  // namespace

RequestResult<PreparedRequest> prepare_request(Protocol protocol, std::string_view body,
                                               const ConversionOptions& options) {
  auto converted = convert(protocol, body, options);
  if (!converted) {
    return tl::make_unexpected(std::move(converted.error()));
  }
  PreparedRequest& prepared = converted->prepared;
  prepared.protocol = protocol;
  if (options.describe_conversation) {
    prepared.conversation = describe_conversation(converted->conversation, true);
  }
  prepared.prompt =
      render_prompt(std::move(converted->conversation), prepared.model_version, options.special_tokens);
  return std::move(prepared);
}

RequestResult<uint64_t> resolve_max_tokens(const PreparedRequest& request, uint64_t prompt_tokens,
                                           uint64_t context_limit) {
  const std::optional<uint64_t> asked = request.inference.max_tokens;
  const uint64_t completion = asked.value_or(0);
  if (prompt_tokens > context_limit || completion > context_limit - prompt_tokens) {
    return tl::make_unexpected(refused_request(
        request.protocol,
        fmt::format(
            "This model's maximum context length is {} tokens. However, you requested {} tokens ({} in the "
            "messages, {} in the completion). Please reduce the length of the messages or completion.",
            context_limit, prompt_tokens + completion, prompt_tokens, completion)));
  }
  if (asked) {
    return *asked;
  }
  return std::max<uint64_t>(1, std::min(request.default_max_tokens, context_limit - prompt_tokens));
}

}  // namespace hadal::recipe
