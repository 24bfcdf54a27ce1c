#include "model/hyper_connection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "model/reproducible_math.h"

namespace hadal::model {
namespace {

constexpr int64_t kMaxStreams = 8;

/// Softmax over rows, then Sinkhorn normalization, in float64: m x m values at comb.
void sinkhorn(std::span<double> comb, int64_t m, int64_t iterations, double eps) {
  for (int64_t j = 0; j < m; ++j) {
    double* row = comb.data() + j * m;
    const double highest = *std::max_element(row, row + m);
    double total = 0;
    for (int64_t k = 0; k < m; ++k) {
      row[k] = reproducible_exp(std::max(row[k] - highest, -700.0));
      total += row[k];
    }
    for (int64_t k = 0; k < m; ++k) {
      row[k] = row[k] / total + eps;
    }
  }
  const auto normalize_columns = [&] {
    for (int64_t k = 0; k < m; ++k) {
      double total = eps;
      for (int64_t j = 0; j < m; ++j) {
        total += comb[j * m + k];
      }
      for (int64_t j = 0; j < m; ++j) {
        comb[j * m + k] /= total;
      }
    }
  };
  const auto normalize_rows = [&] {
    for (int64_t j = 0; j < m; ++j) {
      double total = eps;
      for (int64_t k = 0; k < m; ++k) {
        total += comb[j * m + k];
      }
      for (int64_t k = 0; k < m; ++k) {
        comb[j * m + k] /= total;
      }
    }
  };
  normalize_columns();
  for (int64_t i = 1; i < iterations; ++i) {
    normalize_rows();
    normalize_columns();
  }
}

}  // namespace

void hyper_connection_mixes(Operators& operators, const HyperConnectionWeights& weights,
                            const checkpoint::TextConfig& config, const float* streams, int64_t rows,
                            Buffer<float>& raw_buffer, Mixes& mixes) {
  const int64_t m = config.hc_mult;
  const int64_t width = m * config.hidden_size;
  const int64_t count = (2 + m) * m;
  float* raw = raw_buffer.reserve(rows * count);
  operators.linear(weights.fn, streams, rows, raw, OutputKind::kWide);
  float* pre = mixes.pre.reserve(rows * m);
  float* post = mixes.post.reserve(rows * m);
  float* comb = mixes.comb.reserve(rows * m * m);
  // The Sinkhorn iterations weigh about as much as a few thousand products.
  operators.each_row(rows, width + 8192, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const double mean =
          static_cast<double>(operators.kernels().sum_of_squares(streams + t * width, width)) /
          static_cast<double>(width);
      const double factor = 1.0 / std::sqrt(mean + config.rms_norm_eps);
      const auto value = [&](int64_t i, int64_t part) {
        return static_cast<double>(raw[t * count + i]) * factor * static_cast<double>(weights.scale[part]) +
               static_cast<double>(weights.base[i]);
      };
      for (int64_t j = 0; j < m; ++j) {
        pre[t * m + j] = static_cast<float>(reproducible_sigmoid(value(j, 0)) + config.hc_eps);
        post[t * m + j] = static_cast<float>(2.0 * reproducible_sigmoid(value(m + j, 1)));
      }
      std::array<double, kMaxStreams * kMaxStreams> mixed{};
      for (int64_t i = 0; i < m * m; ++i) {
        mixed[i] = value(2 * m + i, 2);
      }
      sinkhorn(mixed, m, config.hc_sinkhorn_iters, config.hc_eps);
      for (int64_t i = 0; i < m * m; ++i) {
        comb[t * m * m + i] = static_cast<float>(mixed[i]);
      }
    }
  });
}

void collapse_trunk(const Operators& operators, const checkpoint::TextConfig& config, const float* streams,
                    const float* pre, int64_t rows, float* x) {
  const int64_t m = config.hc_mult;
  const int64_t hidden = config.hidden_size;
  operators.each_row(rows, m * hidden, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      operators.kernels().hc_collapse(streams + row * m * hidden, pre + row * m, m, hidden, x + row * hidden);
      operators.border(x + row * hidden, hidden);
    }
  });
}

void expand_trunk(const Operators& operators, const checkpoint::TextConfig& config, const float* y,
                  const Mixes& mixes, int64_t rows, float* streams) {
  const int64_t m = config.hc_mult;
  const int64_t hidden = config.hidden_size;
  operators.each_row(rows, m * m * hidden, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* trunk = streams + row * m * hidden;
      operators.kernels().hc_expand(y + row * hidden, mixes.post.data() + row * m,
                                    mixes.comb.data() + row * m * m, m, hidden, trunk);
      operators.border(trunk, m * hidden);
    }
  });
}

void start_trunk(const Operators& operators, const checkpoint::TextConfig& config, const uint8_t* embedding,
                 float* streams, float* pre) {
  const int64_t hidden = config.hidden_size;
  operators.kernels().decode_bf16(embedding, hidden, streams);
  for (int64_t j = 1; j < config.hc_mult; ++j) {
    std::memcpy(streams + j * hidden, streams, static_cast<size_t>(hidden) * sizeof(float));
  }
  // The very first sub-layer reads stream 0 only.
  std::fill_n(pre, config.hc_mult, 0.0F);
  pre[0] = 1.0F;
}

}  // namespace hadal::model
