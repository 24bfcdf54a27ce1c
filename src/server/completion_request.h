#pragma once
// POST /v1/completions: reading the request.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "server/api_errors.h"
#include "server/model_service.h"

namespace hadal::server {

template <class T>
using ApiResult = tl::expected<T, ApiError>;

/// A completions request with its prompts as token ids.
struct CompletionRequest {
  struct Prompt {
    std::vector<int32_t> ids;
    std::string text;  ///< what `echo` repeats; filled only if it is asked for
  };
  std::string model;
  std::string label;      ///< for log lines
  engine::Request queue;  ///< tenant, salt, user and priority; the rest is empty
  std::vector<Prompt> prompts;
  int64_t n = 1;  ///< answers for each prompt
  engine::SamplingParams sampling;
  bool has_seed = false;
  std::vector<std::string> stop;
  bool stream = false;
  bool include_usage = false;
  bool echo = false;
  bool skip_special_tokens = true;  ///< leave control tokens out of the text
};

/// Reads and checks a body. Fields that would change the answer but are not supported are refused by name
/// unless the policy says to ignore them; other unknown fields are ignored.
ApiResult<CompletionRequest> read_completion_request(std::string_view body, const ModelService& model,
                                                     const RequestPolicy& policy);

/// The seed of the i-th answer to a prompt: the request's own for the first, so that n does not change it.
uint64_t choice_seed(uint64_t seed, uint64_t index);

/// An error if the name is none that the model serves.
std::optional<ApiError> check_model_name(std::string_view name, const ModelService& model);

}  // namespace hadal::server
