#include "model/rope.h"

#include <algorithm>
#include <cmath>

#include "model/reproducible_math.h"

namespace hadal::model {
namespace {

/// theta^(2i/dim), rounded to float32 as a float32 power of exactly rounded arguments would be.
float frequency_power(int64_t i, int64_t dim, double theta) {
  const auto exponent = static_cast<float>(2 * i) / static_cast<float>(dim);
  return static_cast<float>(reproducible_exp(static_cast<double>(exponent) * reproducible_log(theta)));
}

}  // namespace

std::vector<float> plain_inverse_frequencies(int64_t dim, double theta) {
  std::vector<float> inverse;
  for (int64_t i = 0; i < dim / 2; ++i) {
    inverse.push_back(1.0F / frequency_power(i, dim, theta));
  }
  return inverse;
}

std::vector<float> yarn_inverse_frequencies(int64_t dim, double theta,
                                            const checkpoint::RopeScaling& scaling) {
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  const auto correction = [&](double rotations) {
    return static_cast<double>(dim) *
           reproducible_log(scaling.original_max_position_embeddings / (rotations * kTwoPi)) /
           (2.0 * reproducible_log(theta));
  };
  const double low = std::max(std::floor(correction(scaling.beta_fast)), 0.0);
  const double high = std::min(std::ceil(correction(scaling.beta_slow)), static_cast<double>(dim - 1));
  const double width = high == low ? 0.001 : high - low;
  const auto factor = static_cast<float>(scaling.factor);
  std::vector<float> inverse;
  for (int64_t i = 0; i < dim / 2; ++i) {
    const float ramp =
        std::clamp((static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(width), 0.0F, 1.0F);
    const float keep = 1.0F - ramp;
    const float power = frequency_power(i, dim, theta);
    inverse.push_back(1.0F / (factor * power) * (1.0F - keep) + 1.0F / power * keep);
  }
  return inverse;
}

void rope_rotation(int64_t position, std::span<const float> inverse, float* cosines, float* sines) {
  for (size_t i = 0; i < inverse.size(); ++i) {
    const float angle = static_cast<float>(position) * inverse[i];
    double sine = 0;
    double cosine = 0;
    reproducible_sincos(static_cast<double>(angle), &sine, &cosine);
    cosines[i] = static_cast<float>(cosine);
    sines[i] = static_cast<float>(sine);
  }
}

}  // namespace hadal::model
