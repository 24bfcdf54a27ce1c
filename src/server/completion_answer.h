#pragma once
// POST /v1/completions: from engine outputs to the answer, streamed or whole.

#include <memory>

#include "server/completion_request.h"
#include "server/http_message.h"
#include "server/metrics.h"
#include "server/model_service.h"

namespace hadal::server {

/// Queues the request's prompts (each n times) with the engine and returns the answer, or the error of the
/// first one that the engine refuses.
Answer answer_completion(std::shared_ptr<const ModelService> model, Metrics& metrics,
                         const RequestPolicy& policy, CompletionRequest request,
                         std::chrono::steady_clock::time_point arrival);

}  // namespace hadal::server
