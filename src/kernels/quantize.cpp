#include "kernels/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace hadal::kernels {
namespace {

float largest_magnitude(const float* x, int64_t n) {
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::fabs(x[i]));
  }
  return largest;
}

float scale_of(uint8_t e8m0) {
  return std::ldexp(1.0F, e8m0 - 127);
}

/// x / scale for a power-of-two scale, exact unless it leaves the float32 range.
float over_power_of_two(float x, uint8_t e8m0) {
  return x * std::ldexp(1.0F, 127 - e8m0);
}

uint8_t fp8_scale(const float* x, int64_t n) {
  return e8m0_at_least(std::max(largest_magnitude(x, n), 1e-4F) / 448.0F);
}

void encode_fp8(const float* x, int64_t n, uint8_t* row) {
  for (int64_t block = 0; block < n / 32; ++block) {
    const uint8_t scale = fp8_scale(x + block * 32, 32);
    row[n + block] = scale;
    for (int64_t i = block * 32; i < block * 32 + 32; ++i) {
      row[i] = e4m3_from_float(over_power_of_two(x[i], scale));
    }
  }
}

void pack_e2m1(uint8_t* row, int64_t i, uint8_t code) {
  if (i % 2 == 0) {
    row[i / 2] = code;
  } else {
    row[i / 2] = static_cast<uint8_t>(row[i / 2] | code << 4);
  }
}

void encode_fp4_index(const float* x, int64_t n, uint8_t* row) {
  for (int64_t block = 0; block < n / 32; ++block) {
    const float largest = std::max(largest_magnitude(x + block * 32, 32), 6.0F * 0x1p-126F);
    const uint8_t scale = e8m0_at_least(largest / 6.0F);
    row[n / 2 + block] = scale;
    for (int64_t i = block * 32; i < block * 32 + 32; ++i) {
      pack_e2m1(row, i, e2m1_from(static_cast<double>(over_power_of_two(x[i], scale))));
    }
  }
}

void encode_fp4_kv(const float* x, int64_t n, uint8_t* row) {
  for (int64_t block = 0; block < n / 16; ++block) {
    const float largest = std::max(largest_magnitude(x + block * 16, 16), 6.0F * 0x1p-9F);
    const uint8_t scale = e4m3_from_float(std::min(largest / 6.0F, 448.0F));
    row[n / 2 + block] = scale;
    // The quotient decides between neighbouring codes, so it is taken in float64 as the reference does.
    const double divisor = float_from_e4m3(scale);
    for (int64_t i = block * 16; i < block * 16 + 16; ++i) {
      pack_e2m1(row, i, e2m1_from(static_cast<double>(x[i]) / divisor));
    }
  }
}

}  // namespace

uint8_t e8m0_at_least(float t) {
  const auto bits = std::bit_cast<uint32_t>(t);
  return static_cast<uint8_t>(((bits >> 23) & 0xffU) + ((bits & 0x7fffffU) != 0 ? 1U : 0U));
}

float float_from_e4m3(uint8_t code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) {
    return std::nanf("");
  }
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

uint8_t e4m3_from_float(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint8_t>((bits >> 24) & 0x80U);
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {
    return static_cast<uint8_t>(sign | 0x7f);
  }
  if (magnitude >= 0x43e80000U) {  // 464: half-way between 448 and the next step, which does not exist
    return static_cast<uint8_t>(sign | 0x7e);
  }
  if (magnitude < 0x3c800000U) {  // below 2^-6: subnormal, in steps of 2^-9
    const float steps = std::bit_cast<float>(magnitude) * 512.0F;
    // Adding and taking away 2^23 rounds to an integer, nearest-even.
    return static_cast<uint8_t>(sign | static_cast<uint8_t>((steps + 0x1p23F) - 0x1p23F));
  }
  const uint32_t rounded = magnitude + 0x7ffffU + ((magnitude >> 20) & 1U);
  const uint32_t code = (rounded >> 20) - (120U << 3);
  return static_cast<uint8_t>(sign | (code > 0x7eU ? 0x7eU : code));
}

uint8_t e2m1_from(double x) {
  const double magnitude = std::fabs(x);
  // Midpoints between neighbouring codes; a tie goes to the even code.
  const auto code =
      static_cast<uint8_t>((magnitude > 0.25) + (magnitude >= 0.75) + (magnitude > 1.25) +
                           (magnitude >= 1.75) + (magnitude > 2.5) + (magnitude >= 3.5) + (magnitude > 5.0));
  return static_cast<uint8_t>(code | (std::signbit(x) ? 8 : 0));
}

void encode_row(RowFormat format, const float* x, int64_t n, uint8_t* row) {
  switch (format) {
    case RowFormat::kF32:
      std::memcpy(row, x, static_cast<size_t>(n) * sizeof(float));
      return;
    case RowFormat::kFp8:
      return encode_fp8(x, n, row);
    case RowFormat::kFp4Kv:
      return encode_fp4_kv(x, n, row);
    case RowFormat::kFp4Index:
      return encode_fp4_index(x, n, row);
  }
}

void fake_quantize_fp8(const float* x, float* y) {
  const uint8_t scale = fp8_scale(x, 32);
  for (int i = 0; i < 32; ++i) {
    y[i] = float_from_e4m3(e4m3_from_float(over_power_of_two(x[i], scale))) * scale_of(scale);
  }
}

}  // namespace hadal::kernels
