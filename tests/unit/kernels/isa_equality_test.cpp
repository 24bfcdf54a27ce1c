// Every operator gives the same bits with AVX2 and AVX-512 as the scalar table, on every kind of input.

#include <algorithm>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "kernels/quantize.h"
#include "test_data.h"
#include "test_weights.h"

namespace hadal::kernels {
namespace {

class IsaEqualityTest : public IsaTest {
 protected:
  /// Calls run(table, output) for both tables and compares what they write into `size` floats.
  void expect_equal(int64_t size, const std::function<void(const Kernels&, float*)>& run) const {
    std::vector<float> want(static_cast<size_t>(size), 3.0F);
    std::vector<float> got = want;
    run(scalar(), want.data());
    run(kernels(), got.data());
    EXPECT_TRUE(same_bits(want, got));
  }
};

INSTANTIATE_TEST_SUITE_P(Isas, IsaEqualityTest, testing::Values(Isa::kAvx2, Isa::kAvx512), isa_test_name);

template <class Body>
void for_each_spread(Body&& body) {
  for (const Spread spread : kAllSpreads) {
    SCOPED_TRACE(spread_name(spread));
    body(spread);
  }
}

TEST_P(IsaEqualityTest, Linear) {
  Random random(11);
  for_each_spread([&](Spread spread) {
    for (const WeightFormat format : kAllWeightFormats) {
      for (const int64_t tokens : {1, 2, 3, 4, 5, 6, 7, 8, 9, 23, 24, 25, 49}) {
        for (const int64_t cols : {32, 96, 2112}) {
          if (cols > 96 && tokens > 9 && tokens != 25) {
            continue;  // the same path as 25 tokens
          }
          SCOPED_TRACE(testing::Message()
                       << weight_format_name(format) << ", " << tokens << " tokens, " << cols);
          const int64_t rows = 11;
          const auto weight = make_weight(random, format, rows, cols, {.spread = spread});
          const auto packed = make_values(random, tokens * cols, spread);
          expect_equal(tokens * rows, [&](const Kernels& table, float* y) {
            table.linear(weight.view(), 1, rows - 1, packed.data(), cols, tokens, y, rows);
          });
        }
      }
    }
  });
}

TEST_P(IsaEqualityTest, LinearUnderTheWholeRangeOfScales) {
  Random random(12);
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp4}) {
    for (const int64_t tokens : {1, 7}) {
      for (int round = 0; round < 40; ++round) {
        const int64_t rows = 9;
        const int64_t cols = 256;
        const auto weight =
            make_weight(random, format, rows, cols, {.lowest_scale = 0, .highest_scale = 246});
        auto packed = make_values(random, tokens * cols);
        for (float& value : packed) {
          value *= 1e-3F;  // the largest weights come close to the end of the float32 range
        }
        expect_equal(tokens * rows, [&](const Kernels& table, float* y) {
          table.linear(weight.view(), 0, rows, packed.data(), cols, tokens, y, rows);
        });
      }
    }
  }
}

TEST_P(IsaEqualityTest, PackInput) {
  Random random(13);
  for_each_spread([&](Spread spread) {
    for (const InputRounding rounding : {InputRounding::kNone, InputRounding::kBf16, InputRounding::kFp8}) {
      const auto x = make_values(random, 3 * 200, spread);
      expect_equal(3 * 160, [&](const Kernels& table, float* packed) {
        table.pack_input(x.data(), 200, 3, 160, rounding, packed);
      });
    }
  });
}

TEST_P(IsaEqualityTest, Norms) {
  Random random(14);
  for_each_spread([&](Spread spread) {
    for (const int64_t n : {16, 48, 512, 1280}) {
      const auto x = make_values(random, n, spread);
      const auto weight = make_bf16(random, n);
      for (const float eps : {1e-20F, 1e-6F}) {
        expect_equal(
            n, [&](const Kernels& table, float* y) { table.rms_norm(x.data(), weight.data(), n, eps, y); });
      }
    }
    for (int64_t n = 1; n <= 70; ++n) {
      const auto x = make_values(random, n, spread);
      expect_equal(1, [&](const Kernels& table, float* y) { *y = table.sum_of_squares(x.data(), n); });
    }
  });
}

TEST_P(IsaEqualityTest, HyperConnections) {
  Random random(15);
  for_each_spread([&](Spread spread) {
    for (const int64_t streams : {1, 2, 4, 8}) {
      for (const int64_t n : {1, 15, 16, 17, 64, 100}) {
        const auto trunk = make_values(random, streams * n, spread);
        const auto y = make_values(random, n, spread);
        const auto pre = make_values(random, streams);
        const auto comb = make_values(random, streams * streams);
        expect_equal(n, [&](const Kernels& table, float* out) {
          table.hc_collapse(trunk.data(), pre.data(), streams, n, out);
        });
        expect_equal(streams * n, [&](const Kernels& table, float* out) {
          std::copy(trunk.begin(), trunk.end(), out);
          table.hc_expand(y.data(), pre.data(), comb.data(), streams, n, out);
        });
      }
    }
  });
}

