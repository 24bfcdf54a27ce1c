#pragma once
// How much memory the states of sequences take, counted to the byte.

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace hadal::cache {

/// A limit and what is used of it. It refuses nothing: who allocates asks free() before. Any thread.
class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t limit = std::numeric_limits<uint64_t>::max()) : limit_(limit) {}

  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t free() const {
    const uint64_t taken = used();
    return taken < limit_ ? limit_ - taken : 0;
  }

 private:
  friend class Charge;
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

/// Bytes that count against a budget as long as this object lives. The budget is shared, since blocks may
/// outlive whoever made it (the disk tier still writes them).
class Charge {
 public:
  Charge() = default;
  Charge(std::shared_ptr<MemoryBudget> budget, uint64_t bytes) : budget_(std::move(budget)), bytes_(bytes) {
    if (budget_) {
      budget_->used_.fetch_add(bytes_, std::memory_order_relaxed);
    }
  }
  Charge(Charge&& other) noexcept
      : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Charge& operator=(Charge&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge() {
    if (budget_) {
      budget_->used_.fetch_sub(bytes_, std::memory_order_relaxed);
    }
  }

 private:
  std::shared_ptr<MemoryBudget> budget_;
  uint64_t bytes_ = 0;
};

}  // namespace hadal::cache
