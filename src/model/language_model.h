#pragma once
// What the engine needs of a model: states, and one forward pass over segments of any mix of prefill
// chunks, decode steps and draft verifications. model::Model is the real one; tests may use a small fake.

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "cache/sequence_state.h"
#include "model/draft_model.h"

namespace hadal::model {

/// Some consecutive tokens of one sequence. `forward` computes positions state->length() onward and
/// advances the state by token_ids.size().
struct Segment {
  cache::SequenceState* state = nullptr;
  std::span<const int32_t> token_ids;  ///< at least one; each in [0, vocab_size)
  /// Where logits go, row-major [num_logits, vocab_size] float32: those of the segment's last `num_logits`
  /// positions, in order. Empty if none are wanted.
  std::span<float> logits;
};

class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  virtual int64_t vocab_size() const = 0;
  virtual int64_t max_positions() const = 0;  ///< positions are in [0, max_positions)

  /// A state of length 0 for a request whose prompt has `prompt_length` tokens (bounded replay depends on
  /// it).
  virtual std::unique_ptr<cache::SequenceState> new_state(int64_t prompt_length) const = 0;

  /// The replay_from() of such a state.
  virtual int64_t replay_from(int64_t prompt_length) const {
    (void)prompt_length;
    return 0;
  }

  /// Runs all segments in one pass over the weights. Segments must have distinct states. The result for a
  /// segment depends on its own tokens and state only, bit for bit. Errors (kIo: a weight or Engram row
  /// could not be read) leave the states of this call unusable.
  virtual Result<void> forward(std::span<const Segment> segments) = 0;

  /// The draft layers, owned by the model; null if it has none or does not use them. To be used by the thread
  /// that calls forward, between its calls.
  virtual DraftModel* draft_model() { return nullptr; }

  /// Tokens that a state can take back after a forward pass; at least the draft model's block length.
  virtual int64_t max_rollback() const { return 0; }
};

}  // namespace hadal::model
