// The hyper-connection mixes against their formulas, also for all-zero rows under the released eps of 1e-20.

#include "model/hyper_connection.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tiny_models.h"

namespace hadal::model {
namespace {

class MixesTest : public testing::Test {
 protected:
  static constexpr int64_t kStreams = 4;
  static constexpr int64_t kHidden = 32;
  static constexpr int64_t kMixes = (2 + kStreams) * kStreams;

  MixesTest() {
    config_.hc_mult = kStreams;
    config_.hidden_size = kHidden;
    config_.hc_sinkhorn_iters = 20;
    config_.hc_eps = 1e-6;
    config_.rms_norm_eps = 1e-20;
    Choices choices(97);
    fn_.resize(kMixes * kStreams * kHidden);
    for (float& value : fn_) {
      value = static_cast<float>(choices.below(2001) - 1000) * 2e-4F;
    }
    for (int64_t i = 0; i < kMixes; ++i) {
      weights_.base.push_back(static_cast<float>(choices.below(2001) - 1000) * 1e-3F);
    }
    weights_.scale = {0.7F, 1.3F, 2.0F};
    weights_.fn = {.format = kernels::WeightFormat::kF32,
                   .data = reinterpret_cast<const uint8_t*>(fn_.data()),
                   .rows = kMixes,
                   .cols = kStreams * kHidden};
  }
  void run(const std::vector<float>& streams) {
    const FlushDenormals guard;
    Operators operators(kernels::kernels_for(kernels::detect_isa()), shared_pool(),
                        {PrecisionMode::kProduct});
    Buffer<float> raw;
    hyper_connection_mixes(operators, weights_, config_, streams.data(),
                           static_cast<int64_t>(streams.size()) / (kStreams * kHidden), raw, mixes_);
  }

  checkpoint::TextConfig config_;
  std::vector<float> fn_;
  HyperConnectionWeights weights_;
  Mixes mixes_;
};

/// Section 5 of the specification in float64.
struct Reference {
  std::vector<double> pre, post, comb;
};
Reference reference_mixes(const checkpoint::TextConfig& config, const HyperConnectionWeights& weights,
                          const float* fn, const float* streams) {
  const int64_t m = config.hc_mult;
  const int64_t width = m * config.hidden_size;
  double squares = 0;
  for (int64_t i = 0; i < width; ++i) {
    squares += static_cast<double>(streams[i]) * static_cast<double>(streams[i]);
  }
  const double factor = 1.0 / std::sqrt(squares / static_cast<double>(width) + config.rms_norm_eps);
  std::vector<double> values;
  for (int64_t i = 0; i < (2 + m) * m; ++i) {
    double dot = 0;
    for (int64_t k = 0; k < width; ++k) {
      dot += static_cast<double>(fn[i * width + k]) * static_cast<double>(streams[k]);
    }
    const size_t part = i < m ? 0 : (i < 2 * m ? 1 : 2);
    values.push_back(dot * factor * static_cast<double>(weights.scale[part]) +
                     static_cast<double>(weights.base[i]));
  }
  Reference out;
  for (int64_t j = 0; j < m; ++j) {
    out.pre.push_back(1.0 / (1.0 + std::exp(-values[j])) + config.hc_eps);
    out.post.push_back(2.0 / (1.0 + std::exp(-values[m + j])));
  }
  out.comb.assign(values.begin() + 2 * m, values.end());
  const auto normalize = [&](int64_t stride, int64_t step, double eps) {
    for (int64_t line = 0; line < m; ++line) {
      double total = eps;
      for (int64_t i = 0; i < m; ++i) {
        total += out.comb[line * stride + i * step];
      }
      for (int64_t i = 0; i < m; ++i) {
        out.comb[line * stride + i * step] /= total;
      }
    }
  };
  for (double& value : out.comb) {
    value = std::exp(value);
  }
  normalize(m, 1, 0);
  for (double& value : out.comb) {
    value += config.hc_eps;
  }
  normalize(1, m, config.hc_eps);
  for (int64_t i = 1; i < config.hc_sinkhorn_iters; ++i) {
    normalize(m, 1, config.hc_eps);
    normalize(1, m, config.hc_eps);
  }
  return out;
}

TEST_F(MixesTest, AgreeWithTheFormulasInFloat64) {
  Choices choices(98);
  constexpr int64_t kRows = 5;
  std::vector<float> streams(kRows * kStreams * kHidden);
  for (float& value : streams) {
    value = static_cast<float>(choices.below(2001) - 1000) * (choices.below(30) == 0 ? 1.0F : 1e-3F);
  }
  run(streams);
  for (int64_t row = 0; row < kRows; ++row) {
    const auto want =
        reference_mixes(config_, weights_, fn_.data(), streams.data() + row * kStreams * kHidden);
    for (int64_t j = 0; j < kStreams; ++j) {
      EXPECT_NEAR(mixes_.pre.data()[row * kStreams + j], want.pre[j], 1e-6);
      EXPECT_NEAR(mixes_.post.data()[row * kStreams + j], want.post[j], 2e-6);
    }
    for (int64_t i = 0; i < kStreams * kStreams; ++i) {
      EXPECT_NEAR(mixes_.comb.data()[row * kStreams * kStreams + i], want.comb[i], 1e-6);
    }
  }
}

TEST_F(MixesTest, AllZeroTrunksGiveTheMixesOfTheBase) {
  const std::vector<float> zeros(kStreams * kHidden, 0.0F);
  run(zeros);
  const auto want = reference_mixes(config_, weights_, fn_.data(), zeros.data());
  for (int64_t j = 0; j < kStreams; ++j) {
    EXPECT_NEAR(mixes_.pre.data()[j], want.pre[j], 1e-7);
    EXPECT_NEAR(mixes_.post.data()[j], want.post[j], 1e-7);
  }
  for (int64_t i = 0; i < kStreams * kStreams; ++i) {
    EXPECT_NEAR(mixes_.comb.data()[i], want.comb[i], 1e-7);
  }
}

TEST_F(MixesTest, ExtremeCoefficientsStayFinite) {
  for (float& base : weights_.base) {
    base *= 1e6F;
  }
  run(std::vector<float>(kStreams * kHidden, 1e15F));
  for (int64_t i = 0; i < kStreams * kStreams; ++i) {
    EXPECT_TRUE(std::isfinite(mixes_.comb.data()[i]));
  }
  for (int64_t j = 0; j < kStreams; ++j) {
    EXPECT_TRUE(std::isfinite(mixes_.pre.data()[j]));
    EXPECT_TRUE(std::isfinite(mixes_.post.data()[j]));
  }
}

}  // namespace
}  // namespace hadal::model
