#pragma once
// How a cancellation reaches the step thread: a flag per request, and one counter of all cancellations that
// saves the thread from looking at every flag in every step.

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/engine.h"

namespace hadal::engine {

/// Shared by the engine and all its handles, which may outlive it.
using CancellationCounter = std::atomic<uint64_t>;

class Cancellation : public RequestHandle {
 public:
  explicit Cancellation(std::shared_ptr<CancellationCounter> counter) : counter_(std::move(counter)) {}

  void cancel() override {
    // The flag first: a thread that sees the counter move sees the flag too.
    requested_.store(true, std::memory_order_relaxed);
    counter_->fetch_add(1, std::memory_order_release);
  }
  bool requested() const { return requested_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_{false};
  std::shared_ptr<CancellationCounter> counter_;
};

}  // namespace hadal::engine
