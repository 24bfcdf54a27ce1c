#pragma once
// The compute threads: one pool for the whole process, fork-join over numbered tasks.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/cpu_topology.h"

namespace hadal {

/// A non-owning reference to a callable; what it refers to must outlive the call it is passed to.
template <class Signature>
class FunctionRef;
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& f)  // NOLINT(google-explicit-constructor): meant to be made from a lambda in place
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

/// Runs numbered tasks on a fixed set of threads, of which the caller is one. Tasks are handed out in
/// order but run in any order and on any thread: a task must write only what belongs to its number, so
/// that results never depend on the number of threads.
///
/// Workers spin for a short time after a job and then sleep, so that a busy neighbour costs little. Every
/// thread that runs tasks flushes denormals to zero (inputs and results) while it does: kernels rely on
/// that (docs/numerics.md).
class ThreadPool {
 public:
  /// `num_threads` <= 0 takes every usable CPU. More threads than allowed CPUs are never started. With
  /// `pin`, thread i stays on the i-th allowed CPU, nodes filled one after the other.
  explicit ThreadPool(int num_threads = 0, bool pin = false);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(threads_.size()) + 1; }
  /// The NUMA node of each thread, the caller's (index 0) first.
  const std::vector<int>& thread_nodes() const { return thread_nodes_; }

  /// Calls task(i) for i in [0, num_tasks) and returns when all are done. Calls from several threads take
  /// turns. Tasks must not throw and must not call parallel_for.
  void parallel_for(int64_t num_tasks, FunctionRef<void(int64_t)> task);

  /// Splits [0, count) into ranges of at least `grain` and calls task(begin, end) for each. Where the cuts
  /// fall depends on the thread count, so elements must be independent of each other.
  void parallel_ranges(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> task);

 private:
  void work(int index);
  void run_tasks();

  std::mutex turn_;  ///< held by the caller whose job is running
  // The running job; written under turn_ before generation_ is published.
  const FunctionRef<void(int64_t)>* task_ = nullptr;
  int64_t num_tasks_ = 0;
  alignas(64) std::atomic<int64_t> next_task_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};  ///< futex word that workers wait on
  alignas(64) std::atomic<uint32_t> busy_workers_{0};
  std::atomic<bool> stopping_{false};
  std::vector<int> thread_nodes_;
  std::vector<std::thread> threads_;
};

/// Sets flush-to-zero and denormals-are-zero for the calling thread while it lives.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned saved_;
};

}  // namespace hadal
