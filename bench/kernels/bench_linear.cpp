// Claim: products over the checkpoint's own FP4 and FP8 bytes run near the memory's read bandwidth for one
// token, and near the FMA peak for many, at the true layer shapes. Prints each as a share of the limit
// measured in the same run.
//
//   bench_linear [--threads N] [--isa avx2|avx512|scalar] [--quick]

#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "peaks.h"

namespace {

using namespace hadal;
using kernels::WeightFormat;

struct Shape {
  const char* name;
  WeightFormat format;
  int64_t rows;
  int64_t cols;
};

// model.md section 1: expert w1/w3 and w2, wq_b, wo_b, head.
constexpr Shape kShapes[] = {
    {"expert w1, FP4", WeightFormat::kFp4, 2304, 5120},
    {"expert w2, FP4", WeightFormat::kFp4, 5120, 2304},
    {"shared w1, FP8", WeightFormat::kFp8, 2304, 5120},
    {"wq_b, FP8", WeightFormat::kFp8, 32768, 1280},
    {"wo_b, FP8", WeightFormat::kFp8, 5120, 8192},
    {"head (part), BF16", WeightFormat::kBf16, 8192, 5120},
};

int64_t data_bytes(const Shape& shape) {
  const int64_t values = shape.rows * shape.cols;
  switch (shape.format) {
    case WeightFormat::kFp4:
      return values / 2;
    case WeightFormat::kFp8:
      return values;
    case WeightFormat::kBf16:
      return values * 2;
    case WeightFormat::kF32:
      break;
  }
  return values * 4;
}

int64_t scale_bytes(const Shape& shape) {
  switch (shape.format) {
    case WeightFormat::kFp4:
      return shape.rows * shape.cols / 32;
    case WeightFormat::kFp8:
      return (shape.rows + 31) / 32 * (shape.cols / 32);
    default:
      return 0;
  }
}

/// As many copies of one weight as exceed the caches many times over, so that every pass reads memory.
struct Copies {
  std::vector<uint8_t> bytes;
  std::vector<kernels::Weight> weights;
};

Copies make_copies(const Shape& shape, int64_t total_bytes) {
  const int64_t each = data_bytes(shape) + scale_bytes(shape);
  const int64_t count = std::max<int64_t>(1, total_bytes / each);
  Copies copies;
  copies.bytes.resize(static_cast<size_t>(count * each));
  std::mt19937_64 random(1);
  for (size_t i = 0; i + 8 <= copies.bytes.size(); i += 8) {
    const uint64_t word = random() & 0x3737373737373737ULL;  // finite in every format, no subnormal sums
    std::memcpy(copies.bytes.data() + i, &word, 8);
  }
  for (int64_t i = 0; i < count; ++i) {
    uint8_t* data = copies.bytes.data() + i * each;
    std::memset(data + data_bytes(shape), 120, static_cast<size_t>(scale_bytes(shape)));
    copies.weights.push_back({shape.format, data, data + data_bytes(shape), shape.rows, shape.cols, 0});
  }
  return copies;
}

void run(ThreadPool& pool, const kernels::Kernels& k, const Shape& shape, int64_t tokens) {
  const auto copies = make_copies(shape, tokens <= 8 ? int64_t{1} << 29 : 0);
  const auto num_copies = static_cast<int64_t>(copies.weights.size());
  std::vector<float> x(static_cast<size_t>(tokens * shape.cols), 0.01F);
  std::vector<float> y(static_cast<size_t>(tokens * shape.rows));
  const int64_t step = tokens <= 8 ? 128 : 64;
  const int64_t pieces = (shape.rows + step - 1) / step;
  const double seconds = bench::median_seconds(tokens <= 8 ? 7 : 3, [&] {
    pool.parallel_for(pieces * num_copies, [&](int64_t i) {
      const int64_t begin = i % pieces * step;
      k.linear(copies.weights[static_cast<size_t>(i / pieces)], begin, std::min(begin + step, shape.rows),
               x.data(), shape.cols, tokens, y.data(), shape.rows);
    });
  });
  // Limits are taken next to each figure: machines that others share drift.
  const double bandwidth = bench::measure_read_bandwidth(pool);
  const double peak = bench::measure_fma_peak(
      pool, k.name == std::string("avx512") ? kernels::Isa::kAvx512 : kernels::Isa::kAvx2);
  const double bytes = static_cast<double>(copies.bytes.size()) / seconds;
  const double flops = 2.0 * static_cast<double>(num_copies * tokens * shape.rows * shape.cols) / seconds;
  std::printf("%-20s %4ld tokens  %7.2f GB/s (%5.1f %% of read)  %7.1f GFLOP/s (%5.1f %% of FMA peak)\n",
              shape.name, static_cast<long>(tokens), bytes / 1e9, 100 * bytes / bandwidth, flops / 1e9,
              100 * flops / peak);
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 0;
  auto isa = kernels::detect_isa();
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--quick") {
      quick = true;
    } else if (flag == "--threads" && i + 1 < argc) {
      threads = std::atoi(argv[++i]);
    } else if (flag == "--isa" && i + 1 < argc) {
      const std::string name = argv[++i];
      isa = name == "scalar" ? kernels::Isa::kScalar
            : name == "avx2" ? kernels::Isa::kAvx2
                             : kernels::Isa::kAvx512;
    } else {
      std::fprintf(stderr, "usage: bench_linear [--threads N] [--isa scalar|avx2|avx512] [--quick]\n");
      return 2;
    }
  }
  if (!kernels::isa_supported(isa)) {
    std::fprintf(stderr, "this machine lacks the instruction set\n");
    return 1;
  }
  ThreadPool pool(threads);
  std::printf("%d threads, %s\n", pool.num_threads(), kernels::isa_name(isa));
  for (const auto& shape : kShapes) {
    for (const int64_t tokens : {1, 2, 4, 6, 8, 64, 512}) {
      if (!quick || tokens == 1 || tokens == 512) {
        run(pool, kernels::kernels_for(isa), shape, tokens);
      }
    }
  }
  return 0;
}
