#pragma once
// The step loop: many requests share one model, one forward pass a step.

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/request.h"
#include "model/language_model.h"

namespace hadal::engine {

struct EngineOptions {
  int64_t max_num_seqs = 64;               ///< requests that run at once; more wait in arrival order
  int64_t max_num_batched_tokens = 512;    ///< tokens of one step, prefill chunks and decode rows together
  int64_t max_model_len = 0;               ///< prompt + output; 0: the model's own limit
  int64_t max_waiting = 4096;              ///< more are refused (kResourceExhausted)
  int32_t eos_token_id = 1;
};

/// Counters since start, for /metrics; a snapshot is consistent in itself.
struct EngineStats {
  int64_t waiting = 0;
  int64_t running = 0;
  uint64_t requests_total = 0;
  uint64_t finished_stop_total = 0;
  uint64_t finished_length_total = 0;
  uint64_t finished_cancelled_total = 0;
  uint64_t finished_error_total = 0;
  uint64_t prompt_tokens_total = 0;
  uint64_t generation_tokens_total = 0;
  uint64_t steps_total = 0;
  double step_seconds_total = 0;
};

/// Cancels its request when asked; may outlive the engine and the request.
class RequestHandle {
 public:
  virtual ~RequestHandle() = default;
  /// The request ends with kCancelled within one step unless it has ended already. Any thread, any time.
  virtual void cancel() = 0;
};

class Engine {
 public:
  /// `model` and `pool` must outlive the engine. Starts the step thread.
  static std::unique_ptr<Engine> start(model::LanguageModel& model, ThreadPool& pool, EngineOptions options);
  virtual ~Engine() = default;  ///< cancels what runs, delivers the final outputs, joins the step thread

  /// Checks the request (kInvalidArgument names the field; a prompt that leaves no room for a token under
  /// max_model_len names both numbers; kResourceExhausted when the queue is full) and queues it. After
  /// success `sink` receives outputs until one with a finish reason.
  virtual Result<std::shared_ptr<RequestHandle>> submit(Request request, OutputSink sink) = 0;

  virtual EngineStats stats() const = 0;
  virtual const EngineOptions& options() const = 0;
};

}  // namespace hadal::engine
