#pragma once
// Chat, Messages and Responses: from engine outputs through the recipe's generator to the answer.

#include <chrono>
#include <memory>

#include "server/conversation_request.h"
#include "server/http_message.h"
#include "server/metrics.h"
#include "server/model_service.h"

namespace hadal::server {

/// Queues the request with the engine and returns its answer, streamed or whole as it asked.
Answer answer_conversation(std::shared_ptr<const ModelService> model, Metrics& metrics,
                           const RequestPolicy& policy, ConversationRequest request,
                           std::chrono::steady_clock::time_point arrival);

}  // namespace hadal::server
