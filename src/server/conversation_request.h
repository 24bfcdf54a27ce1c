#pragma once
// Chat, Messages and Responses: from a body to a request that the engine can run. One path for all three;
// what differs is in the recipe.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "recipe/prepared_request.h"
#include "server/api_errors.h"
#include "server/http_message.h"
#include "server/model_service.h"

namespace hadal::server {

struct ConversationRequest {
  recipe::PreparedRequest prepared;
  engine::Request request;
};

/// Responses: what a request gets from the stored ones, and whether it becomes one.
struct ConversationContext {
  bool keep_input = false;                    ///< fill PreparedRequest::input_items
  std::optional<std::string> previous_items;  ///< see recipe::ConversionOptions
};

/// A refusal that is ready to be sent.
template <class T>
using ResponseOr = tl::expected<T, HttpResponse>;

/// Reads, renders and encodes a body. Whatever the request asks for and this build cannot do (constrained
/// output, images, unsupported fields) is refused with an error that names the field.
ResponseOr<ConversationRequest> read_conversation_request(recipe::Protocol protocol, std::string_view body,
                                                          const ModelService& model,
                                                          const RequestPolicy& policy,
                                                          ConversationContext context = {});

/// Only what the prompt needs, for counting: output constraints are of no account.
ResponseOr<std::vector<int32_t>> read_conversation_prompt(recipe::Protocol protocol, std::string_view body,
                                                          const ModelService& model,
                                                          const RequestPolicy& policy);

}  // namespace hadal::server
