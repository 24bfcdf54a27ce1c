#pragma once
// The kernels applied to rows of a batch, spread over the compute threads. How work is cut never changes a
// result: every output element is one kernel call's own business.

#include <cmath>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/buffer.h"
#include "model/precision.h"
#include "model/weights.h"

namespace hadal::model {

/// Whether a linear layer's output is a border between operations (rounded in the qat regime) or goes on in
/// float32.
enum class OutputKind { kBorder, kWide };

/// Rows of a linear input, rounded and reordered for the kernels; valid until the next pack() of its owner.
struct PackedRows {
  const float* data = nullptr;
  int64_t stride = 0;
};

class Operators {
 public:
  Operators(const kernels::Kernels& kernels, ThreadPool& pool, Precision precision)
      : kernels_(kernels), pool_(pool), precision_(precision) {}

  const kernels::Kernels& kernels() const { return kernels_; }
  ThreadPool& pool() const { return pool_; }
  const Precision& precision() const { return precision_; }

  /// x [rows, cols] with row stride x_stride, ready for weights of `format`, in `buffer`.
  PackedRows pack(Buffer<float>& buffer, const float* x, int64_t x_stride, int64_t rows, int64_t cols,
                  kernels::InputRounding rounding) const {
    float* packed = buffer.reserve(rows * cols);
    each_row(rows, cols, [&](int64_t begin, int64_t end) {
      kernels_.pack_input(x + begin * x_stride, x_stride, end - begin, cols, rounding, packed + begin * cols);
    });
    return {packed, cols};
  }

  /// y [rows, w.rows] = packed rows times w, row stride y_stride.
  void linear_packed(const kernels::Weight& w, PackedRows x, int64_t rows, float* y, int64_t y_stride,
                     OutputKind kind = OutputKind::kBorder) const {
    const bool round = kind == OutputKind::kBorder && precision_.rounds_between();
    // Below this many products a hand-over to other threads costs more than it saves.
    constexpr int64_t kWorthSharing = 1 << 15;
    const int64_t row_work = w.cols * rows;
    const int64_t grain = std::max<int64_t>(4, kWorthSharing / std::max<int64_t>(row_work, 1));
    pool_.parallel_ranges((w.rows + 3) / 4, (grain + 3) / 4, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * 4;
      const int64_t last = std::min(end * 4, w.rows);
      kernels_.linear(w, first, last, x.data, x.stride, rows, y, y_stride);
      if (round) {
        for (int64_t t = 0; t < rows; ++t) {
          kernels_.round_bf16(y + t * y_stride + first, last - first);
        }
      }
    });
  }

  /// Packs and multiplies; y is [rows, w.rows] without gaps.
  void linear(const kernels::Weight& w, const float* x, int64_t rows, float* y,
              OutputKind kind = OutputKind::kBorder) {
    const auto packed = pack(packed_, x, w.cols, rows, w.cols, precision_.input_rounding(w.format));
    linear_packed(w, packed, rows, y, w.rows, kind);
  }

  /// y [rows, n] = rms norm of x; x and y may be the same.
  void norm(const float* x, const Bf16Vector& weight, int64_t rows, float eps, float* y) const {
    const int64_t n = weight.size;
    each_row(rows, n, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        kernels_.rms_norm(x + t * n, weight.data, n, eps, y + t * n);
        border(y + t * n, n);
      }
    });
  }

  /// Rounds to bfloat16 where the regime has a border between operations.
  void border(float* x, int64_t n) const {
    if (precision_.rounds_between()) {
      kernels_.round_bf16(x, n);
    }
  }

  /// body(begin, end) over rows whose work is about `cost` operations each.
  template <class Body>
  void each_row(int64_t rows, int64_t cost, Body&& body) const {
    constexpr int64_t kWorthSharing = 1 << 14;
    pool_.parallel_ranges(rows, std::max<int64_t>(1, kWorthSharing / std::max<int64_t>(cost, 1)),
                          std::forward<Body>(body));
  }

 private:
  const kernels::Kernels& kernels_;
  ThreadPool& pool_;
  Precision precision_;
  Buffer<float> packed_;
};

}  // namespace hadal::model
