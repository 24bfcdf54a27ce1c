// Hyper-connection mixes, activations, rotations and pooling against float64.

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "test_data.h"

namespace hadal::kernels {
namespace {

using Elementwise = IsaTest;

INSTANTIATE_TEST_SUITE_P(Isas, Elementwise, testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512),
                         isa_test_name);

TEST_P(Elementwise, CollapseIsCloseToFloat64) {
  Random random(41);
  for (const int64_t streams : {1, 2, 4, 8}) {
    for (const int64_t n : {1, 17, 64, 100}) {
      const auto trunk = make_values(random, streams * n, Spread::kHeavyTailed);
      const auto pre = make_values(random, streams);
      std::vector<float> y(static_cast<size_t>(n + 1), 9.0F);
      kernels().hc_collapse(trunk.data(), pre.data(), streams, n, y.data());
      for (int64_t i = 0; i < n; ++i) {
        double want = 0;
        double magnitude = 0;
        for (int64_t j = 0; j < streams; ++j) {
          const double product = static_cast<double>(pre[j]) * static_cast<double>(trunk[j * n + i]);
          want += product;
          magnitude += std::fabs(product);
        }
        EXPECT_TRUE(within(want, y[i], static_cast<double>(streams) * kUnit * magnitude));
      }
      EXPECT_EQ(y[n], 9.0F);
    }
  }
}

TEST_P(Elementwise, ExpandIsCloseToFloat64AndReadsTheOldStreams) {
  Random random(42);
  for (const int64_t streams : {1, 3, 4, 8}) {
    for (const int64_t n : {1, 17, 64, 100}) {
      const auto old = make_values(random, streams * n, Spread::kHeavyTailed);
      const auto y = make_values(random, n);
      const auto post = make_values(random, streams);
      const auto comb = make_values(random, streams * streams);
      auto trunk = old;
      trunk.push_back(9.0F);
      kernels().hc_expand(y.data(), post.data(), comb.data(), streams, n, trunk.data());
      for (int64_t k = 0; k < streams; ++k) {
        for (int64_t i = 0; i < n; ++i) {
          double want = static_cast<double>(post[k]) * static_cast<double>(y[i]);
          double magnitude = std::fabs(want);
          for (int64_t j = 0; j < streams; ++j) {
            const double product =
                static_cast<double>(comb[j * streams + k]) * static_cast<double>(old[j * n + i]);
            want += product;
            magnitude += std::fabs(product);
          }
          EXPECT_TRUE(within(want, trunk[k * n + i], static_cast<double>(streams + 1) * kUnit * magnitude));
        }
      }
      EXPECT_EQ(trunk.back(), 9.0F);
    }
  }
}

double swiglu_reference(double gate, double up, double limit, double weight) {
  if (limit > 0) {
    gate = std::min(gate, limit);
    up = std::clamp(up, -limit, limit);
  }
  return gate / (1.0 + std::exp(-gate)) * up * weight;
}

TEST_P(Elementwise, SwigluIsCloseToFloat64) {
  Random random(43);
  for (const float limit : {0.0F, 10.0F}) {
    std::vector<float> gate;
    std::vector<float> up;
    for (int i = -8700; i <= 3000; ++i) {
      gate.push_back(static_cast<float>(i) * 0.01F);
      up.push_back(random.normal() * (i % 50 == 0 ? 100.0F : 1.0F));
    }
    const auto n = static_cast<int64_t>(gate.size());
    std::vector<float> act(gate.size());
    kernels().swiglu(gate.data(), up.data(), n, limit, 0.71F, act.data());
    for (size_t i = 0; i < gate.size(); ++i) {
      const double want = swiglu_reference(static_cast<double>(gate[i]), static_cast<double>(up[i]),
                                           static_cast<double>(limit), static_cast<double>(0.71F));
      // The smallest results are flushed to zero.
      ASSERT_TRUE(within(want, act[i], 8 * kUnit * std::fabs(want) + 0x1p-125))
          << gate[i] << ", limit " << limit;
    }
  }
}

TEST_P(Elementwise, SwigluClampsGateFromAboveAndUpOnBothSides) {
  const std::vector<float> gate{50.0F, 10.0F, -50.0F, 3.0F, 3.0F, 1e30F};
  const std::vector<float> up{2.0F, 2.0F, 2.0F, 1000.0F, -1000.0F, -1e30F};
  std::vector<float> act(gate.size());
  kernels().swiglu(gate.data(), up.data(), 6, 10.0F, 1.0F, act.data());
  EXPECT_EQ(act[0], act[1]);  // a gate of 50 counts as 10
  EXPECT_TRUE(within(20.0 / (1.0 + std::exp(-10.0)), act[1], 1e-5));
  EXPECT_TRUE(within(-100.0 / (1.0 + std::exp(50.0)), act[2], 1e-25));  // and -50 stays -50
  EXPECT_TRUE(within(30.0 / (1.0 + std::exp(-3.0)), act[3], 1e-5));
  EXPECT_EQ(act[4], -act[3]);
  EXPECT_TRUE(within(-100.0 / (1.0 + std::exp(-10.0)), act[5], 1e-4));
}

TEST_P(Elementwise, SwigluFarOutsideTheRangeOfExpHasNoNan) {
  const std::vector<float> gate{-1e30F, -1000.0F, -88.5F, 0.0F, -0.0F, 1000.0F, 1e30F};
  std::vector<float> act(gate.size());
  const std::vector<float> ones(gate.size(), 1.0F);
  kernels().swiglu(gate.data(), ones.data(), 7, 0.0F, 1.0F, act.data());
  EXPECT_TRUE(within(0, act[0], 1e-7));
  EXPECT_TRUE(within(0, act[1], 1e-34));
  EXPECT_TRUE(within(0, act[2], 1e-36));
  EXPECT_EQ(act[3], 0.0F);
  EXPECT_EQ(act[4], 0.0F);
  EXPECT_EQ(act[5], 1000.0F);
  EXPECT_EQ(act[6], 1e30F);
}

TEST_P(Elementwise, AddIsOneRoundedAddition) {
  Random random(44);
  for (const int64_t n : {1, 16, 45}) {
    const auto x = make_values(random, n, Spread::kHeavyTailed);
    auto y = make_values(random, n + 1);
    auto want = y;
    for (int64_t i = 0; i < n; ++i) {
      want[i] = y[i] + x[i];
    }
    kernels().add(x.data(), n, y.data());
    EXPECT_TRUE(same_bits(want, y));
  }
}

TEST_P(Elementwise, RoundsToTheNearestBfloat16WithTiesToEven) {
  Random random(45);
  std::vector<float> values{0.0F, -0.0F, std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max()};
  for (int i = 0; i < 20000; ++i) {
    const auto upper = static_cast<uint32_t>(random.below(1 << 16)) << 16;
    const uint32_t lower[] = {0, 0x7fff, 0x8000, 0x8001, static_cast<uint32_t>(random.below(1 << 16))};
    const auto value = std::bit_cast<float>(upper | lower[i % 5]);
    if (std::isnormal(value)) {
      values.push_back(value);
    }
  }
  auto rounded = values;
  kernels().round_bf16(rounded.data(), static_cast<int64_t>(rounded.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(values[i]);
    const uint32_t below = bits & 0xffff0000U;
    const uint32_t rest = bits & 0xffffU;
    const bool up = rest > 0x8000U || (rest == 0x8000U && (below & 0x10000U) != 0);
    ASSERT_EQ(std::bit_cast<uint32_t>(rounded[i]), below + (up ? 0x10000U : 0U)) << values[i];
  }
}

TEST_P(Elementwise, RopeRotatesPairsOfTheLastChannelsAsStated) {
  Random random(46);
  for (const int64_t half : {1, 8, 16, 32}) {
    const int64_t n = 2 * half + 24;
    const auto x = make_values(random, n, Spread::kHeavyTailed);
    std::vector<float> cosines;
    std::vector<float> sines;
    for (int64_t i = 0; i < half; ++i) {
      const double angle = random.uniform() * 6.3;
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
    for (const bool inverse : {false, true}) {
      auto want = x;
      for (int64_t i = 0; i < half; ++i) {
        const float a = x[24 + 2 * i];
        const float b = x[25 + 2 * i];
        const float s = inverse ? -sines[i] : sines[i];
        want[24 + 2 * i] = std::fma(a, cosines[i], -(b * s));
        want[25 + 2 * i] = std::fma(a, s, b * cosines[i]);
      }
      auto got = x;
      kernels().rope(got.data(), n, cosines.data(), sines.data(), half, inverse);
      EXPECT_TRUE(same_bits(want, got));
    }
  }
}

TEST_P(Elementwise, PoolGroupIsASoftmaxPerChannel) {
  Random random(47);
  for (const int64_t ratio : {1, 2, 4}) {
    for (const float spread_of_gates : {0.0F, 1.0F, 30.0F, 1e6F}) {
      const int64_t n = 80;
      const auto values = make_values(random, ratio * n, Spread::kHeavyTailed);
      auto gates = make_values(random, ratio * n);
      std::vector<const float*> value_rows;
      std::vector<const float*> gate_rows;
      for (int64_t j = 0; j < ratio; ++j) {
        value_rows.push_back(values.data() + j * n);
        gate_rows.push_back(gates.data() + j * n);
      }
      for (float& gate : gates) {
        gate *= spread_of_gates;
      }
      std::vector<float> latent(static_cast<size_t>(n));
      kernels().pool_group(value_rows.data(), gate_rows.data(), ratio, n, latent.data());
      for (int64_t c = 0; c < n; ++c) {
        double highest = -1e300;
        for (int64_t j = 0; j < ratio; ++j) {
          highest = std::max(highest, static_cast<double>(gates[j * n + c]));
        }
        double total = 0;
        double sum = 0;
        double magnitude = 0;
        for (int64_t j = 0; j < ratio; ++j) {
          const double e = std::exp(static_cast<double>(gates[j * n + c]) - highest);
          total += e;
          sum += e * static_cast<double>(values[j * n + c]);
          magnitude += e * std::fabs(static_cast<double>(values[j * n + c]));
        }
        // The difference of two gates of size 30 is off by up to one rounding of 60.
        EXPECT_TRUE(within(sum / total, latent[c], 80 * kUnit * magnitude / total + 1e-30))
            << spread_of_gates;
      }
    }
  }
}

TEST_P(Elementwise, EngramMixIsCloseToFloat64) {
  Random random(48);
  for (const Spread spread : {Spread::kNormal, Spread::kHeavyTailed, Spread::kZeroBlocks}) {
    for (const int64_t n : {16, 64, 1024}) {
      const int64_t streams = 3;
      auto key = make_values(random, streams * n, spread);
      const auto value = make_values(random, n, spread);
      auto trunk = make_values(random, streams * n, spread);
      std::fill_n(trunk.begin() + n, n,
                  0.0F);  // a stream and a key of zeros: the gate is that of a dot product 0
      std::fill_n(key.begin() + n, n, 0.0F);
      const auto q_weight = make_bf16(random, streams * n);
      const auto k_weight = make_bf16(random, streams * n);
      auto got = trunk;
      kernels().engram_mix(key.data(), value.data(), q_weight.data(), k_weight.data(), streams, n, 1e-20F,
                           got.data());
      for (int64_t j = 0; j < streams; ++j) {
        double dot = 0;
        double magnitude = 0;
        double stream_squares = 0;
        double key_squares = 0;
        for (int64_t i = j * n; i < (j + 1) * n; ++i) {
          const auto s = static_cast<double>(trunk[i]);
          const auto k = static_cast<double>(key[i]);
          const double product =
              s * k * static_cast<double>(bf16_at(q_weight, i)) * static_cast<double>(bf16_at(k_weight, i));
          dot += product;
          magnitude += std::fabs(product);
          stream_squares += s * s;
          key_squares += k * k;
        }
        const auto count = static_cast<double>(n);
        const double norms = std::sqrt(stream_squares / count + 1e-20) *
                             std::sqrt(key_squares / count + 1e-20) * std::sqrt(count);
        dot /= norms;
        const double z = std::copysign(std::sqrt(std::max(std::fabs(dot), 1e-6)), dot);
        const double gate = 1.0 / (1.0 + std::exp(-z));
        // An error of the dot product counts by 1 / (2 |z|) in z, and a quarter of that in the gate.
        const double dot_error = (count / 16 + 10) * kUnit * magnitude / norms;
        const double gate_error = dot_error / (8 * std::fabs(z)) + 8 * kUnit;
        for (int64_t i = 0; i < n; ++i) {
          const double added = gate * static_cast<double>(value[i]);
          const double want = static_cast<double>(trunk[j * n + i]) + added;
          EXPECT_TRUE(
              within(want, got[j * n + i],
                     gate_error * std::fabs(static_cast<double>(value[i])) + 2 * kUnit * std::fabs(want)))
              << spread_name(spread) << ", " << n << ", stream " << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hadal::kernels
