// The rounding rules of the small formats, exhaustively where that is possible.

#include "kernels/quantize.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "test_data.h"
#include "test_weights.h"

namespace hadal::kernels {
namespace {

class QuantizeTest : public KernelTest {};

TEST_F(QuantizeTest, EveryE4m3CodeSurvivesARoundTrip) {
  for (int code = 0; code < 256; ++code) {
    const float value = float_from_e4m3(static_cast<uint8_t>(code));
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value));
      continue;
    }
    EXPECT_EQ(static_cast<double>(value), e4m3_value(static_cast<uint8_t>(code)));
    EXPECT_EQ(e4m3_from_float(value), code);
  }
}

/// By search: the nearest magnitude, the even code of two equally near ones.
uint8_t nearest_e4m3(float x) {
  const double magnitude = std::fabs(static_cast<double>(x));
  uint8_t best = 0;
  for (uint8_t code = 1; code < 0x7f; ++code) {
    const double distance = std::fabs(e4m3_value(code) - magnitude);
    const double best_distance = std::fabs(e4m3_value(best) - magnitude);
    if (distance < best_distance || (distance == best_distance && code % 2 == 0)) {
      best = code;
    }
  }
  return static_cast<uint8_t>(best | (std::signbit(x) ? 0x80 : 0));
}

TEST_F(QuantizeTest, E4m3IsTheNearestCodeWithTiesToEven) {
  // All midpoints and their neighbours.
  for (uint8_t code = 0; code < 0x7e; ++code) {
    const auto middle =
        static_cast<float>(0.5 * (e4m3_value(code) + e4m3_value(static_cast<uint8_t>(code + 1))));
    for (const float x : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1000.0F)}) {
      EXPECT_EQ(e4m3_from_float(x), nearest_e4m3(x)) << x;
      EXPECT_EQ(e4m3_from_float(-x), nearest_e4m3(-x)) << -x;
    }
  }
  // Every sign, exponent and upper mantissa, with random lower bits.
  Random random(81);
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    const auto x = std::bit_cast<float>(upper << 16 | static_cast<uint32_t>(random.below(1 << 16)));
    if (std::isfinite(x)) {
      ASSERT_EQ(e4m3_from_float(x), nearest_e4m3(x)) << x;
    }
  }
}

TEST_F(QuantizeTest, E4m3SaturatesAndKeepsTheSign) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(e4m3_from_float(448.0F), 0x7e);
  EXPECT_EQ(e4m3_from_float(464.0F), 0x7e);
  EXPECT_EQ(e4m3_from_float(1e30F), 0x7e);
  EXPECT_EQ(e4m3_from_float(-kInfinity), 0xfe);
  EXPECT_EQ(e4m3_from_float(kInfinity), 0x7e);
  EXPECT_EQ(e4m3_from_float(-0.0F), 0x80);
  EXPECT_EQ(e4m3_from_float(std::nanf("")) & 0x7f, 0x7f);
}

TEST_F(QuantizeTest, EveryE2m1CodeSurvivesARoundTrip) {
  for (uint8_t code = 0; code < 16; ++code) {
    EXPECT_EQ(e2m1_from(e2m1_value(code)), code);
  }
}

TEST_F(QuantizeTest, E2m1TiesGoToTheEvenCode) {
  const std::pair<double, int> ties[] = {{0.25, 0}, {0.75, 2}, {1.25, 2}, {1.75, 4},
                                         {2.5, 4},  {3.5, 6},  {5.0, 6}};
  for (const auto& [x, code] : ties) {
    EXPECT_EQ(e2m1_from(x), code) << x;
    EXPECT_EQ(e2m1_from(-x), code | 8) << -x;
    // The smallest step decides.
    EXPECT_EQ(e2m1_from(std::nextafter(x, 0.0)),
              code % 2 == 0 && e2m1_value(static_cast<uint8_t>(code)) > x ? code - 1 : code)
        << x;
    EXPECT_EQ(e2m1_from(std::nextafter(x, 10.0)),
              code % 2 == 0 && e2m1_value(static_cast<uint8_t>(code)) < x ? code + 1 : code)
        << x;
  }
  EXPECT_EQ(e2m1_from(1e300), 7);
  EXPECT_EQ(e2m1_from(-1e300), 15);
  EXPECT_EQ(e2m1_from(-0.0), 8);
}

