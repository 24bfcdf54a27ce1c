#pragma once
// Inputs for kernel tests, ways to compare results, and the fixtures that set the state kernels rely on.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "kernels/kernels.h"

namespace hadal::kernels {

/// The rounding unit of float32: the largest relative error of one operation.
inline constexpr double kUnit = 0x1p-24;

/// The same numbers on every run and with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  double uniform();              ///< in [0, 1)
  float normal();                ///< mean 0, deviation 1
  int64_t below(int64_t bound);  ///< in [0, bound)
  std::vector<uint8_t> bytes(int64_t n);

 private:
  uint64_t state_;
};

/// How the values of an input are spread.
enum class Spread {
  kNormal,
  kHeavyTailed,  ///< one value in 20 is an outlier, a thousand times the others
  kZeroBlocks,   ///< whole blocks of 32 are +0 or -0
  kTiny,         ///< around 1e-19 and down to denormals: squares and products flush to zero
  kHuge,         ///< around 1e15
};
inline constexpr Spread kAllSpreads[] = {Spread::kNormal, Spread::kHeavyTailed, Spread::kZeroBlocks,
                                         Spread::kTiny, Spread::kHuge};
const char* spread_name(Spread spread);
std::vector<float> make_values(Random& random, int64_t n, Spread spread = Spread::kNormal);

/// bfloat16 values near 1, as norm weights are.
std::vector<uint8_t> make_bf16(Random& random, int64_t n);
float bf16_at(const std::vector<uint8_t>& bytes, int64_t index);

/// Whether both hold the same float bits; the message names the first difference. Any NaN equals any NaN.
testing::AssertionResult same_bits(std::span<const float> want, std::span<const float> got);

/// Whether |got - want| <= bound.
testing::AssertionResult within(double want, double got, double bound);

/// What flush-to-zero makes of a float32 result: denormals become zero of their sign.
float flushed(double exact);

/// Denormals are flushed, as the contract of kernels asks of callers.
class KernelTest : public testing::Test {
 private:
  FlushDenormals guard_;
};

/// Runs for every instruction set; those that this machine lacks are skipped.
class IsaTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!isa_supported(GetParam())) {
      GTEST_SKIP() << "this CPU has no " << isa_name(GetParam());
    }
  }
  const Kernels& kernels() const { return kernels_for(GetParam()); }
  const Kernels& scalar() const { return kernels_for(Isa::kScalar); }

 private:
  FlushDenormals guard_;
};

inline std::string isa_test_name(const testing::TestParamInfo<Isa>& info) {
  return isa_name(info.param);
}

}  // namespace hadal::kernels
