#pragma once
// The step loop: many requests share one model, one forward pass a step.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/thread_pool.h"
#include "cache/disk_tier.h"
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
  /// Prompt + output; 0: the model's own limit, which it must not pass. Lowered to what cache_memory holds.
  int64_t max_model_len = 0;
  int64_t max_waiting = 4096;  ///< requests beyond those that run; more are refused (kResourceExhausted)
  int32_t eos_token_id = 1;

  bool prefix_cache = true;  ///< keep states, so that a prompt with a known beginning goes on from there
  /// For the states of running requests and what is kept of others. Requests wait for room, and the youngest
  /// is set back and computed anew when there is none to go on.
  uint64_t cache_memory = std::numeric_limits<uint64_t>::max();
  std::string cache_identity = {};       ///< names model, precision and replay mode; cached states are apart
  std::filesystem::path cache_dir = {};  ///< kept states also go here; empty: they do not
  uint64_t cache_disk = 0;               ///< bytes that they may take there
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
  uint64_t preemptions_total = 0;        ///< requests set back for want of memory; they lose nothing but time

  struct Cache {
    uint64_t used_bytes = 0;   ///< running states and what is kept
    uint64_t limit_bytes = 0;  ///< EngineOptions::cache_memory
    int64_t blocks = 0;        ///< kept in memory
    int64_t snapshots = 0;     ///< kept in memory: places to go on from
    uint64_t lookups_total = 0;
    uint64_t lookup_tokens_total = 0;  ///< prompt tokens of these lookups
    uint64_t hits_total = 0;
    uint64_t hit_tokens_total = 0;
    uint64_t evictions_total = 0;
    uint64_t skipped_total = 0;            ///< snapshots not kept for want of memory
    uint64_t disk_hits_total = 0;          ///< lookups for which segments were read
    std::optional<cache::DiskStats> disk;  ///< if there is a disk tier
  };
  Cache cache;
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
