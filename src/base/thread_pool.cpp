#include "base/thread_pool.h"

#include <algorithm>

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

namespace hadal {
namespace {

// About 20 microseconds: longer than the gap between two kernels of a decode step, shorter than what a
// neighbour on the same core would notice.
constexpr int kSpinRounds = 400;

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  // A refusal (a CPU taken offline meanwhile) costs speed, not correctness.
  (void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

}  // namespace

FlushDenormals::FlushDenormals() : saved_(_mm_getcsr()) {
  constexpr unsigned kFlushToZero = 0x8000;
  constexpr unsigned kDenormalsAreZero = 0x0040;
  _mm_setcsr(saved_ | kFlushToZero | kDenormalsAreZero);
}

FlushDenormals::~FlushDenormals() {
  _mm_setcsr(saved_);
}

ThreadPool::ThreadPool(int num_threads, bool pin) {
  const CpuTopology topology = read_cpu_topology();
  const int wanted = num_threads <= 0 ? topology.usable_threads : num_threads;
  const int count = std::clamp(wanted, 1, static_cast<int>(topology.cpus.size()));
  for (int i = 0; i < count; ++i) {
    thread_nodes_.push_back(topology.cpus[i].numa_node);
  }
  for (int i = 1; i < count; ++i) {
    threads_.emplace_back([this, i, cpu = pin ? topology.cpus[i].id : -1] {
      pthread_setname_np(pthread_self(), ("compute-" + std::to_string(i)).c_str());
      if (cpu >= 0) {
        pin_to(cpu);
      }
      work(i);
    });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (auto& thread : threads_) {
    thread.join();
  }
}

void ThreadPool::run_tasks() {
  for (int64_t i = next_task_.fetch_add(1, std::memory_order_relaxed); i < num_tasks_;
       i = next_task_.fetch_add(1, std::memory_order_relaxed)) {
    (*task_)(i);
  }
}

void ThreadPool::work(int /*index*/) {
  const FlushDenormals guard;
  uint32_t seen = 0;
  while (true) {
    for (int round = 0; round < kSpinRounds && generation_.load(std::memory_order_acquire) == seen; ++round) {
      _mm_pause();
    }
    generation_.wait(seen, std::memory_order_acquire);
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_acquire)) {
      return;
    }
    run_tasks();
    if (busy_workers_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      busy_workers_.notify_one();
    }
  }
}

void ThreadPool::parallel_for(int64_t num_tasks, FunctionRef<void(int64_t)> task) {
  if (num_tasks <= 0) {
    return;
  }
  const FlushDenormals guard;
  if (threads_.empty() || num_tasks == 1) {
    for (int64_t i = 0; i < num_tasks; ++i) {
      task(i);
    }
    return;
  }
  const std::lock_guard lock(turn_);
  task_ = &task;
  num_tasks_ = num_tasks;
  next_task_.store(0, std::memory_order_relaxed);
  busy_workers_.store(static_cast<uint32_t>(threads_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  run_tasks();
  for (int round = 0; round < kSpinRounds && busy_workers_.load(std::memory_order_acquire) != 0; ++round) {
    _mm_pause();
  }
  for (uint32_t busy = busy_workers_.load(std::memory_order_acquire); busy != 0;
       busy = busy_workers_.load(std::memory_order_acquire)) {
    busy_workers_.wait(busy, std::memory_order_acquire);
  }
}

void ThreadPool::parallel_ranges(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> task) {
  if (count <= 0) {
    return;
  }
  // Four pieces a thread even out unequal speeds without cutting below the grain.
  const int64_t pieces =
      std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, static_cast<int64_t>(num_threads()) * 4);
  parallel_for(pieces, [&](int64_t i) { task(count * i / pieces, count * (i + 1) / pieces); });
}

}  // namespace hadal