TEST_P(IsaEqualityTest, Elementwise) {
  Random random(16);
  for_each_spread([&](Spread spread) {
    for (const int64_t n : {1, 7, 16, 31, 32, 100}) {
      const auto a = make_values(random, n, spread);
      const auto b = make_values(random, n, spread);
      for (const float limit : {0.0F, 1.0F, 10.0F}) {
        expect_equal(
            n, [&](const Kernels& table, float* y) { table.swiglu(a.data(), b.data(), n, limit, 0.37F, y); });
      }
      expect_equal(n, [&](const Kernels& table, float* y) {
        std::copy(b.begin(), b.end(), y);
        table.add(a.data(), n, y);
      });
      expect_equal(n, [&](const Kernels& table, float* y) {
        std::copy(a.begin(), a.end(), y);
        table.round_bf16(y, n);
      });
      const int64_t half = n / 2;
      const auto angles = make_values(random, 2 * half + 1);
      for (const bool inverse : {false, true}) {
        expect_equal(n, [&](const Kernels& table, float* y) {
          std::copy(a.begin(), a.end(), y);
          table.rope(y, n, angles.data(), angles.data() + half, half, inverse);
        });
      }
    }
  });
}

TEST_P(IsaEqualityTest, SwigluOverTheWholeRangeOfExp) {
  std::vector<float> gate;
  for (float x = -130.0F; x <= 130.0F; x += 0.0371F) {
    gate.push_back(x);
  }
  const auto n = static_cast<int64_t>(gate.size());
  expect_equal(
      n, [&](const Kernels& table, float* y) { table.swiglu(gate.data(), gate.data(), n, 0.0F, 1.0F, y); });
}

TEST_P(IsaEqualityTest, DecodedBytes) {
  Random random(17);
  for (const int64_t n : {32, 64, 512}) {
    for (const RowFormat format :
         {RowFormat::kF32, RowFormat::kFp8, RowFormat::kFp4Kv, RowFormat::kFp4Index}) {
      for (int round = 0; round < 20; ++round) {
        const auto row = random.bytes(row_bytes(format, n));
        expect_equal(n, [&](const Kernels& table, float* y) { table.decode_row(format, row.data(), n, y); });
      }
    }
  }
  for (const int64_t n : {1, 16, 33, 100}) {
    const auto halves = random.bytes(2 * n);
    expect_equal(n, [&](const Kernels& table, float* y) { table.decode_bf16(halves.data(), n, y); });
  }
}

TEST_P(IsaEqualityTest, Attend) {
  Random random(18);
  for_each_spread([&](Spread spread) {
    for (const int64_t heads : {1, 3, 4, 9}) {
      for (const int64_t num_keys : {0, 1, 2, 5, 15, 16, 17, 48, 131}) {
        for (const int64_t dim : {16, 32, 80, 128}) {
          const auto q = make_values(random, heads * dim, spread);
          const auto keys = make_values(random, num_keys * dim, spread);
          const auto sinks = make_values(random, heads);
          std::vector<float> scores(static_cast<size_t>(heads * ((num_keys + 15) / 16 * 16)));
          expect_equal(heads * dim, [&](const Kernels& table, float* out) {
            table.attend(q.data(), keys.data(), num_keys, heads, dim, 0.125F, sinks.data(), scores.data(),
                         out);
          });
        }
      }
    }
  });
}

TEST_P(IsaEqualityTest, IndexScores) {
  Random random(19);
  for_each_spread([&](Spread spread) {
    for (const int64_t heads : {1, 3, 4, 32}) {
      for (const int64_t num_keys : {1, 15, 16, 17, 40}) {
        for (const int64_t dim : {32, 128}) {
          const int64_t tiles = (num_keys + 15) / 16;
          const auto q = make_values(random, heads * dim, spread);
          const auto weights = make_values(random, heads);
          const auto keys_t = make_values(random, tiles * 16 * dim, spread);
          expect_equal(num_keys + 16, [&](const Kernels& table, float* scores) {
            table.index_scores(q.data(), weights.data(), heads, dim, keys_t.data(), num_keys, 0.1F, scores);
          });
        }
      }
    }
    for (int64_t count = 0; count <= 16; ++count) {
      const auto keys = make_values(random, 16 * 48, spread);
      expect_equal(16 * 48, [&](const Kernels& table, float* out) {
        table.transpose_keys(keys.data(), count, 48, out);
      });
    }
  });
}

TEST_P(IsaEqualityTest, PoolGroup) {
  Random random(20);
  for_each_spread([&](Spread spread) {
    for (const int64_t ratio : {1, 2, 3, 4}) {
      for (const int64_t n : {16, 64, 512}) {
        const auto values = make_values(random, ratio * n, spread);
        const auto gates = make_values(random, ratio * n, spread);
        std::vector<const float*> value_rows;
        std::vector<const float*> gate_rows;
        for (int64_t j = 0; j < ratio; ++j) {
          value_rows.push_back(values.data() + j * n);
          gate_rows.push_back(gates.data() + j * n);
        }
        expect_equal(n, [&](const Kernels& table, float* latent) {
          table.pool_group(value_rows.data(), gate_rows.data(), ratio, n, latent);
        });
      }
    }
  });
}

TEST_P(IsaEqualityTest, EngramMix) {
  Random random(21);
  for_each_spread([&](Spread spread) {
    for (const int64_t streams : {1, 4}) {
      for (const int64_t n : {16, 96, 5120}) {
        const auto key = make_values(random, streams * n, spread);
        const auto value = make_values(random, n, spread);
        const auto trunk = make_values(random, streams * n, spread);
        const auto q_weight = make_bf16(random, streams * n);
        const auto k_weight = make_bf16(random, streams * n);
        expect_equal(streams * n, [&](const Kernels& table, float* out) {
          std::copy(trunk.begin(), trunk.end(), out);
          table.engram_mix(key.data(), value.data(), q_weight.data(), k_weight.data(), streams, n, 1e-20F,
                           out);
        });
      }
    }
  });
}

}  // namespace
}  // namespace hadal::kernels
