#pragma once
// Blocks of guesses of single sequences.

#include <cstdint>
#include <vector>

#include "model/draft_model.h"

namespace hadal::model {

struct DraftBlock {
  std::vector<int32_t> tokens;     ///< greedy: the best of each row of logits
  std::vector<float> confidences;  ///< one a guess
  std::vector<float> logits;       ///< [block, vocab]
};

/// The greedy blocks of some sequences, made in one pass.
std::vector<DraftBlock> draft_blocks(DraftModel& drafts, const std::vector<DraftSequence>& sequences,
                                     int64_t vocab_size);
DraftBlock draft_block(DraftModel& drafts, const cache::SequenceState& state, int32_t token,
                       int64_t vocab_size);

bool same_block(const DraftBlock& want, const DraftBlock& got);  ///< bit for bit

}  // namespace hadal::model
