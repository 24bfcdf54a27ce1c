#pragma once
// What answers are made from, once a model is loaded.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "server/metrics.h"
#include "tokenizer/tokenizer.h"

namespace hadal::server {

struct ModelService {
  engine::Engine* engine = nullptr;  ///< not owned
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::vector<std::string> names;  ///< what requests may call the model; the first is shown in answers
  int64_t created_unix_seconds = 0;
  int64_t vocab_size = 0;  ///< of the model: ids from clients must be below it
  int64_t context_limit = 0;
  int32_t eos_token_id = 1;
  std::optional<int32_t> bos_token_id;  ///< set if plain text gets BOS in front
  /// Ids that clients may not send, because they stand for something that is not text (images).
  std::vector<int32_t> reserved_token_ids;
  std::string fingerprint;  ///< system_fingerprint of OpenAI answers
  /// Answers come from a script: what constrains the output is accepted, and it is the script that obeys it.
  bool is_scripted = false;
};

/// Limits and choices that the request handlers obey.
struct RequestPolicy {
  bool default_thinking = true;
  bool ignore_unsupported = false;
  int64_t max_choices = 128;
  uint64_t max_stream_buffer_bytes = 4 << 20;
  int64_t max_chain_responses = 1000;     ///< that previous_response_id leads through
  uint64_t max_chain_bytes = 64 << 20;    ///< of their texts
  double request_timeout_seconds = 3600;  ///< for the error text only; the HTTP server keeps the time
};

}  // namespace hadal::server
