// How long one row of 129,280 logits takes, on one thread, for each instruction set. Two rows: "peaked",
// where a few tokens hold nearly all of the probability as after most prefixes of a text, and "flat", where
// thousands share it. The floor to compare with is reading the row once (read_row).

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "engine/philox.h"
#include "engine/sampler.h"

namespace hadal::engine {
namespace {

constexpr int64_t kVocab = 129280;

/// Normally distributed logits; in a peaked row some dozens of tokens stand out.
std::vector<float> make_row(bool peaked) {
  std::vector<float> row;
  for (int64_t token = 0; token < kVocab; ++token) {
    const PhiloxCounter words = philox4x32({static_cast<uint32_t>(token), 0, 0, 1}, {7, 0});
    const double radius = std::sqrt(-2 * std::log((words[0] + 0.5) * 0x1p-32));
    double logit = 2.5 * radius * std::cos(6.283185307179586 * words[1] * 0x1p-32);
    if (peaked && words[2] % 2000 == 0) {
      logit += 8 + 14 * (words[3] * 0x1p-32);
    }
    row.push_back(static_cast<float>(logit));
  }
  return row;
}

struct Setting {
  const char* name;
  double temperature;
  double top_p;
  int64_t top_k;
  int64_t top_logprobs;
};

constexpr Setting kSettings[] = {
    {"greedy", 0, 1, -1, -1},
    {"temperature_1", 1, 1, -1, -1},
    {"temperature_0.6", 0.6, 1, -1, -1},
    {"top_p_0.95", 1, 0.95, -1, -1},
    {"top_k_50", 1, 1, 50, -1},
    {"top_p_0.95_top_k_50", 1, 0.95, 50, -1},
    {"greedy_logprobs_20", 0, 1, -1, 20},
    {"top_p_0.95_logprobs_20", 1, 0.95, -1, 20},
};

void sample_row(benchmark::State& state, const RowKernels& kernels, const Setting& setting, bool peaked) {
  const std::vector<float> row = make_row(peaked);
  SamplingParams params;
  params.temperature = setting.temperature;
  params.top_p = setting.top_p;
  params.top_k = setting.top_k;
  params.top_logprobs = setting.top_logprobs;
  Sampler sampler(kernels);
  int64_t position = 0;
  for (auto _ : state) {
    params.seed = static_cast<uint64_t>(position) * 77;
    benchmark::DoNotOptimize(sampler.sample(row, params, position++));
  }
}

void read_row(benchmark::State& state) {
  const std::vector<float> row = make_row(true);
  std::vector<uint64_t> words(kVocab / 2);
  std::memcpy(words.data(), row.data(), row.size() * sizeof(float));
  for (auto _ : state) {
    uint64_t sum = 0;
    for (const uint64_t word : words) {
      sum += word;
    }
    benchmark::DoNotOptimize(sum);
  }
}

void register_all() {
  benchmark::RegisterBenchmark("read_row", read_row)->Unit(benchmark::kMicrosecond);
  for (const RowKernels* kernels : available_row_kernels()) {
    for (const bool peaked : {true, false}) {
      for (const Setting& setting : kSettings) {
        const std::string name =
            std::string(kernels->name) + (peaked ? "/peaked/" : "/flat/") + std::string(setting.name);
        benchmark::RegisterBenchmark(name.c_str(), [kernels, &setting, peaked](benchmark::State& state) {
          sample_row(state, *kernels, setting, peaked);
        })->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace
}  // namespace hadal::engine

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  hadal::engine::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
