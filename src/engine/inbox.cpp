#include "engine/inbox.h"

#include <utility>

namespace hadal::engine {

Result<void> Inbox::push(std::unique_ptr<RunningRequest> request) {
  {
    const std::lock_guard lock(mutex_);
    // Counted together, so that a burst is not refused just because the step thread has not admitted its
    // first requests yet.
    if (stats_.waiting + stats_.running >= max_num_seqs_ + max_waiting_) {
      return fail(ErrorCode::kResourceExhausted,
                  "queue full: {} requests waiting and {} running, limits max_waiting {} and max_num_seqs {}",
                  stats_.waiting, stats_.running, max_waiting_, max_num_seqs_);
    }
    ++stats_.waiting;
    ++stats_.requests_total;
    stats_.prompt_tokens_total += static_cast<uint64_t>(request->usage().prompt_tokens);
    requests_.push_back(std::move(request));
  }
  changed_.notify_one();
  return {};
}

void Inbox::push(LoadedSegments loaded) {
  {
    const std::lock_guard lock(mutex_);
    loaded_.push_back(std::move(loaded));
  }
  changed_.notify_one();
}

void Inbox::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
}

EngineStats Inbox::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

Inbox::Arrivals Inbox::take(bool wait) {
  std::unique_lock lock(mutex_);
  if (wait) {
    changed_.wait(lock, [&] { return stopping_ || !requests_.empty() || !loaded_.empty(); });
  }
  return {std::exchange(requests_, {}), std::exchange(loaded_, {}), stopping_};
}

Inbox::Arrivals Inbox::take_until(std::chrono::steady_clock::time_point due) {
  std::unique_lock lock(mutex_);
  const auto is_due = [&] { return stopping_ || woken_ || !requests_.empty(); };
  if (due == std::chrono::steady_clock::time_point::max()) {
    changed_.wait(lock, is_due);  // wait_until() would compute with it
  } else {
    changed_.wait_until(lock, due, is_due);
  }
  woken_ = false;
  return {std::exchange(requests_, {}), std::exchange(loaded_, {}), stopping_};
}

void Inbox::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

void Inbox::record(const StepRecord& record) {
  const auto finished = [&](FinishReason reason) { return record.finished[static_cast<size_t>(reason)]; };
  int64_t ended = 0;
  for (const uint64_t count : record.finished) {
    ended += static_cast<int64_t>(count);
  }
  const std::lock_guard lock(mutex_);
  stats_.waiting += record.preempted - record.admitted - record.ended_while_waiting;
  stats_.running += record.admitted - record.preempted - (ended - record.ended_while_waiting);
  stats_.finished_stop_total += finished(FinishReason::kStop);
  stats_.finished_length_total += finished(FinishReason::kLength);
  stats_.finished_cancelled_total += finished(FinishReason::kCancelled);
  stats_.finished_error_total += finished(FinishReason::kError);
  stats_.generation_tokens_total += record.tokens;
  stats_.steps_total += record.steps;
  stats_.step_seconds_total += record.seconds;
  stats_.preemptions_total += static_cast<uint64_t>(record.preempted);
  stats_.cache = record.cache;
  stats_.drafts += record.drafts;
}

}  // namespace hadal::engine
