#include "peaks.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include <immintrin.h>

namespace hadal::bench {
namespace {

constexpr int64_t kFmaRounds = 2'000'000;

__attribute__((target("avx512f"))) float fma_loop_avx512() {
  __m512 sums[12];
  for (auto& sum : sums) {
    sum = _mm512_set1_ps(1.0F);
  }
  const __m512 a = _mm512_set1_ps(0.999F);
  for (int64_t i = 0; i < kFmaRounds; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) {
      sum = _mm512_fmadd_ps(sum, a, a);
    }
  }
  for (int i = 1; i < 12; ++i) {
    sums[0] = _mm512_add_ps(sums[0], sums[i]);
  }
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"))) float fma_loop_avx2() {
  __m256 sums[12];
  for (auto& sum : sums) {
    sum = _mm256_set1_ps(1.0F);
  }
  const __m256 a = _mm256_set1_ps(0.999F);
  for (int64_t i = 0; i < kFmaRounds; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) {
      sum = _mm256_fmadd_ps(sum, a, a);
    }
  }
  for (int i = 1; i < 12; ++i) {
    sums[0] = _mm256_add_ps(sums[0], sums[i]);
  }
  return _mm256_cvtss_f32(sums[0]);
}

__attribute__((target("avx2"))) int64_t read_all(const char* data, int64_t bytes) {
  __m256i sums[4] = {};
  for (int64_t i = 0; i < bytes; i += 128) {
    for (int j = 0; j < 4; ++j) {
      sums[j] =
          _mm256_add_epi64(sums[j], _mm256_load_si256(reinterpret_cast<const __m256i*>(data + i + 32 * j)));
    }
  }
  const __m256i sum =
      _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
  return _mm256_extract_epi64(sum, 0) + _mm256_extract_epi64(sum, 1);
}

volatile int64_t sink_integer;
volatile float sink_float;

}  // namespace

double median_seconds(int repeats, FunctionRef<void()> body) {
  body();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
  return seconds[static_cast<size_t>(repeats / 2)];
}

double measure_read_bandwidth(ThreadPool& pool) {
  constexpr int64_t kBytes = int64_t{1} << 28;
  constexpr int64_t kPieces = 64;
  auto* data = static_cast<char*>(std::aligned_alloc(4096, kBytes));
  std::fill_n(data, kBytes, '\1');
  const double seconds = median_seconds(7, [&] {
    pool.parallel_for(kPieces, [&](int64_t i) {
      sink_integer = read_all(data + i * (kBytes / kPieces), kBytes / kPieces);
    });
  });
  std::free(data);
  return static_cast<double>(kBytes) / seconds;
}

double measure_fma_peak(ThreadPool& pool, kernels::Isa isa) {
  const int64_t lanes = isa == kernels::Isa::kAvx512 ? 16 : 8;
  const int threads = pool.num_threads();
  const double seconds = median_seconds(5, [&] {
    pool.parallel_for(threads,
                      [&](int64_t) { sink_float = lanes == 16 ? fma_loop_avx512() : fma_loop_avx2(); });
  });
  return static_cast<double>(2 * 12 * lanes * kFmaRounds * threads) / seconds;
}

}  // namespace hadal::bench
