#include "test_weights.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace hadal::kernels {

const char* weight_format_name(WeightFormat format) {
  switch (format) {
    case WeightFormat::kFp8:
      return "fp8";
    case WeightFormat::kFp4:
      return "fp4";
    case WeightFormat::kBf16:
      return "bf16";
    case WeightFormat::kF32:
      return "f32";
  }
  return "";
}

double e4m3_value(uint8_t code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

double e2m1_value(uint8_t nibble) {
  constexpr double kMagnitudes[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (nibble & 8) != 0 ? -kMagnitudes[nibble & 7] : kMagnitudes[nibble & 7];
}

Weight TestWeight::view() const {
  return {.format = format,
          .data = data.data() + data_offset,
          .scales = scales.data(),
          .rows = rows,
          .cols = cols,
          .scale_row_offset = scale_row_offset};
}

double TestWeight::at(int64_t row, int64_t col) const {
  const uint8_t* bytes = data.data() + data_offset;
  const auto scale = [&](int64_t scale_row) {
    return std::ldexp(1.0, scales[static_cast<size_t>(scale_row * (cols / 32) + col / 32)] - 127);
  };
  switch (format) {
    case WeightFormat::kFp8:
      return e4m3_value(bytes[row * cols + col]) * scale((row + scale_row_offset) / 32);
    case WeightFormat::kFp4: {
      const uint8_t pair = bytes[(row * cols + col) / 2];
      return e2m1_value(col % 2 == 0 ? pair & 15 : pair >> 4) * scale(row);
    }
    case WeightFormat::kBf16: {
      uint16_t half = 0;
      std::memcpy(&half, bytes + (row * cols + col) * 2, 2);
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(half) << 16));
    }
    case WeightFormat::kF32: {
      float value = 0;
      std::memcpy(&value, bytes + (row * cols + col) * 4, 4);
      return static_cast<double>(value);
    }
  }
  return 0;
}

TestWeight make_weight(Random& random, WeightFormat format, int64_t rows, int64_t cols,
                       const WeightChoice& choice) {
  TestWeight weight{.format = format, .rows = rows, .cols = cols, .data = {}, .scales = {}};
  const auto make_scales = [&](int64_t scale_rows) {
    weight.scales.resize(static_cast<size_t>(scale_rows * (cols / 32)));
    for (uint8_t& scale : weight.scales) {
      scale = static_cast<uint8_t>(choice.lowest_scale +
                                   random.below(choice.highest_scale - choice.lowest_scale + 1));
    }
  };
  const int64_t count = rows * cols;
  weight.data_offset = random.below(4);
  switch (format) {
    case WeightFormat::kFp8:
      weight.scale_row_offset = choice.scale_row_offset;
      make_scales((rows + choice.scale_row_offset + 31) / 32);
      weight.data = random.bytes(weight.data_offset + count);
      for (uint8_t& code : weight.data) {
        if ((code & 0x7f) == 0x7f) {  // not a number
          code = static_cast<uint8_t>(code & 0x80);
        }
      }
      break;
    case WeightFormat::kFp4:
      make_scales(rows);
      weight.data = random.bytes(weight.data_offset + count / 2);
      break;
    case WeightFormat::kBf16:
    case WeightFormat::kF32: {
      const int64_t size = format == WeightFormat::kF32 ? 4 : 2;
      const auto values = make_values(random, count, choice.spread);
      weight.data.resize(static_cast<size_t>(weight.data_offset + count * size));
      for (int64_t i = 0; i < count; ++i) {
        // The upper bytes of a float32 are a bfloat16.
        const auto bits = std::bit_cast<uint32_t>(values[static_cast<size_t>(i)]) >> (size == 4 ? 0 : 16);
        std::memcpy(weight.data.data() + weight.data_offset + i * size, &bits, static_cast<size_t>(size));
      }
      break;
    }
  }
  return weight;
}

}  // namespace hadal::kernels
