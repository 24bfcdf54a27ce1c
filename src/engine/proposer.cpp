#include "engine/proposer.h"

#include <algorithm>
#include <utility>

namespace hadal::engine {

void Proposer::propose(std::span<RunningRequest* const> requests, std::span<const int64_t> room,
                       DraftStats& stats) {
  sequences_.clear();
  previous_.clear();
  for (RunningRequest* request : requests) {
    sequences_.push_back({request->state(), request->last_token()});
    previous_.push_back(request->last_token());
  }
  logits_.resize(std::max(logits_.size(), requests.size() * static_cast<size_t>(vocab_size_)));
  confidences_.resize(requests.size());
  drafts_.begin(sequences_);
  const int64_t longest = *std::max_element(room.begin(), room.end());
  for (int64_t index = 0; index < std::min(longest, drafts_.block_length()); ++index) {
    drafts_.guess(previous_, std::span(logits_).first(requests.size() * static_cast<size_t>(vocab_size_)),
                  confidences_);
    sample_guesses(requests, room, index, stats);
  }
}

/// Draws guess `index` of the requests that have room for it and have all guesses before it.
void Proposer::sample_guesses(std::span<RunningRequest* const> requests, std::span<const int64_t> room,
                              int64_t index, DraftStats& stats) {
  rows_.clear();
  row_requests_.clear();
  for (size_t i = 0; i < requests.size(); ++i) {
    if (index < room[i] && static_cast<int64_t>(requests[i]->guesses().size()) == index) {
      const auto row = std::span<const float>(logits_).subspan(i * static_cast<size_t>(vocab_size_),
                                                               static_cast<size_t>(vocab_size_));
      rows_.push_back({row, &requests[i]->guess_sampling(), requests[i]->next_position() + index});
      row_requests_.push_back(i);
    }
  }
  sampled_.resize(rows_.size());
  sampler_.sample(rows_, sampled_);
  for (size_t row = 0; row < rows_.size(); ++row) {
    const size_t i = row_requests_[row];
    if (!sampled_[row]) {
      continue;  // a bad row of guesses is no fault of the answer: this block ends before it
    }
    previous_[i] = sampled_[row]->token;
    requests[i]->add_guess({sampled_[row]->token, confidences_[i]});
    ++stats.positions[static_cast<size_t>(index)].drafted;
  }
}

}  // namespace hadal::engine
