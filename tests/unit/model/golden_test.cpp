// The model against the reference's numbers, with the tolerances that tests/data/model/README.md gives.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden_case.h"
#include "sequence_run.h"
#include "tiny_models.h"

namespace hadal::model {
namespace {

std::string run_name(const testing::TestParamInfo<GoldenRun>& test) {
  std::string name = test.param.name + "_" + precision_name(test.param.mode);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

class GoldenTest : public testing::TestWithParam<GoldenRun> {
 protected:
  GoldenTest() : golden_(GoldenCase::load(GetParam().name)), ids_(golden_.token_ids()) {
    TinyChoice choice{.precision = GetParam().mode};
    if (golden_.kind() == "replay") {
      choice.replay = ReplayMode::kMask;
      choice.replay_keep = golden_.info().at("replay_keep").get<int64_t>();
      valid_from_ = golden_.mode_info(GetParam().mode).at("valid_from").get<int64_t>();
    }
    model_ = load_tiny(golden_.checkpoint(), choice);
  }
  std::string key(const std::string& part) const { return precision_name(GetParam().mode) + ("." + part); }
  int64_t num_positions() const { return static_cast<int64_t>(ids_.size()); }

  GoldenCase golden_;
  std::vector<int32_t> ids_;
  int64_t valid_from_ = 0;  ///< rows before it are not meaningful
  std::unique_ptr<Model> model_;
};

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, testing::ValuesIn(all_golden_runs()), run_name);

/// Those with hidden states, and those with a greedy continuation.
class GoldenDetailTest : public GoldenTest {};
class GoldenContinuationTest : public GoldenTest {};

template <class Predicate>
std::vector<GoldenRun> runs_where(Predicate&& predicate) {
  std::vector<GoldenRun> runs = all_golden_runs();
  std::erase_if(runs, [&](const GoldenRun& run) { return !predicate(GoldenCase::load(run.name), run.mode); });
  return runs;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenDetailTest,
                         testing::ValuesIn(runs_where([](const GoldenCase& golden, PrecisionMode mode) {
                           return golden.has(precision_name(mode) + std::string(".streams"));
                         })),
                         run_name);
INSTANTIATE_TEST_SUITE_P(All, GoldenContinuationTest,
                         testing::ValuesIn(runs_where([](const GoldenCase& golden, PrecisionMode mode) {
                           return golden.mode_info(mode).contains("continuation");
                         })),
                         run_name);

TEST(Goldens, AllCasesAreThere) {
  std::set<std::string> names;
  for (const auto& run : all_golden_runs()) {
    names.insert(run.name);
  }
  EXPECT_EQ(names.size(), 25U);
  EXPECT_EQ(all_golden_runs().size(), 43U);
}

TEST_P(GoldenTest, LogitsAreWithinTolerance) {
  SequenceRun run(*model_, num_positions());
  run.feed(ids_);
  const auto top_ids = golden_.ids(key("top_ids"));
  const auto top_values = golden_.floats(key("top_values"));
  const auto logits = golden_.floats(key("logits"));
  const auto logit_positions = golden_.info().at("full_logits_positions").get<std::vector<int64_t>>();
  std::vector<double> differences;
  int64_t same_argmax = 0;
  for (int64_t t = valid_from_; t < num_positions(); ++t) {
    const auto got = run.logits_at(t);
    double largest = 0;
    const auto want_ids = top_ids.row(t);
    for (size_t i = 0; i < want_ids.size(); ++i) {
      largest = std::max(largest, std::fabs(static_cast<double>(got[static_cast<size_t>(want_ids[i])]) -
                                            static_cast<double>(top_values.row(t)[i])));
    }
    const auto listed = std::find(logit_positions.begin(), logit_positions.end(), t);
    if (listed != logit_positions.end()) {
      const auto want = logits.row(listed - logit_positions.begin());
      ASSERT_EQ(want.size(), got.size());
      for (size_t i = 0; i < want.size(); ++i) {
        largest = std::max(largest, std::fabs(static_cast<double>(got[i]) - static_cast<double>(want[i])));
      }
    }
    differences.push_back(largest);
    same_argmax += std::max_element(got.begin(), got.end()) - got.begin() == want_ids[0] ? 1 : 0;
  }
  const auto count = static_cast<double>(differences.size());
  const double greatest = *std::max_element(differences.begin(), differences.end());
  const double mean = std::accumulate(differences.begin(), differences.end(), 0.0) / count;
  const double argmax = static_cast<double>(same_argmax) / count;
  const double close = static_cast<double>(std::count_if(differences.begin(), differences.end(),
                                                         [](double d) { return d <= 1e-3; })) /
                       count;
  RecordProperty("greatest_difference", std::to_string(greatest));
  switch (GetParam().mode) {
    case PrecisionMode::kF32:
      EXPECT_LE(greatest, 2e-4);
      EXPECT_EQ(argmax, 1.0);
      break;
    case PrecisionMode::kF32Kvq:
      EXPECT_GE(close, 0.85);
      EXPECT_LT(mean, 0.02);
      EXPECT_GE(argmax, 0.98);
      break;
    default:
      // The tolerance is a mean of 0.2 over all logits; these are each position's greatest of some.
      EXPECT_LT(mean, 0.4);
      EXPECT_GT(argmax, 0.8);
  }
}

/// Share of the rows [first, rows) of two id arrays [rows, width] whose sets (without padding) are equal.
double same_sets(std::span<const int32_t> want, std::span<const int64_t> got, int64_t rows, int64_t first) {
  const auto set_of = [rows](auto values, int64_t row) {
    const size_t width = values.size() / static_cast<size_t>(rows);
    const auto part = values.subspan(static_cast<size_t>(row) * width, width);
    std::multiset<int64_t> set(part.begin(), part.end());
    set.erase(-1);
    return set;
  };
  int64_t same = 0;
  for (int64_t row = first; row < rows; ++row) {
    same += set_of(want, row) == set_of(got, row) ? 1 : 0;
  }
  return static_cast<double>(same) / static_cast<double>(rows - first);
}

TEST_P(GoldenTest, DiscreteChoicesAreThoseOfTheReference) {
  Capture capture;
  capture.router = capture.index = capture.engram = true;
  capture.num_positions = num_positions();
  model_->set_capture(&capture);
  SequenceRun run(*model_, num_positions());
  run.feed(ids_);
  const double least = GetParam().mode == PrecisionMode::kF32 ? 1.0 : 0.98;
  size_t compared = 0;

  const auto experts = golden_.ids(key("experts"));
  const auto& got_experts = capture.ids.at("experts");
  ASSERT_EQ(got_experts.shape, experts.shape);
  double shares = 0;
  for (int64_t layer = 0; layer < experts.shape[0]; ++layer) {
    const auto want = experts.row(layer);
    const auto got =
        std::span(got_experts.values).subspan(static_cast<size_t>(layer) * want.size(), want.size());
    shares += same_sets(want, got, num_positions(), valid_from_);
    ++compared;
  }
  EXPECT_GE(shares / static_cast<double>(experts.shape[0]), least);
  for (const std::string& name : golden_.names(key("topk."))) {
    const auto& got = capture.ids.at(name.substr(key("").size()));
    EXPECT_GE(same_sets(golden_.ids(name).values, got.values, num_positions(), valid_from_), least) << name;
    ++compared;
  }
  if (golden_.has(key("candidates"))) {
    const auto& got = capture.ids.at("candidates");
    EXPECT_GE(same_sets(golden_.ids(key("candidates")).values, got.values, num_positions(), valid_from_),
              least);
    ++compared;
  }
  for (const std::string& name : golden_.names("engram_ids.")) {
    const auto want = golden_.ids(name);
    const auto& got = capture.ids.at(name);
    ASSERT_EQ(got.shape, want.shape);
    EXPECT_TRUE(std::equal(want.values.begin(), want.values.end(), got.values.begin())) << name;
    ++compared;
  }
  const auto& text = model_->config().text;
  EXPECT_EQ(compared, static_cast<size_t>(text.num_hidden_layers) + text.index_source_layer_ids.size() +
                          (text.candidate_source_layer_id ? 1 : 0) + text.engram_layer_ids.size());
}

TEST_P(GoldenDetailTest, HiddenStatesAndRouterWeightsAreWithinTolerance) {
  Capture capture;
  capture.hidden = capture.router = true;
  capture.num_positions = num_positions();
  model_->set_capture(&capture);
  SequenceRun run(*model_, num_positions());
  run.feed(ids_);
  for (const char* part : {"streams", "expert_weights"}) {
    const auto want = golden_.floats(key(part));
    const auto& got = capture.floats.at(part);
    ASSERT_EQ(got.shape, want.shape) << part;
    double total = 0;
    double greatest = 0;
    for (size_t i = 0; i < got.values.size(); ++i) {
      const double difference =
          std::fabs(static_cast<double>(got.values[i]) - static_cast<double>(want.values[i]));
      total += difference;
      greatest = std::max(greatest, difference);
    }
    if (GetParam().mode == PrecisionMode::kF32) {
      EXPECT_LE(greatest, 2e-4) << part;
    }
    EXPECT_LE(total / static_cast<double>(got.values.size()), 0.02) << part;
  }
}

TEST_P(GoldenContinuationTest, GreedyDecodingGivesTheTokensOfTheReference) {
  const auto want = golden_.mode_info(GetParam().mode).at("continuation").get<std::vector<int32_t>>();
  SequenceRun run(*model_, num_positions());
  run.feed(ids_, 1);
  std::vector<int32_t> tokens;
  while (tokens.size() < want.size()) {
    tokens.push_back(run.best_token());
    run.feed({&tokens.back(), 1});
  }
  EXPECT_EQ(tokens, want);
}

}  // namespace
}  // namespace hadal::model
