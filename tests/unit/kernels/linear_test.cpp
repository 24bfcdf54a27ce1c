// Linear layers: the values, the stated order of accumulation, and independence from everything else.

#include <array>
#include <cmath>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "test_data.h"
#include "test_weights.h"

namespace hadal::kernels {
namespace {

class LinearTest : public IsaTest {
 protected:
  std::vector<float> pack(const std::vector<float>& x, int64_t tokens, int64_t cols) const {
    std::vector<float> packed(x.size());
    kernels().pack_input(x.data(), cols, tokens, cols, InputRounding::kNone, packed.data());
    return packed;
  }
  std::vector<float> run(const TestWeight& weight, const std::vector<float>& packed, int64_t tokens) const {
    std::vector<float> y(static_cast<size_t>(tokens * weight.rows), -1.0F);
    kernels().linear(weight.view(), 0, weight.rows, packed.data(), weight.cols, tokens, y.data(),
                     weight.rows);
    return y;
  }
};

INSTANTIATE_TEST_SUITE_P(Isas, LinearTest, testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512),
                         isa_test_name);

TEST_P(LinearTest, IsCloseToFloat64) {
  Random random(1);
  for (const WeightFormat format : kAllWeightFormats) {
    for (const Spread spread : {Spread::kNormal, Spread::kHeavyTailed, Spread::kZeroBlocks}) {
      for (const int64_t cols : {32, 96, 2048, 2080}) {
        SCOPED_TRACE(testing::Message()
                     << weight_format_name(format) << ", " << spread_name(spread) << ", " << cols);
        const int64_t rows = 5;
        const int64_t tokens = 3;
        const auto weight = make_weight(random, format, rows, cols, {.spread = spread});
        const auto x = make_values(random, tokens * cols, spread);
        const auto y = run(weight, pack(x, tokens, cols), tokens);
        for (int64_t t = 0; t < tokens; ++t) {
          for (int64_t n = 0; n < rows; ++n) {
            double want = 0;
            double magnitude = 0;
            for (int64_t k = 0; k < cols; ++k) {
              const double product = weight.at(n, k) * static_cast<double>(x[t * cols + k]);
              want += product;
              magnitude += std::fabs(product);
            }
            // cols/16 fused additions in a lane, four in the tree.
            EXPECT_TRUE(
                within(want, y[t * rows + n], (static_cast<double>(cols) / 16 + 5) * kUnit * magnitude));
          }
        }
      }
    }
  }
}

TEST_P(LinearTest, AddsInTheStatedOrder) {
  Random random(2);
  for (const WeightFormat format : kAllWeightFormats) {
    for (const int64_t tokens : {1, 5}) {
      const int64_t cols = 160;
      const int64_t rows = 6;
      const auto weight = make_weight(random, format, rows, cols);
      const auto x = make_values(random, tokens * cols, Spread::kHeavyTailed);
      std::vector<float> want;
      for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t n = 0; n < rows; ++n) {
          std::array<float, 16> lanes{};
          for (int64_t g = 0; g < cols; g += 32) {
            for (int64_t l = 0; l < 16; ++l) {
              for (const int64_t k : {g + 2 * l + 1, g + 2 * l}) {
                lanes[l] = std::fma(static_cast<float>(weight.at(n, k)), x[t * cols + k], lanes[l]);
              }
            }
          }
          for (size_t half = 8; half > 0; half /= 2) {
            for (size_t l = 0; l < half; ++l) {
              lanes[l] += lanes[l + half];
            }
          }
          want.push_back(lanes[0]);
        }
      }
      EXPECT_TRUE(same_bits(want, run(weight, pack(x, tokens, cols), tokens))) << weight_format_name(format);
    }
  }
}

