#pragma once
// One request through the engine, waited for by the calling thread.

#include <functional>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace hadal::cli {

/// What became of a request.
struct GenerationResult {
  std::vector<int32_t> token_ids;  ///< as the engine gave them, the token that ended the answer included
  engine::Usage usage;
  engine::FinishReason finish = engine::FinishReason::kStop;
};

/// Runs `request` and hands each output to `consume` until it returns false (then the rest is cancelled and
/// finish is kStop) or the request ends. While the prompt is read a bar is shown on a terminal. SIGINT
/// cancels the request: finish is kCancelled.
Result<GenerationResult> run_generation(engine::Engine& engine, engine::Request request,
                                        const std::function<bool(const engine::Output&)>& consume);

/// "stop", "length" or "cancelled".
std::string_view finish_name(engine::FinishReason finish);

/// While it lives SIGINT sets a flag instead of ending the program.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  static bool is_interrupted();
};

}  // namespace hadal::cli
