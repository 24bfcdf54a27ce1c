#include <bit>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "kernels/quantize.h"
#include "test_data.h"

namespace hadal::kernels {
namespace {

using PackInput = IsaTest;

INSTANTIATE_TEST_SUITE_P(Isas, PackInput, testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512),
                         isa_test_name);

/// Evens of each 32 first, then odds.
std::vector<float> reorder(const std::vector<float>& x) {
  std::vector<float> out;
  for (size_t group = 0; group < x.size(); group += 32) {
    for (size_t odd = 0; odd < 2; ++odd) {
      for (size_t i = 0; i < 16; ++i) {
        out.push_back(x[group + 2 * i + odd]);
      }
    }
  }
  return out;
}

TEST_P(PackInput, ReordersWithoutChangingValues) {
  Random random(71);
  const auto x = make_values(random, 160, Spread::kHeavyTailed);
  std::vector<float> packed(160);
  kernels().pack_input(x.data(), 160, 1, 160, InputRounding::kNone, packed.data());
  EXPECT_TRUE(same_bits(reorder(x), packed));
}

TEST_P(PackInput, RoundsToBfloat16) {
  Random random(72);
  const auto x = make_values(random, 96, Spread::kHeavyTailed);
  auto rounded = x;
  kernels().round_bf16(rounded.data(), 96);
  std::vector<float> packed(96);
  kernels().pack_input(x.data(), 96, 1, 96, InputRounding::kBf16, packed.data());
  EXPECT_TRUE(same_bits(reorder(rounded), packed));
}

TEST_P(PackInput, QuantizesEachBlockOf32ToFp8) {
  Random random(73);
  for (const Spread spread : kAllSpreads) {
    const auto x = make_values(random, 128, spread);
    std::vector<float> quantized(128);
    for (size_t block = 0; block < 128; block += 32) {
      fake_quantize_fp8(x.data() + block, quantized.data() + block);
    }
    std::vector<float> packed(128);
    kernels().pack_input(x.data(), 128, 1, 128, InputRounding::kFp8, packed.data());
    EXPECT_TRUE(same_bits(reorder(quantized), packed)) << spread_name(spread);
  }
}

TEST_P(PackInput, ReadsRowsAtTheirStrideAndWritesThemWithoutGaps) {
  Random random(74);
  const auto x = make_values(random, 3 * 100);
  std::vector<float> packed(3 * 64 + 1, 5.0F);
  kernels().pack_input(x.data(), 100, 3, 64, InputRounding::kNone, packed.data());
  for (size_t t = 0; t < 3; ++t) {
    const std::vector<float> row(x.begin() + static_cast<ptrdiff_t>(t * 100),
                                 x.begin() + static_cast<ptrdiff_t>(t * 100 + 64));
    EXPECT_TRUE(same_bits(reorder(row), std::span(packed).subspan(t * 64, 64)));
  }
  EXPECT_EQ(packed.back(), 5.0F);
}

}  // namespace
}  // namespace hadal::kernels
