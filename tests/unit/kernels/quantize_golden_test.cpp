// The quantizers against the reference's codes, scales and round-trip values (ties, zeros, tiny and huge
// rows).

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/kernels.h"
#include "kernels/quantize.h"
#include "test_data.h"

namespace hadal::kernels {
namespace {

constexpr int64_t kRows = 48;
constexpr int64_t kChannels = 128;

/// One file of arrays: a length, a JSON header with offsets, then the data.
class Goldens {
 public:
  Goldens() {
    std::ifstream file(HADAL_KERNELS_TEST_DATA "/quantizers.safetensors", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    uint64_t header_size = 0;
    std::memcpy(&header_size, bytes.data(), 8);
    header_ = nlohmann::json::parse(bytes.substr(8, header_size));
    data_ = bytes.substr(8 + header_size);
  }
  template <class T>
  std::vector<T> array(const std::string& name) const {
    const auto& offsets = header_.at(name).at("data_offsets");
    const auto begin = offsets[0].get<size_t>();
    std::vector<T> out((offsets[1].get<size_t>() - begin) / sizeof(T));
    std::memcpy(out.data(), data_.data() + begin, out.size() * sizeof(T));
    return out;
  }

 private:
  nlohmann::json header_;
  std::string data_;
};

struct Quantizer {
  const char* name;
  RowFormat format;
};

class QuantizerGoldenTest : public testing::TestWithParam<Quantizer> {
 private:
  FlushDenormals guard_;
};

INSTANTIATE_TEST_SUITE_P(All, QuantizerGoldenTest,
                         testing::Values(Quantizer{"fp8", RowFormat::kFp8},
                                         Quantizer{"fp4_kv", RowFormat::kFp4Kv},
                                         Quantizer{"fp4_index", RowFormat::kFp4Index}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(QuantizerGoldenTest, CodesScalesAndRoundTripsAreThoseOfTheReference) {
  const auto& [name, format] = GetParam();
  const Goldens goldens;
  const auto x = goldens.array<float>("x");
  const auto codes = goldens.array<uint8_t>(name + std::string(".data"));
  const auto scales = goldens.array<uint8_t>(name + std::string(".scale"));
  const auto values = goldens.array<float>(name + std::string(".value"));
  ASSERT_EQ(x.size(), static_cast<size_t>(kRows * kChannels));
  const auto code_bytes = codes.size() / kRows;
  const auto scale_bytes = scales.size() / kRows;
  ASSERT_EQ(static_cast<int64_t>(code_bytes + scale_bytes), row_bytes(format, kChannels));
  for (size_t r = 0; r < kRows; ++r) {
    std::vector<uint8_t> want(codes.begin() + static_cast<ptrdiff_t>(r * code_bytes),
                              codes.begin() + static_cast<ptrdiff_t>((r + 1) * code_bytes));
    want.insert(want.end(), scales.begin() + static_cast<ptrdiff_t>(r * scale_bytes),
                scales.begin() + static_cast<ptrdiff_t>((r + 1) * scale_bytes));
    std::vector<uint8_t> got(want.size());
    encode_row(format, x.data() + r * kChannels, kChannels, got.data());
    EXPECT_EQ(want, got) << "row " << r;
    for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
      if (isa_supported(isa)) {
        std::vector<float> back(kChannels);
        kernels_for(isa).decode_row(format, want.data(), kChannels, back.data());
        EXPECT_TRUE(same_bits(std::span(values).subspan(r * kChannels, kChannels), back)) << "row " << r;
      }
    }
  }
}

TEST(FakeQuantization, IsTheReferencesFp8RoundTrip) {
  const FlushDenormals guard;
  const Goldens goldens;
  const auto x = goldens.array<float>("x");
  const auto values = goldens.array<float>("fp8.value");
  std::vector<float> got(x.size());
  for (size_t block = 0; block < x.size(); block += 32) {
    fake_quantize_fp8(x.data() + block, got.data() + block);
  }
  EXPECT_TRUE(same_bits(values, got));
}

}  // namespace
}  // namespace hadal::kernels
