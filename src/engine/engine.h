#pragma once
// The step loop: many requests share one model, one forward pass a step.

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/draft_policy.h"
#include "engine/draft_stats.h"
#include "engine/request.h"
#include "model/language_model.h"

namespace hadal::engine {

struct EngineOptions {
  int64_t max_num_seqs = 64;  ///< requests that run at once (prefill included); more wait in arrival order
  /// Tokens of one step, prefill chunks and decode rows together. At least max_num_seqs, so that every
  /// sequence that decodes gets its token in every step.
  int64_t max_num_batched_tokens = 512;
  int64_t max_model_len = 0;   ///< prompt + output; 0: the model's own limit, which it must not pass
  int64_t max_waiting = 4096;  ///< requests beyond those that run; more are refused (kResourceExhausted)
  int32_t eos_token_id = 1;
  /// With a model that drafts: guess while that pays, and verify as many guesses as pay, by their confidences
  /// and the costs of steps; else always all.
  bool schedule_guesses = true;
  /// The costs; if they are not given, they are measured when the engine starts (only if schedule_guesses).
  std::optional<StepCosts> step_costs = std::nullopt;
};

/// Counters since start, for /metrics. A snapshot is consistent in itself: requests_total = waiting + running
/// + the finished ones, and what an output has told its sink is already counted when the sink is called.
struct EngineStats {
  int64_t waiting = 0;
  int64_t running = 0;
  uint64_t requests_total = 0;  ///< accepted
  uint64_t finished_stop_total = 0;
  uint64_t finished_length_total = 0;
  uint64_t finished_cancelled_total = 0;
  uint64_t finished_error_total = 0;
  uint64_t prompt_tokens_total = 0;      ///< of accepted requests: the sum of their Usage::prompt_tokens
  uint64_t generation_tokens_total = 0;  ///< delivered: the sum of Usage::completion_tokens
  uint64_t steps_total = 0;              ///< forward passes
  double step_seconds_total = 0;         ///< spent in them, from planning to the tokens
  DraftStats drafts;
};

/// Cancels its request when asked; may outlive the engine and the request.
class RequestHandle {
 public:
  virtual ~RequestHandle() = default;
  /// The request ends with kCancelled within one step unless it has ended already. Any thread, any time.
  virtual void cancel() = 0;
  /// What usage says of the prompt if that is not its length; only a script does so.
  virtual std::optional<int64_t> counted_prompt_tokens() const { return std::nullopt; }
};

class Engine {
 public:
  /// `model` and `pool` must outlive the engine. Starts the step thread; if the model drafts, measures the
  /// cost of steps before that. kInvalidArgument names the option that is out of range.
  static Result<std::unique_ptr<Engine>> start(model::LanguageModel& model, ThreadPool& pool,
                                               EngineOptions options);
  virtual ~Engine() = default;  ///< cancels what runs, delivers the final outputs, joins the step thread

  /// Checks the request (kInvalidArgument names the field; a prompt that leaves no room for a token under
  /// max_model_len names both numbers; kResourceExhausted when the queue is full) and queues it. After
  /// success `sink` receives outputs until one with a finish reason.
  virtual Result<std::shared_ptr<RequestHandle>> submit(Request request, OutputSink sink) = 0;

  virtual EngineStats stats() const = 0;
  virtual const EngineOptions& options() const = 0;  ///< in force: max_model_len is never 0 here
};

}  // namespace hadal::engine
