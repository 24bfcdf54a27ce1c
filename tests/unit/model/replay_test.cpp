// Bounded replay: computing only the last prompt tokens in the decoder half is the same as computing all of
// them under the cut windows.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sequence_run.h"
#include "tiny_models.h"

namespace hadal::model {
namespace {

struct Choice {
  const char* checkpoint;
  PrecisionMode precision;
  int64_t keep;
};

class ReplayTest : public testing::TestWithParam<Choice> {
 protected:
  std::unique_ptr<Model> load(ReplayMode mode) const {
    const auto& [checkpoint, precision, keep] = GetParam();
    return load_tiny(checkpoint, {.precision = precision, .replay = mode, .replay_keep = keep});
  }
  static constexpr int64_t kPrompt = 75;
  static constexpr int64_t kDecoded = 20;
  int64_t valid_from() const { return kPrompt - GetParam().keep; }
  std::vector<int32_t> ids_ = random_ids(40, kPrompt + kDecoded);
};

INSTANTIATE_TEST_SUITE_P(All, ReplayTest,
                         testing::Values(Choice{"tiny", PrecisionMode::kProduct, 24},
                                         Choice{"tiny-long", PrecisionMode::kProduct, 14},
                                         Choice{"tiny-long", PrecisionMode::kQat, 20},
                                         Choice{"tiny-mini", PrecisionMode::kF32, 22}),
                         [](const auto& test) {
                           std::string name = std::string(test.param.checkpoint) + "_" +
                                              precision_name(test.param.precision);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(ReplayTest, CompactEqualsMaskOnTheRowsThatCountAndWhileDecoding) {
  const auto mask = load(ReplayMode::kMask);
  SequenceRun want(*mask, kPrompt);
  want.feed(std::span(ids_).first(kPrompt));
  want.feed_in_chunks(std::span(ids_).subspan(kPrompt), 1);
  const auto compact = load(ReplayMode::kCompact);
  for (const int64_t chunk : {kPrompt, int64_t{64}, int64_t{7}, int64_t{1}}) {
    SCOPED_TRACE(chunk);
    SequenceRun run(*compact, kPrompt);
    while (run.length() < kPrompt) {
      const int64_t count = std::min(chunk, kPrompt - run.length());
      const int64_t wanted = std::clamp<int64_t>(run.length() + count - valid_from(), 0, count);
      run.feed(std::span(ids_).subspan(static_cast<size_t>(run.length()), static_cast<size_t>(count)),
               wanted);
    }
    run.feed_in_chunks(std::span(ids_).subspan(kPrompt), 1);
    const auto from = static_cast<size_t>(valid_from() * mask->vocab_size());
    EXPECT_TRUE(same_logits(want.logits().subspan(from), run.logits().subspan(from), mask->vocab_size()));
    EXPECT_TRUE(same_state(mask->config().text, want.state(), run.state()));
  }
}

TEST_P(ReplayTest, RowsThatAreAskedForAreComputedLikeInMask) {
  const auto mask = load(ReplayMode::kMask);
  const auto compact = load(ReplayMode::kCompact);
  const auto prompt = std::span(ids_).first(kPrompt);
  EXPECT_TRUE(same_logits(whole_run(*mask, prompt), whole_run(*compact, prompt), mask->vocab_size()));
}

TEST_P(ReplayTest, ShortPromptsAreNotCut) {
  const auto off = load(ReplayMode::kOff);
  const auto compact = load(ReplayMode::kCompact);
  const auto prompt = std::span(ids_).first(static_cast<size_t>(GetParam().keep));
  EXPECT_TRUE(same_logits(whole_run(*off, prompt), whole_run(*compact, prompt), off->vocab_size()));
}

TEST_P(ReplayTest, LongPromptsAreAnApproximation) {
  // Or else the tests above would compare nothing.
  const auto off = load(ReplayMode::kOff);
  const auto compact = load(ReplayMode::kCompact);
  const auto prompt = std::span(ids_).first(kPrompt);
  EXPECT_FALSE(same_logits(whole_run(*off, prompt), whole_run(*compact, prompt), off->vocab_size()));
}

TEST_P(ReplayTest, RollbackWorksRightBehindThePrompt) {
  const auto mask = load(ReplayMode::kMask);
  SequenceRun want(*mask, kPrompt);
  want.feed(std::span(ids_).first(kPrompt));
  want.feed(std::span(ids_).subspan(kPrompt, 3));
  const auto compact = load(ReplayMode::kCompact);
  SequenceRun run(*compact, kPrompt);
  run.feed(std::span(ids_).first(kPrompt), 1);
  const auto rejected = random_ids(41, 6);
  run.feed(rejected);
  run.truncate(kPrompt);
  run.feed(std::span(ids_).subspan(kPrompt, 3));
  const auto from = static_cast<size_t>((kPrompt - 1) * mask->vocab_size());
  EXPECT_TRUE(same_logits(want.logits().subspan(from), run.logits().subspan(from), mask->vocab_size()));
  EXPECT_TRUE(same_state(mask->config().text, want.state(), run.state()));
}

TEST(ReplayOptions, KeepMustCoverTheWindowAndTheRollback) {
  const auto checkpoint = tiny_checkpoint("tiny-long");
  for (const ReplayMode mode : {ReplayMode::kMask, ReplayMode::kCompact}) {
    ModelOptions options;
    options.replay = mode;
    options.replay_keep = 13;
    const auto refused = Model::load(checkpoint, nullptr, shared_pool(), options);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("13, expected at least 14"));
    options.replay_keep = 14;
    EXPECT_TRUE(Model::load(checkpoint, nullptr, shared_pool(), options).has_value());
  }
  ModelOptions without_replay;
  without_replay.replay_keep = 0;
  EXPECT_TRUE(Model::load(checkpoint, nullptr, shared_pool(), without_replay).has_value());
}

TEST(ReplayOptions, NamesAreParsed) {
  EXPECT_EQ(parse_replay_mode("off").value(), ReplayMode::kOff);
  EXPECT_EQ(parse_replay_mode("mask").value(), ReplayMode::kMask);
  EXPECT_EQ(parse_replay_mode("compact").value(), ReplayMode::kCompact);
  const auto unknown = parse_replay_mode("full");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_THAT(unknown.error().message, testing::HasSubstr("'full'"));
}

}  // namespace
}  // namespace hadal::model