TEST_P(LinearTest, DecodesEveryCodeUnderEveryScaleExactly) {
  // One weight row per code; the input picks one channel, so that the output is the decoded weight.
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp4}) {
    const int64_t codes = format == WeightFormat::kFp8 ? 256 : 16;
    for (int scale = 0; scale <= 246; ++scale) {
      TestWeight weight{.format = format, .rows = codes, .cols = 32, .data = {}, .scales = {}};
      weight.scales.assign(static_cast<size_t>(codes), static_cast<uint8_t>(scale));
      for (int64_t code = 0; code < codes; ++code) {
        const bool is_number = format == WeightFormat::kFp4 || (code & 0x7f) != 0x7f;
        const auto byte = static_cast<uint8_t>(format == WeightFormat::kFp4 ? code | code << 4
                                               : is_number                  ? code
                                                                            : 0);
        weight.data.insert(weight.data.end(), format == WeightFormat::kFp8 ? 32 : 16, byte);
      }
      const int64_t channel = scale % 32;
      std::vector<float> x(32, 0.0F);
      x[static_cast<size_t>(channel)] = 1.0F;
      const auto y = run(weight, pack(x, 1, 32), 1);
      for (int64_t code = 0; code < codes; ++code) {
        ASSERT_EQ(y[code], flushed(weight.at(code, channel)))
            << weight_format_name(format) << ", code " << code << ", scale byte " << scale;
      }
    }
  }
}

TEST_P(LinearTest, ElementsDependOnNeitherTokenCountNorRowRange) {
  Random random(3);
  for (const WeightFormat format : kAllWeightFormats) {
    const int64_t cols = 2080;  // one slice of the many-token path and a group of the next
    const int64_t rows = 41;
    const int64_t most_tokens = 49;
    const auto weight =
        make_weight(random, format, rows, cols, {.spread = Spread::kNormal, .scale_row_offset = 5});
    const auto x = make_values(random, most_tokens * cols, Spread::kHeavyTailed);
    // The input is given with gaps between its rows.
    const int64_t x_stride = cols + 32;
    std::vector<float> packed(static_cast<size_t>(most_tokens * x_stride), 1e30F);
    for (int64_t t = 0; t < most_tokens; ++t) {
      kernels().pack_input(x.data() + t * cols, cols, 1, cols, InputRounding::kNone,
                           packed.data() + t * x_stride);
    }
    std::vector<float> want(static_cast<size_t>(most_tokens * rows));
    for (int64_t t = 0; t < most_tokens; ++t) {
      for (int64_t n = 0; n < rows; ++n) {
        kernels().linear(weight.view(), n, n + 1, packed.data() + t * x_stride, x_stride, 1,
                         want.data() + t * rows, rows);
      }
    }
    const int64_t y_stride = rows + 3;
    for (const int64_t tokens : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 23, 24, 25, 49}) {
      for (const auto& [begin, end] :
           {std::pair<int64_t, int64_t>{0, rows}, {1, 2}, {3, 8}, {5, 5}, {2, rows - 1}}) {
        std::vector<float> y(static_cast<size_t>((tokens + 1) * y_stride), 7.0F);
        kernels().linear(weight.view(), begin, end, packed.data(), x_stride, tokens, y.data(), y_stride);
        for (int64_t t = 0; t <= tokens; ++t) {
          for (int64_t n = 0; n < y_stride; ++n) {
            const bool is_written = t < tokens && n >= begin && n < end;
            ASSERT_EQ(y[t * y_stride + n], is_written ? want[t * rows + n] : 7.0F)
                << weight_format_name(format) << ", tokens " << tokens << ", rows " << begin << " to " << end
                << ", element " << t << ", " << n;
          }
        }
      }
    }
  }
}

TEST_P(LinearTest, AViewOfLaterFp8RowsFindsItsScales) {
  Random random(4);
  const int64_t cols = 64;
  const auto whole = make_weight(random, WeightFormat::kFp8, 100, cols);
  const auto x = make_values(random, cols);
  const auto packed = pack(x, 1, cols);
  const auto want = run(whole, packed, 1);
  for (const int64_t first : {1, 31, 32, 33, 70}) {
    Weight view = whole.view();
    view.data += first * cols;
    view.scales += first / 32 * (cols / 32);
    view.scale_row_offset = first % 32;
    view.rows -= first;
    std::vector<float> y(static_cast<size_t>(view.rows));
    kernels().linear(view, 0, view.rows, packed.data(), cols, 1, y.data(), view.rows);
    EXPECT_TRUE(same_bits(std::span(want).subspan(static_cast<size_t>(first)), y)) << "from row " << first;
  }
}

}  // namespace
}  // namespace hadal::kernels
