#pragma once
// The border between callers and the step thread: requests go in, statistics come out. Everything that both
// sides touch is here, under one lock; the step thread takes it twice a step and never while it computes.

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/running_request.h"
#include "engine/state_store.h"

namespace hadal::engine {

/// What one turn of the step loop changed.
struct StepRecord {
  int64_t admitted = 0;                ///< from waiting to running
  int64_t preempted = 0;               ///< from running to waiting
  int64_t ended_while_waiting = 0;     ///< of those that ended
  std::array<uint64_t, 4> finished{};  ///< by FinishReason
  uint64_t tokens = 0;
  uint64_t steps = 0;
  double seconds = 0;
  EngineStats::Cache cache = {};  ///< as it is now
  DraftStats drafts;
};

class Inbox {
 public:
  Inbox(int64_t max_num_seqs, int64_t max_waiting) : max_num_seqs_(max_num_seqs), max_waiting_(max_waiting) {}

  /// Any thread. kResourceExhausted when max_num_seqs + max_waiting requests are unfinished.
  Result<void> push(std::unique_ptr<RunningRequest> request);
  void push(LoadedSegments loaded);
  void stop();
  EngineStats stats() const;

  struct Arrivals {
    std::vector<std::unique_ptr<RunningRequest>> requests;  ///< in arrival order
    std::vector<LoadedSegments> loaded;
    bool stopping = false;
  };
  /// Step thread. What has arrived since the last call; with `wait` it sleeps until there is something.
  Arrivals take(bool wait);
  /// The same, but sleeps until there is something, wake() was called, or it is `due`.
  Arrivals take_until(std::chrono::steady_clock::time_point due);
  /// Any thread: the next or present take_until() returns at once.
  void wake();
  void record(const StepRecord& record);

 private:
  const int64_t max_num_seqs_;
  const int64_t max_waiting_;
  mutable std::mutex mutex_;  ///< guards everything below
  std::condition_variable changed_;
  std::vector<std::unique_ptr<RunningRequest>> requests_;
  std::vector<LoadedSegments> loaded_;
  EngineStats stats_;
  bool stopping_ = false;
  bool woken_ = false;  ///< by wake(), not seen yet
};

}  // namespace hadal::engine
