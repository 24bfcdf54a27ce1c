#pragma once
// What is refused before it touches a queue.

#include "base/result.h"
#include "engine/engine.h"
#include "engine/request.h"
#include "model/language_model.h"

namespace hadal::engine {

struct RequestLimits {
  int64_t vocab_size = 0;
  int64_t max_model_len = 0;
  int32_t eos_token_id = 1;
};

/// kInvalidArgument names the field, what was found and what was expected. Linear in the request's size.
Result<void> validate_request(const Request& request, const RequestLimits& limits);

/// The options in force for this model (max_model_len resolved), or the first one that is out of range.
Result<EngineOptions> resolve_options(EngineOptions options, const model::LanguageModel& model);

}  // namespace hadal::engine