TEST_F(QuantizeTest, E8m0IsTheSmallestPowerOfTwoThatIsNotLess) {
  Random random(82);
  for (uint32_t exponent = 1; exponent < 254; ++exponent) {
    const float power = std::bit_cast<float>(exponent << 23);
    EXPECT_EQ(e8m0_at_least(power), exponent);
    EXPECT_EQ(e8m0_at_least(std::nextafter(power, 0.0F)), exponent);
    EXPECT_EQ(e8m0_at_least(std::nextafter(power, std::numeric_limits<float>::infinity())), exponent + 1);
    const float inside =
        std::bit_cast<float>(exponent << 23 | (1U + static_cast<uint32_t>(random.below((1 << 23) - 1))));
    EXPECT_EQ(e8m0_at_least(inside), exponent + 1);
  }
}

double decoded(RowFormat format, const std::vector<uint8_t>& row, int64_t n, int64_t i) {
  const auto nibble = static_cast<uint8_t>(i % 2 == 0 ? row[i / 2] & 15 : row[i / 2] >> 4);
  switch (format) {
    case RowFormat::kFp8:
      return std::ldexp(e4m3_value(row[i]), row[n + i / 32] - 127);
    case RowFormat::kFp4Kv:
      return e2m1_value(nibble) * e4m3_value(row[n / 2 + i / 16]);
    case RowFormat::kFp4Index:
      return std::ldexp(e2m1_value(nibble), row[n / 2 + i / 32] - 127);
    case RowFormat::kF32:
      break;
  }
  return 0;
}

TEST_F(QuantizeTest, RowsAreQuantizedWithinHalfAStepOfTheirBlock) {
  Random random(83);
  const int64_t n = 256;
  for (const Spread spread : {Spread::kNormal, Spread::kHeavyTailed, Spread::kZeroBlocks}) {
    for (const RowFormat format : {RowFormat::kFp8, RowFormat::kFp4Kv, RowFormat::kFp4Index}) {
      const auto x = make_values(random, n, spread);
      std::vector<uint8_t> row(static_cast<size_t>(row_bytes(format, n)), 0xaa);
      encode_row(format, x.data(), n, row.data());
      const int64_t block_size = format == RowFormat::kFp4Kv ? 16 : 32;
      for (int64_t block = 0; block < n; block += block_size) {
        double largest = 0;
        for (int64_t i = block; i < block + block_size; ++i) {
          largest = std::max(largest, std::fabs(static_cast<double>(x[i])));
        }
        // FP8: half a step of 2^-3 relative, or of 2^-9 scales near zero. FP4: half a step of at most 2
        // scales, a scale being at most 2/6 of the largest (powers of two), or 1/6 and its own rounding of
        // 1/16.
        for (int64_t i = block; i < block + block_size; ++i) {
          const double value = static_cast<double>(x[i]);
          const double bound = format == RowFormat::kFp8
                                   ? std::fabs(value) / 16 + std::max(largest, 1e-4) / 448 * 0x1p-9
                               : format == RowFormat::kFp4Index ? largest / 3
                                                                : std::max(largest / 6 * 1.07, 0x1p-9) * 1.1;
          ASSERT_TRUE(within(value, decoded(format, row, n, i), bound))
              << spread_name(spread) << ", channel " << i;
        }
      }
    }
  }
}

TEST_F(QuantizeTest, FakeQuantizationIsEncodingAndDecodingOfABlock) {
  Random random(84);
  for (const Spread spread : kAllSpreads) {
    const auto x = make_values(random, 32, spread);
    std::vector<uint8_t> row(static_cast<size_t>(row_bytes(RowFormat::kFp8, 32)));
    encode_row(RowFormat::kFp8, x.data(), 32, row.data());
    std::vector<float> want(32);
    kernels_for(Isa::kScalar).decode_row(RowFormat::kFp8, row.data(), 32, want.data());
    std::vector<float> got(32);
    fake_quantize_fp8(x.data(), got.data());
    EXPECT_TRUE(same_bits(want, got)) << spread_name(spread);
  }
}

TEST_F(QuantizeTest, QuantizedValuesStayTheSameWhenQuantizedAgain) {
  Random random(85);
  const int64_t n = 128;
  for (const RowFormat format : {RowFormat::kFp8, RowFormat::kFp4Kv, RowFormat::kFp4Index}) {
    const auto x = make_values(random, n, Spread::kHeavyTailed);
    std::vector<uint8_t> row(static_cast<size_t>(row_bytes(format, n)));
    encode_row(format, x.data(), n, row.data());
    std::vector<float> once(n);
    kernels_for(Isa::kScalar).decode_row(format, row.data(), n, once.data());
    encode_row(format, once.data(), n, row.data());
    std::vector<float> twice(n);
    kernels_for(Isa::kScalar).decode_row(format, row.data(), n, twice.data());
    EXPECT_TRUE(same_bits(once, twice));
  }
}

}  // namespace
}  // namespace hadal::kernels
