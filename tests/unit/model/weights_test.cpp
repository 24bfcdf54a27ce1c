// Views of consecutive rows of a matrix, and scratch buffers.

#include "model/weights.h"

#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "model/buffer.h"
#include "tiny_models.h"

namespace hadal::model {
namespace {

using kernels::Weight;
using kernels::WeightFormat;

TEST(Weights, RowsOfAMatrixMultiplyLikeTheWholeMatrix) {
  constexpr int64_t kRows = 100;
  constexpr int64_t kCols = 64;
  Choices choices(95);
  std::vector<uint8_t> data(kRows * kCols * 4);
  for (size_t i = 0; i < data.size(); ++i) {
    // Bytes that make small numbers in every format: the last of four is the exponent of a float32.
    data[i] = static_cast<uint8_t>(i % 2 == 1 ? 0x3c + choices.below(4) : choices.below(0x7f));
  }
  std::vector<uint8_t> scales(kRows * (kCols / 32));
  for (auto& scale : scales) {
    scale = static_cast<uint8_t>(120 + choices.below(8));
  }
  std::vector<float> x(kCols);
  for (auto& value : x) {
    value = static_cast<float>(choices.below(200) - 100) * 0.01F;
  }
  const auto& table = kernels::kernels_for(kernels::detect_isa());
  const FlushDenormals guard;
  for (const auto format :
       {WeightFormat::kFp8, WeightFormat::kFp4, WeightFormat::kBf16, WeightFormat::kF32}) {
    const Weight whole{
        .format = format, .data = data.data(), .scales = scales.data(), .rows = kRows, .cols = kCols};
    std::vector<float> want(kRows);
    table.linear(whole, 0, kRows, x.data(), kCols, 1, want.data(), kRows);
    for (const auto& [first, count] :
         {std::pair<int64_t, int64_t>{0, 100}, {1, 5}, {31, 2}, {32, 32}, {63, 37}, {99, 1}, {50, 0}}) {
      const Weight part = rows_of(whole, first, count);
      // A part of a part, too.
      const Weight again = rows_of(part, count / 2, count - count / 2);
      for (const auto& [view, from] : {std::pair{part, first}, std::pair{again, first + count / 2}}) {
        std::vector<float> got(static_cast<size_t>(view.rows));
        table.linear(view, 0, view.rows, x.data(), kCols, 1, got.data(), kRows);
        EXPECT_EQ(got, std::vector<float>(want.begin() + from, want.begin() + from + view.rows))
            << static_cast<int>(format) << ": " << first << ", " << count;
      }
    }
  }
}

TEST(Buffer, GrowsOnlyAndStaysAligned) {
  Buffer<float> buffer;
  EXPECT_EQ(buffer.capacity(), 0);
  float* first = buffer.reserve(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0U);
  first[99] = 1.0F;
  EXPECT_EQ(buffer.reserve(50), first);
  EXPECT_EQ(buffer.capacity(), 100);
  float* second = buffer.reserve(101);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second) % 64, 0U);
  EXPECT_EQ(buffer.data(), second);
  EXPECT_EQ(buffer.capacity(), 101);
}

}  // namespace
}  // namespace hadal::model
