// Rotary position embedding against the reference's tables and a float64 library.

#include "model/rope.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "checkpoint/safetensors.h"

namespace hadal::model {
namespace {

std::vector<float> golden(const std::string& name) {
  static const auto file = checkpoint::SafetensorsFile::open(HADAL_MODEL_DATA "/rope.safetensors").value();
  const auto view = file.tensor(name).value();
  std::vector<float> values(view.bytes / sizeof(float));
  std::memcpy(values.data(), view.data, view.bytes);
  return values;
}

const checkpoint::RopeScaling kReleased{
    .factor = 16, .original_max_position_embeddings = 65536, .beta_fast = 32, .beta_slow = 1};
const checkpoint::RopeScaling kSmall{
    .factor = 4, .original_max_position_embeddings = 64, .beta_fast = 32, .beta_slow = 1};

TEST(Rope, PlainFrequenciesAreThoseOfTheReference) {
  EXPECT_EQ(plain_inverse_frequencies(64, 10000), golden("plain.64.10000"));
}

TEST(Rope, YarnFrequenciesAreThoseOfTheReference) {
  EXPECT_EQ(yarn_inverse_frequencies(64, 160000, kReleased), golden("yarn.release"));
  EXPECT_EQ(yarn_inverse_frequencies(32, 160000, kSmall), golden("yarn.32.160000.small"));
  EXPECT_EQ(yarn_inverse_frequencies(16, 160000, kSmall), golden("yarn.16.160000.small"));
}

TEST(Rope, YarnKeepsHighFrequenciesAndStretchesLowOnes) {
  const auto plain = plain_inverse_frequencies(64, 160000);
  const auto yarn = yarn_inverse_frequencies(64, 160000, kReleased);
  EXPECT_EQ(yarn.front(), plain.front());
  EXPECT_FLOAT_EQ(yarn.back(), plain.back() / 16);
}

TEST(Rope, RotationsAreRightAtEveryPositionUpToTheLast) {
  for (const auto& inverse :
       {plain_inverse_frequencies(64, 10000), yarn_inverse_frequencies(64, 160000, kReleased)}) {
    std::vector<float> cosines(inverse.size());
    std::vector<float> sines(inverse.size());
    std::vector<int64_t> positions{0, 1, 2, 127, 128, 65535, 65536, 524287, 1048574, 1048575};
    for (int64_t position = 3; position < 1 << 20; position += 4999) {
      positions.push_back(position);
    }
    for (const int64_t position : positions) {
      rope_rotation(position, inverse, cosines.data(), sines.data());
      for (size_t i = 0; i < inverse.size(); ++i) {
        // The angle is a float32 product, its cosine and sine are exact but for the last rounding.
        const auto angle = static_cast<double>(static_cast<float>(position) * inverse[i]);
        EXPECT_LE(std::fabs(static_cast<double>(cosines[i]) - std::cos(angle)),
                  0x1p-25 * std::fabs(std::cos(angle)) * 2 + 1e-14)
            << position << ", " << i;
        EXPECT_LE(std::fabs(static_cast<double>(sines[i]) - std::sin(angle)),
                  0x1p-25 * std::fabs(std::sin(angle)) * 2 + 1e-14)
            << position << ", " << i;
      }
    }
  }
}

}  // namespace
}  // namespace hadal::model
