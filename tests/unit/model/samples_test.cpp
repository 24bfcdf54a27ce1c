// The shipped checkpoint answers its own samples in the served precision.

#include <algorithm>
#include <fstream>
#include <iostream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sequence_run.h"
#include "tiny_models.h"

namespace hadal::model {
namespace {

TEST(Samples, EveryGreedyTokenIsReproduced) {
  const auto model = load_tiny("models/tiny");
  std::ifstream file(HADAL_MODELS "/tiny/samples.jsonl");
  ASSERT_TRUE(file.is_open());
  int samples = 0;
  for (std::string line; std::getline(file, line); ++samples) {
    const auto sample = nlohmann::json::parse(line);
    const auto prompt = sample.at("prompt_ids").get<std::vector<int32_t>>();
    const auto want = sample.at("output_ids").get<std::vector<int32_t>>();
    SequenceRun run(*model, static_cast<int64_t>(prompt.size()));
    run.feed(prompt, 1);
    for (size_t i = 0; i < want.size(); ++i) {
      const int32_t best = run.best_token();
      const auto logits = run.logits_at(run.length() - 1);
      ASSERT_EQ(best, want[i]) << "sample " << sample.at("id") << ", token " << i << ", logit gap "
                               << logits[static_cast<size_t>(best)] - logits[static_cast<size_t>(want[i])]
                               << ", smallest margin of the sample " << sample.at("smallest_margin");
      run.feed({&want[i], 1});
    }
  }
  EXPECT_EQ(samples, 30);
}

}  // namespace
}  // namespace hadal::model
