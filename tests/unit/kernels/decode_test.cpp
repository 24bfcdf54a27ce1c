// Cached rows and bfloat16 decode to exactly the values that their formats define.

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "test_data.h"
#include "test_weights.h"

namespace hadal::kernels {
namespace {

class DecodeTest : public IsaTest {
 protected:
  std::vector<float> decode(RowFormat format, const std::vector<uint8_t>& row, int64_t n) const {
    std::vector<float> y(static_cast<size_t>(n + 1), 5.0F);
    kernels().decode_row(format, row.data(), n, y.data());
    EXPECT_EQ(y.back(), 5.0F);
    y.pop_back();
    return y;
  }
};

INSTANTIATE_TEST_SUITE_P(Isas, DecodeTest, testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512),
                         isa_test_name);

TEST(RowBytes, CountCodesAndScales) {
  EXPECT_EQ(row_bytes(RowFormat::kF32, 512), 2048);
  EXPECT_EQ(row_bytes(RowFormat::kFp8, 512), 512 + 16);
  EXPECT_EQ(row_bytes(RowFormat::kFp4Kv, 512), 256 + 32);
  EXPECT_EQ(row_bytes(RowFormat::kFp4Index, 128), 64 + 4);
}

uint8_t without_nan(uint8_t code) {
  return (code & 0x7f) == 0x7f ? static_cast<uint8_t>(code & 0x80) : code;
}

TEST_P(DecodeTest, Fp8RowsUnderEveryScale) {
  Random random(61);
  const int64_t n = 96;
  for (int scale = 0; scale <= 246; ++scale) {
    std::vector<uint8_t> row = random.bytes(row_bytes(RowFormat::kFp8, n));
    for (int64_t i = 0; i < n; ++i) {
      row[i] = without_nan(row[i]);
    }
    for (int64_t block = 0; block < n / 32; ++block) {
      row[n + block] = static_cast<uint8_t>((scale + 83 * block) % 247);
    }
    const auto y = decode(RowFormat::kFp8, row, n);
    for (int64_t i = 0; i < n; ++i) {
      const double want = std::ldexp(e4m3_value(row[i]), row[n + i / 32] - 127);
      ASSERT_EQ(y[i], flushed(want)) << "channel " << i;
      ASSERT_EQ(std::signbit(y[i]), (row[i] & 0x80) != 0);
    }
  }
}

TEST_P(DecodeTest, Fp4IndexRowsUnderEveryScale) {
  Random random(62);
  const int64_t n = 128;
  for (int scale = 0; scale <= 246; ++scale) {
    std::vector<uint8_t> row = random.bytes(row_bytes(RowFormat::kFp4Index, n));
    for (int64_t block = 0; block < n / 32; ++block) {
      row[n / 2 + block] = static_cast<uint8_t>((scale + 83 * block) % 247);
    }
    const auto y = decode(RowFormat::kFp4Index, row, n);
    for (int64_t i = 0; i < n; ++i) {
      const auto nibble = static_cast<uint8_t>(i % 2 == 0 ? row[i / 2] & 15 : row[i / 2] >> 4);
      ASSERT_EQ(y[i], flushed(std::ldexp(e2m1_value(nibble), row[n / 2 + i / 32] - 127))) << "channel " << i;
      ASSERT_EQ(std::signbit(y[i]), (nibble & 8) != 0);
    }
  }
}

TEST_P(DecodeTest, Fp4KvRowsUnderEveryScale) {
  Random random(63);
  const int64_t n = 64;
  for (int scale = 0; scale < 256; ++scale) {
    std::vector<uint8_t> row = random.bytes(row_bytes(RowFormat::kFp4Kv, n));
    for (int64_t block = 0; block < n / 16; ++block) {
      row[n / 2 + block] = without_nan(static_cast<uint8_t>(scale + 37 * block));
    }
    const auto y = decode(RowFormat::kFp4Kv, row, n);
    for (int64_t i = 0; i < n; ++i) {
      const auto nibble = static_cast<uint8_t>(i % 2 == 0 ? row[i / 2] & 15 : row[i / 2] >> 4);
      ASSERT_EQ(y[i], static_cast<float>(e2m1_value(nibble) * e4m3_value(row[n / 2 + i / 16])))
          << "channel " << i;
    }
  }
}

TEST_P(DecodeTest, F32RowsAreCopied) {
  Random random(64);
  const auto values = make_values(random, 64, Spread::kTiny);
  std::vector<uint8_t> row(256);
  std::memcpy(row.data(), values.data(), row.size());
  EXPECT_TRUE(same_bits(values, decode(RowFormat::kF32, row, 64)));
}

TEST_P(DecodeTest, EveryBfloat16AtEveryAlignment) {
  std::vector<uint8_t> bytes;
  for (uint32_t half = 0; half < 0x10000; ++half) {
    bytes.push_back(static_cast<uint8_t>(half));
    bytes.push_back(static_cast<uint8_t>(half >> 8));
  }
  for (const int64_t skipped : {0, 1, 3}) {
    const int64_t n = 0x10000 - skipped;
    std::vector<float> y(static_cast<size_t>(n));
    kernels().decode_bf16(bytes.data() + 2 * skipped, n, y.data());
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), static_cast<uint32_t>(i + skipped) << 16);
    }
  }
}

}  // namespace
}  // namespace hadal::kernels
