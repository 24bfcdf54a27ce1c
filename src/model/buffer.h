#pragma once
// Scratch memory of the forward pass.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace hadal::model {

/// A cache-line-aligned array that only grows and whose content is undefined after growing. One of these per
/// purpose lives as long as the model, so that a step allocates nothing once sizes have settled.
template <class T>
class Buffer {
 public:
  /// At least `count` elements; returns their start.
  T* reserve(int64_t count) {
    if (count > capacity_) {
      data_.reset(static_cast<T*>(::operator new(static_cast<size_t>(count) * sizeof(T), kAlignment)));
      capacity_ = count;
    }
    return data_.get();
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t capacity() const { return capacity_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(T* p) const { ::operator delete(p, kAlignment); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t capacity_ = 0;
};

}  // namespace hadal::model
