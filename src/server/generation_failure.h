#pragma once
// What an engine output that ended without an answer means to the client.

#include <optional>

#include <fmt/format.h>

#include "engine/request.h"
#include "server/api_errors.h"
#include "server/metrics.h"

namespace hadal::server {

/// How long a request may take, and whether this one took longer and was cancelled for it.
struct TimeLimit {
  double seconds = 0;
  bool is_over = false;
};

/// The error of an output whose finish reason is kError or kCancelled; nothing for other outputs.
inline std::optional<ApiError> generation_failure(const engine::Output& output, const TimeLimit& limit) {
  if (!output.finish || (*output.finish != engine::FinishReason::kError &&
                         *output.finish != engine::FinishReason::kCancelled)) {
    return std::nullopt;
  }
  if (*output.finish == engine::FinishReason::kCancelled) {
    return limit.is_over
               ? ApiError{504, fmt::format("the request took longer than {} seconds", limit.seconds), {}, {}}
               : ApiError{503, "the request was cancelled because the server is shutting down", {}, {}};
  }
  return public_error(output.error.value_or(Error{ErrorCode::kInternal, "no reason given"}));
}

}  // namespace hadal::server
