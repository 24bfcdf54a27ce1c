// Drafting and greedy verification against the reference's numbers.

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "draft_run.h"
#include "golden_case.h"
#include "model/draft_layers.h"
#include "sequence_run.h"
#include "tiny_models.h"

namespace hadal::model {
namespace {

std::vector<GoldenRun> draft_runs() {
  std::vector<GoldenRun> runs = all_golden_runs();
  std::erase_if(runs, [](const GoldenRun& run) { return GoldenCase::load(run.name).kind() != "dspark"; });
  return runs;
}

class DraftGoldenTest : public testing::TestWithParam<GoldenRun> {
 protected:
  DraftGoldenTest() : golden_(GoldenCase::load(GetParam().name)), ids_(golden_.token_ids()) {
    model_ =
        load_tiny(golden_.checkpoint(),
                  {.precision = GetParam().mode,
                   .draft_length = tiny_checkpoint(golden_.checkpoint())->config().text.dspark_block_size});
  }
  std::string key(const std::string& part) const { return precision_name(GetParam().mode) + ("." + part); }
  bool exact() const { return GetParam().mode == PrecisionMode::kF32; }
  DraftBlock block(SequenceRun& run, int32_t token) {
    return draft_block(*model_->draft_model(), run.state(), token, model_->vocab_size());
  }

  /// Within the tolerance of the mode: every value, or the mean difference.
  void expect_close(std::span<const float> want, std::span<const float> got, const char* what) const {
    ASSERT_EQ(want.size(), got.size()) << what;
    double greatest = 0;
    double total = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      const double difference = std::fabs(static_cast<double>(want[i]) - static_cast<double>(got[i]));
      greatest = std::max(greatest, difference);
      total += difference;
    }
    if (exact()) {
      EXPECT_LE(greatest, 2e-4) << what;
    }
    const double tolerance = GetParam().mode == PrecisionMode::kQat ? 0.2 : 0.02;
    EXPECT_LT(total / static_cast<double>(want.size()), tolerance) << what;
  }

  GoldenCase golden_;
  std::vector<int32_t> ids_;
  std::unique_ptr<Model> model_;
};

INSTANTIATE_TEST_SUITE_P(All, DraftGoldenTest, testing::ValuesIn(draft_runs()), [](const auto& test) {
  std::string name = test.param.name + "_" + precision_name(test.param.mode);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

TEST(DraftGoldens, AllCasesAreThere) {
  EXPECT_EQ(draft_runs().size(), 9U);
}

TEST_P(DraftGoldenTest, TheFirstBlockIsThatOfTheReference) {
  Capture capture;
  capture.draft = true;
  capture.num_positions = static_cast<int64_t>(ids_.size());
  model_->set_capture(&capture);
  SequenceRun run(*model_, static_cast<int64_t>(ids_.size()));
  run.feed(ids_);
  model_->set_capture(nullptr);
  const auto& want = golden_.mode_info(GetParam().mode).at("draft");
  const auto token = want.at("golden").get<int32_t>();
  if (exact()) {
    EXPECT_EQ(run.best_token(), token);
  }
  const DraftBlock got = block(run, token);
  EXPECT_EQ(got.tokens, want.at("tokens").get<std::vector<int32_t>>());
  const auto& drafts = dynamic_cast<const DraftLayers&>(*model_->draft_model());
  const auto vocab = static_cast<size_t>(model_->vocab_size());
  const auto rows = golden_.floats(key("draft_logits"));
  const auto& features = capture.floats.at("target_features");
  const auto want_features = golden_.floats(key("target_features"));
  std::vector<float> last_features;
  for (int64_t target = 0; target < features.shape[0]; ++target) {
    const auto end = features.values.begin() + (target + 1) * features.shape[1] * features.shape[2];
    last_features.insert(last_features.end(), end - features.shape[2], end);
  }
  expect_close(want_features.values, last_features, "target features");
  expect_close(golden_.floats(key("draft_hidden")).values, drafts.hidden(), "hidden");
  expect_close(rows.row(0), std::span(got.logits).first(vocab), "logits of the first guess");
  expect_close(rows.row(1), std::span(got.logits).last(vocab), "logits of the last guess");
  expect_close(want.at("confidence").get<std::vector<float>>(), got.confidences, "confidences");
}

TEST_P(DraftGoldenTest, DraftingAndVerifyingGoesAsInTheReference) {
  SequenceRun run(*model_, static_cast<int64_t>(ids_.size()));
  run.feed(ids_);
  const auto& info = golden_.mode_info(GetParam().mode);
  int64_t rounds = 0;
  int64_t same = 0;
  for (const auto& want : info.at("speculative")) {
    const auto segment = want.at("verified_in").get<std::vector<int32_t>>();
    const int64_t start = run.length();
    run.feed(segment);
    std::vector<int32_t> emitted;
    for (int64_t i = start; i < run.length(); ++i) {
      const auto row = run.logits_at(i);
      emitted.push_back(static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
      if (i + 1 < run.length() && emitted.back() != segment[static_cast<size_t>(i - start + 1)]) {
        break;
      }
    }
    bool is_same = emitted == want.at("emitted").get<std::vector<int32_t>>();
    const auto accepted = want.at("accepted").get<int64_t>();
    run.truncate(start + 1 + accepted);
    EXPECT_EQ(run.length(), want.at("golden_position").get<int64_t>());
    const DraftBlock got = block(run, want.at("next_golden").get<int32_t>());
    is_same = is_same && got.tokens == want.at("draft_tokens").get<std::vector<int32_t>>();
    if (is_same) {
      expect_close(want.at("confidence").get<std::vector<float>>(), got.confidences, "confidences");
    }
    ++rounds;
    same += is_same ? 1 : 0;
  }
  ASSERT_GT(rounds, 0);
  // A cached value next to a rounding boundary may round the other way and change a choice.
  const double least = exact() ? 1.0 : GetParam().mode == PrecisionMode::kF32Kvq ? 0.85 : 0.8;
  EXPECT_GE(static_cast<double>(same) / static_cast<double>(rounds), least);
}

}  // namespace
}  // namespace hadal::model
