#pragma once
// Which tokens of which sequence the next forward pass computes. A pure function of what it is shown: no
// clock, no queue, no state. Because results do not depend on the batch, a plan decides about speed and
// fairness only, never about tokens.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace hadal::engine {

/// Where a running sequence stands.
struct SequenceProgress {
  int64_t prompt_length = 0;
  int64_t num_tokens = 0;    ///< prompt and output so far
  int64_t num_computed = 0;  ///< of these, in the state; fewer than num_tokens
  /// The next pass must not go beyond: a snapshot is wanted while it can still be taken.
  int64_t max_computed = std::numeric_limits<int64_t>::max();
  int64_t num_guesses = 0;  ///< to verify with the last token
};

/// The next `num_tokens` tokens of one sequence, and `num_guesses` guesses after them.
struct ScheduledChunk {
  size_t sequence = 0;  ///< index into what plan_step was shown
  int64_t num_tokens = 0;
  bool wants_logits = false;  ///< it reaches the last known token, so the next one can be sampled
  int64_t num_guesses = 0;    ///< only with wants_logits

  /// Rows of logits: the last num_sampled() of the chunk's rows.
  size_t num_sampled() const { return wants_logits ? 1 + static_cast<size_t>(num_guesses) : 0; }
  bool operator==(const ScheduledChunk&) const = default;
};

/// One pass over `running` (in arrival order) of at most `max_tokens` tokens. First every sequence whose
/// prompt is done gets the tokens after it (in plain decoding: one) and its guesses, so that no prompt,
/// however long, delays them; then the prompts get what is left of the budget, in arrival order, the last of
/// them perhaps only a part. If running.size() and all guesses together are at most max_tokens, every
/// decoding sequence and the oldest prompt move on in every step.
std::vector<ScheduledChunk> plan_step(std::span<const SequenceProgress> running, int64_t max_tokens);

}  // namespace hadal::engine
