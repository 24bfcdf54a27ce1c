#include "engine/scheduler.h"

#include <algorithm>

namespace hadal::engine {

std::vector<ScheduledChunk> plan_step(std::span<const SequenceProgress> running, int64_t max_tokens) {
  std::vector<ScheduledChunk> plan;
  int64_t budget = max_tokens;
  const auto schedule = [&](bool prompts) {
    for (size_t i = 0; i < running.size() && budget > 0; ++i) {
      const SequenceProgress& sequence = running[i];
      if ((sequence.num_computed < sequence.prompt_length) != prompts) {
        continue;
      }
      const int64_t missing = sequence.num_tokens - sequence.num_computed;
      const int64_t chunk = std::min({missing, budget, sequence.max_computed - sequence.num_computed});
      const bool wants_logits = chunk == missing;
      const int64_t guesses = wants_logits ? std::min({sequence.num_guesses, budget - chunk,
                                                       sequence.max_computed - sequence.num_computed - chunk})
                                           : 0;
      plan.push_back({i, chunk, wants_logits, guesses});
      budget -= chunk + guesses;
    }
  };
  schedule(false);
  schedule(true);
  return plan;
}

}  // namespace hadal::engine
