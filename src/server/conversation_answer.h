#pragma once
// Chat, Messages and Responses: from engine outputs through the recipe's generator to the answer.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "server/conversation_request.h"
#include "server/http_message.h"
#include "server/metrics.h"
#include "server/model_service.h"
#include "server/response_store.h"

namespace hadal::server {

/// Where a finished answer is to be kept. One that the client left or that failed is not.
struct AnswerStorage {
  ResponseStore* store = nullptr;  ///< not owned
  std::string owner;
  std::string previous_id;
};

/// Queues the request with the engine and returns its answer, streamed or whole as it asked.
Answer answer_conversation(std::shared_ptr<const ModelService> model, Metrics& metrics,
                           const RequestPolicy& policy, ConversationRequest request,
                           std::chrono::steady_clock::time_point arrival,
                           std::optional<AnswerStorage> storage = std::nullopt);

}  // namespace hadal::server
