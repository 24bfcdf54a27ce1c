#include "draft_run.h"

#include <algorithm>
#include <cstring>

namespace hadal::model {

std::vector<DraftBlock> draft_blocks(DraftModel& drafts, const std::vector<DraftSequence>& sequences,
                                     int64_t vocab_size) {
  std::vector<DraftBlock> blocks(sequences.size());
  std::vector<int32_t> previous;
  for (const auto& sequence : sequences) {
    previous.push_back(sequence.token);
  }
  std::vector<float> logits(sequences.size() * static_cast<size_t>(vocab_size));
  std::vector<float> confidences(sequences.size());
  drafts.begin(sequences);
  for (int64_t i = 0; i < drafts.block_length(); ++i) {
    drafts.guess(previous, logits, confidences);
    for (size_t s = 0; s < sequences.size(); ++s) {
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(s) * vocab_size;
      previous[s] = static_cast<int32_t>(std::max_element(begin, begin + vocab_size) - begin);
      blocks[s].tokens.push_back(previous[s]);
      blocks[s].confidences.push_back(confidences[s]);
      blocks[s].logits.insert(blocks[s].logits.end(), begin, begin + vocab_size);
    }
  }
  return blocks;
}

DraftBlock draft_block(DraftModel& drafts, const cache::SequenceState& state, int32_t token,
                       int64_t vocab_size) {
  return draft_blocks(drafts, {{&state, token}}, vocab_size).front();
}

bool same_block(const DraftBlock& want, const DraftBlock& got) {
  const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  };
  return want.tokens == got.tokens && same(want.confidences, got.confidences) &&
         same(want.logits, got.logits);
}

}  // namespace hadal::model
