#pragma once
// Weight matrices for tests: the bytes of a checkpoint, and what they mean in float64.

#include <cstdint>
#include <vector>

#include "kernels/kernels.h"
#include "test_data.h"

namespace hadal::kernels {

inline constexpr WeightFormat kAllWeightFormats[] = {WeightFormat::kFp8, WeightFormat::kFp4,
                                                     WeightFormat::kBf16, WeightFormat::kF32};
const char* weight_format_name(WeightFormat format);

/// Values of the two small formats by their definition, not by the code under test.
double e4m3_value(uint8_t code);
double e2m1_value(uint8_t nibble);

struct TestWeight {
  WeightFormat format = WeightFormat::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t scale_row_offset = 0;
  std::vector<uint8_t> data;  ///< starts at data_offset, so that nothing relies on alignment
  std::vector<uint8_t> scales;
  int64_t data_offset = 0;

  Weight view() const;
  /// Decoded value, exact.
  double at(int64_t row, int64_t col) const;
};

struct WeightChoice {
  Spread spread = Spread::kNormal;  ///< of kBf16 and kF32 values
  int lowest_scale = 117;           ///< scale bytes of kFp8 and kFp4 are drawn between these, both included
  int highest_scale = 125;
  int64_t scale_row_offset = 0;  ///< for kFp8
};
TestWeight make_weight(Random& random, WeightFormat format, int64_t rows, int64_t cols,
                       const WeightChoice& choice = {});

}  // namespace hadal::kernels
