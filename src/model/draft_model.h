#pragma once
// What the engine needs of a model's draft layers: guesses of the next tokens of many sequences at once.
// Guesses change how fast an answer comes, never what it is.

#include <cstdint>
#include <span>

#include "cache/sequence_state.h"

namespace hadal::model {

/// Where a sequence stands when its next tokens are guessed.
struct DraftSequence {
  const cache::SequenceState* state = nullptr;  ///< of the model that drafts, length at least 1
  int32_t token = 0;  ///< the one at position state->length(): known, but not in the state yet
};

class DraftModel {
 public:
  virtual ~DraftModel() = default;

  /// Guesses of one block.
  virtual int64_t block_length() const = 0;

  /// Runs the draft layers over a block of each sequence, all in one pass; the states are only read. Guesses
  /// of the last block are gone. What a sequence gets depends on its own tokens alone, bit for bit.
  virtual void begin(std::span<const DraftSequence> sequences) = 0;

  /// The next position of every block that begin() started; at most block_length() times. The first call is
  /// about position state->length() + 1.
  /// `previous` [sequences]: the token before it (first the sequence's own, then the guess of the last call).
  /// `logits` [sequences, vocab_size] and `confidences` [sequences] are written; a confidence is the model's
  /// probability, in (0, 1), that its guess is right if those before it are.
  virtual void guess(std::span<const int32_t> previous, std::span<float> logits,
                     std::span<float> confidences) = 0;
};

}  // namespace hadal::model
