#pragma once
// Guesses of the next tokens of many requests, made in one pass of the model's draft layers.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/draft_stats.h"
#include "engine/running_request.h"
#include "engine/sampler.h"
#include "model/draft_model.h"

namespace hadal::engine {

class Proposer {
 public:
  /// Both must outlive this object.
  Proposer(model::DraftModel& drafts, BatchSampler& sampler, int64_t vocab_size)
      : drafts_(drafts), sampler_(sampler), vocab_size_(vocab_size) {}

  /// Gives each request up to `room[i]` guesses (at least 1). They are drawn from the draft layers' logits
  /// with the request's own parameters and the noise of their positions, as its tokens are from the target's,
  /// so that they agree as often as they can. Every request's state must hold all of its tokens but the last.
  void propose(std::span<RunningRequest* const> requests, std::span<const int64_t> room, DraftStats& stats);

 private:
  void sample_guesses(std::span<RunningRequest* const> requests, std::span<const int64_t> room, int64_t index,
                      DraftStats& stats);

  model::DraftModel& drafts_;
  BatchSampler& sampler_;
  const int64_t vocab_size_;
  std::vector<model::DraftSequence> sequences_;
  std::vector<int32_t> previous_;  ///< the token before the guess, of each request
  std::vector<float> logits_;      ///< [requests, vocab_size]
  std::vector<float> confidences_;
  std::vector<SampleRow> rows_;
  std::vector<size_t> row_requests_;
  std::vector<Result<OutputToken>> sampled_;
};

}  // namespace hadal::engine
