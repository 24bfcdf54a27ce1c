// Norms against float64.

#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "test_data.h"

namespace hadal::kernels {
namespace {

class NormTest : public IsaTest {
 protected:
  std::vector<float> norm(const std::vector<float>& x, const std::vector<uint8_t>& weight, float eps) const {
    std::vector<float> y(x.size());
    kernels().rms_norm(x.data(), weight.data(), static_cast<int64_t>(x.size()), eps, y.data());
    return y;
  }
};

INSTANTIATE_TEST_SUITE_P(Isas, NormTest, testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512),
                         isa_test_name);

TEST_P(NormTest, SumOfSquaresIsCloseToFloat64ForAnyLength) {
  Random random(31);
  for (const Spread spread : {Spread::kNormal, Spread::kHeavyTailed, Spread::kZeroBlocks, Spread::kHuge}) {
    for (const int64_t n : {1, 2, 15, 16, 17, 31, 33, 100, 5120, 20480}) {
      const auto x = make_values(random, n, spread);
      double want = 0;
      for (const float value : x) {
        want += static_cast<double>(value) * static_cast<double>(value);
      }
      EXPECT_TRUE(within(want, kernels().sum_of_squares(x.data(), n),
                         (static_cast<double>(n) / 16 + 5) * kUnit * want))
          << spread_name(spread) << ", " << n;
    }
  }
}

TEST_P(NormTest, SumOfSquaresAddsInTheStatedOrder) {
  Random random(32);
  for (const int64_t n : {1, 16, 50, 96}) {
    const auto x = make_values(random, n, Spread::kHeavyTailed);
    std::array<float, 16> lanes{};
    for (int64_t i = 0; i < n; ++i) {
      lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
    }
    for (size_t half = 8; half > 0; half /= 2) {
      for (size_t l = 0; l < half; ++l) {
        lanes[l] += lanes[l + half];
      }
    }
    EXPECT_EQ(kernels().sum_of_squares(x.data(), n), lanes[0]) << n;
  }
}

TEST_P(NormTest, RmsNormIsCloseToFloat64) {
  Random random(33);
  for (const Spread spread : {Spread::kNormal, Spread::kHeavyTailed, Spread::kZeroBlocks, Spread::kHuge}) {
    for (const int64_t n : {16, 32, 96, 1280, 5120}) {
      for (const float eps : {1e-20F, 1e-6F}) {
        const auto x = make_values(random, n, spread);
        const auto weight = make_bf16(random, n);
        const auto y = norm(x, weight, eps);
        double squares = 0;
        for (const float value : x) {
          squares += static_cast<double>(value) * static_cast<double>(value);
        }
        const double factor = 1.0 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(eps));
        for (int64_t i = 0; i < n; ++i) {
          const double want = static_cast<double>(x[i]) * factor * static_cast<double>(bf16_at(weight, i));
          ASSERT_TRUE(within(want, y[i], (static_cast<double>(n) / 32 + 8) * kUnit * std::fabs(want)))
              << spread_name(spread) << ", " << n << ", eps " << eps;
        }
      }
    }
  }
}

TEST_P(NormTest, RmsNormMayWorkInPlace) {
  Random random(34);
  auto x = make_values(random, 96);
  const auto weight = make_bf16(random, 96);
  const auto want = norm(x, weight, 1e-20F);
  kernels().rms_norm(x.data(), weight.data(), 96, 1e-20F, x.data());
  EXPECT_TRUE(same_bits(want, x));
}

TEST_P(NormTest, AllZeroRowsStayZeroUnderTheReleasedEps) {
  Random random(35);
  const auto weight = make_bf16(random, 64);
  // Denormals count as zero.
  for (const float zero : {0.0F, -0.0F, 1e-40F}) {
    for (const float value : norm(std::vector<float>(64, zero), weight, 1e-20F)) {
      EXPECT_EQ(value, 0.0F);
    }
  }
}

TEST_P(NormTest, RowsWhoseSquaresVanishAreScaledByEpsAlone) {
  Random random(36);
  const auto weight = make_bf16(random, 64);
  const auto y = norm(std::vector<float>(64, 1e-25F), weight, 1e-20F);
  for (int64_t i = 0; i < 64; ++i) {
    const double want = 1e-15 * static_cast<double>(bf16_at(weight, i));
    EXPECT_TRUE(within(want, y[i], 8 * kUnit * std::fabs(want)));
  }
}

}  // namespace
}  // namespace hadal::kernels
