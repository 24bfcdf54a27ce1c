// What tools/make_sampler_goldens.py computed without this code.

#include <cstdlib>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/philox.h"
#include "engine/sampler.h"
#include "test_rows.h"

namespace hadal::engine {
namespace {

nlohmann::json goldens() {
  std::ifstream file(HADAL_ENGINE_TEST_DATA "/sampler_goldens.json");
  return nlohmann::json::parse(file);
}

TEST(SamplerGoldens, NoiseIsTheSameToTheLastBit) {
  const nlohmann::json noise = goldens().at("noise");
  ASSERT_GT(noise.size(), 100U);
  for (const auto& [word, value] : noise.get<std::vector<std::pair<uint32_t, std::string>>>()) {
    EXPECT_EQ(gumbel_of_word(word), std::strtod(value.c_str(), nullptr)) << word;
  }
}

TEST(SamplerGoldens, EveryInstructionSetGivesTheTokensAndLogprobs) {
  const nlohmann::json cases = goldens().at("cases");
  ASSERT_GT(cases.size(), 200U);
  for (const RowKernels* kernels : available_row_kernels()) {
    Sampler sampler(*kernels);
    for (const auto& golden : cases) {
      const std::vector<float> row =
          make_row(golden.at("row").get<std::string>(), golden.at("row_seed"), golden.at("vocab"));
      SamplingParams params;
      params.temperature = golden.at("temperature");
      params.top_p = golden.at("top_p");
      params.top_k = golden.at("top_k");
      params.seed = golden.at("seed");
      params.top_logprobs = golden.at("top_logprobs");
      const Result<OutputToken> sampled = sampler.sample(row, params, golden.at("position"));
      ASSERT_TRUE(sampled) << sampled.error().message;
      EXPECT_EQ(sampled->token, golden.at("token").get<int32_t>()) << kernels->name << golden;
      EXPECT_NEAR(sampled->logprob, golden.at("logprob").get<double>(), 2e-6) << kernels->name << golden;
      const auto top = golden.at("top").get<std::vector<std::pair<int32_t, double>>>();
      ASSERT_EQ(sampled->top.size(), top.size()) << golden;
      for (size_t i = 0; i < top.size(); ++i) {
        EXPECT_EQ(sampled->top[i].token, top[i].first) << golden;
        EXPECT_NEAR(sampled->top[i].logprob, top[i].second, 2e-6 + 1e-7 * std::abs(top[i].second)) << golden;
      }
    }
  }
}

}  // namespace
}  // namespace hadal::engine
