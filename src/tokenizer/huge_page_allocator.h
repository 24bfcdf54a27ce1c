#pragma once
// Memory for tables that are read at random: on huge pages where the system has them, so that an access does
// not also have to look for its page.

#include <cstddef>
#include <new>
#include <vector>

#include <sys/mman.h>

namespace hadal::tokenizer {

/// An allocator that aligns large blocks to 2 MiB and asks for huge pages for them.
template <class T>
class HugePageAllocator {
 public:
  using value_type = T;
  HugePageAllocator() = default;
  template <class Other>
  explicit(false) HugePageAllocator(const HugePageAllocator<Other>& /*other*/) {}

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes < kLarge) {
      return static_cast<T*>(::operator new(bytes, std::align_val_t{kSmallAlignment}));
    }
    void* const block = ::operator new(bytes, std::align_val_t{kHugePage});
    // Advice only: without huge pages all works the same, slower.
    (void)::madvise(block, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(block);
  }

  void deallocate(T* block, size_t count) {
    const size_t bytes = count * sizeof(T);
    ::operator delete(block, std::align_val_t{bytes < kLarge ? kSmallAlignment : kHugePage});
  }

  bool operator==(const HugePageAllocator& /*other*/) const { return true; }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;
  static constexpr size_t kLarge = size_t{1} << 20;
  static constexpr size_t kSmallAlignment = 64;
};

template <class T>
using HugePageVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace hadal::tokenizer
