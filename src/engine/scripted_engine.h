#pragma once
// An engine without a model: each request gets the next answer of a script. For tests of clients, and of all
// that lies above the engine. What ends an answer early holds as with a model.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/engine.h"

namespace hadal::engine {

struct ScriptedAnswer {
  std::vector<std::vector<int32_t>> pieces{};  ///< token ids; those of a piece are delivered together
  std::chrono::milliseconds delay{0};          ///< before each piece
  FinishReason finish = FinishReason::kStop;   ///< behind the last piece: kStop or kLength
  std::optional<int64_t> prompt_tokens{};      ///< what usage says in place of the prompt's length
};

/// Requests get the answers in the order in which they are accepted, again from the first after the last. EOS
/// and stop tokens, max_tokens, max_model_len and cancellation end an answer as they do with a model; only
/// behind its own end nothing is delivered in place of the EOS token. Every token has log-probability 0, all
/// others -9999.
class ScriptedEngine {
 public:
  static constexpr int64_t kDefaultMaxModelLen = int64_t{1} << 20;

  /// Starts the step thread. max_model_len 0 is kDefaultMaxModelLen; there are no batches, so
  /// max_num_batched_tokens has no effect. kInvalidArgument names what is out of range.
  static Result<std::unique_ptr<Engine>> start(std::vector<ScriptedAnswer> script, int64_t vocab_size,
                                               EngineOptions options);
};

}  // namespace hadal::engine
