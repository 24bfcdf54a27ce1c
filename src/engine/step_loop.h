#pragma once
// The loop that the step thread runs: take arrivals, drop what was cancelled, admit, plan, compute, sample,
// deliver. Each turn is one forward pass. Nothing here outlives a turn but the queue, the running set and
// memory that is used again.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/draft_policy.h"
#include "engine/engine.h"
#include "engine/inbox.h"
#include "engine/proposer.h"
#include "engine/running_request.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "engine/state_store.h"
#include "model/language_model.h"

namespace hadal::engine {

class StepLoop {
 public:
  /// Everything passed by reference must outlive the loop. `options` are those in force (resolve_options).
  StepLoop(model::LanguageModel& model, ThreadPool& pool, const EngineOptions& options, Inbox& inbox,
           const CancellationCounter& cancellations);

  /// Returns after Inbox::stop(), when every request has got its last output.
  void run();

  /// Brings those numbers up to date that change while the loop sleeps. Any thread.
  void refresh(EngineStats::Cache& stats) const { store_.refresh(stats); }

 private:
  using RequestPointer = std::unique_ptr<RunningRequest>;

  void accept(Inbox::Arrivals& arrivals);
  void step();
  void end_cancelled();
  void admit();
  bool has_ready() const;
  std::optional<size_t> next_to_admit() const;
  void preempt_one();
  std::vector<ScheduledChunk> make_plan();
  void propose();
  std::vector<SequenceProgress> show_progress();
  void compute(const std::vector<ScheduledChunk>& plan);
  void sample(const std::vector<ScheduledChunk>& plan);
  void take_tokens(RunningRequest& request, std::span<Result<OutputToken>> sampled);
  void end(RunningRequest& request, FinishReason reason, std::vector<OutputToken> tokens = {},
           std::optional<Error> error = {});
  void remove_ended();
  void publish();

  model::LanguageModel& model_;
  const EngineOptions& options_;
  Inbox& inbox_;
  const CancellationCounter& cancellations_;
  const StopLimits limits_;
  BatchSampler sampler_;
  uint64_t next_number_ = 0;
  uint64_t admitted_ = 0;             ///< requests, since the start
  std::optional<Proposer> proposer_;  ///< if the model drafts
  DraftPolicy policy_;

  StateStore store_;
  std::deque<RequestPointer> waiting_;   ///< in arrival order
  std::vector<RequestPointer> running_;  ///< in arrival order; each has a state
  uint64_t seen_cancellations_ = 0;

  // One turn's results, kept until publish().
  std::vector<RequestPointer> ended_;
  std::vector<std::pair<RunningRequest*, Output>> outputs_;
  StepRecord record_;
  DraftStats step_drafts_;  ///< of the verification at hand

  std::vector<float> logits_;  ///< one row for each token that is sampled in this step
};

}  // namespace hadal::engine
