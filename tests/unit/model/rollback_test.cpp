// A state that took tokens back continues as if it had never seen them.

#include <gtest/gtest.h>

#include "sequence_run.h"
#include "tiny_models.h"

namespace hadal::model {
namespace {

class RollbackTest : public testing::TestWithParam<const char*> {
 protected:
  RollbackTest() : model_(load_tiny(GetParam())) {}

  /// Runs `ids` in chunks of the given sizes without ever taking anything back.
  std::unique_ptr<SequenceRun> straight(Ids ids) const {
    auto run = std::make_unique<SequenceRun>(*model_, static_cast<int64_t>(ids.size()));
    run->feed(ids);
    return run;
  }
  void expect_same(SequenceRun& want, SequenceRun& got, const std::string& what) const {
    EXPECT_TRUE(same_logits(want.logits(), got.logits(), model_->vocab_size())) << what;
    EXPECT_TRUE(same_state(model_->config().text, want.state(), got.state())) << what;
  }

  std::unique_ptr<Model> model_;
};

INSTANTIATE_TEST_SUITE_P(All, RollbackTest, testing::Values("tiny", "tiny-long", "tiny-mini", "tiny-spec"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(RollbackTest, RejectedDraftsLeaveNoTrace) {
  const auto ids = random_ids(50, 60);
  const auto rejected = random_ids(51, 6);
  const auto want = straight(ids);
  // Odd and even lengths: the cut falls inside and between groups of 2; 3 and 7 lie inside the first window.
  for (const int64_t prefix : {3, 7, 38, 39}) {
    for (int64_t back = 1; back <= 6; ++back) {
      for (const int64_t accepted : {int64_t{0}, 6 - back}) {
        // A verification of golden tokens followed by drafts, of which `back` are wrong.
        std::vector<int32_t> segment(ids.begin() + prefix, ids.begin() + prefix + accepted);
        segment.insert(segment.end(), rejected.begin(), rejected.begin() + back);
        SequenceRun run(*model_, 60);
        run.feed(std::span(ids).first(static_cast<size_t>(prefix)));
        run.feed(segment);
        run.truncate(prefix + accepted);
        run.feed(std::span(ids).subspan(static_cast<size_t>(prefix + accepted)));
        expect_same(*want, run,
                    std::to_string(back) + " of " + std::to_string(segment.size()) + " back at " +
                        std::to_string(prefix));
      }
    }
  }
}

TEST_P(RollbackTest, ManyRoundsOfVerificationLeaveNoTrace) {
  const auto ids = random_ids(52, 90);
  const auto want = straight(ids);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    Choices choices(60 + seed);
    SequenceRun run(*model_, 90);
    run.feed(std::span(ids).first(static_cast<size_t>(1 + choices.below(20))));
    while (run.length() < 84) {
      const int64_t start = run.length();
      const int64_t drafts = choices.below(6);
      const int64_t accepted = choices.below(drafts + 1);
      const auto wrong = random_ids(70 + static_cast<uint64_t>(start), drafts - accepted);
      std::vector<int32_t> segment(ids.begin() + start, ids.begin() + start + 1 + accepted);
      segment.insert(segment.end(), wrong.begin(), wrong.end());
      run.feed(segment);
      run.truncate(start + 1 + accepted);
    }
    run.feed_in_chunks(std::span(ids).subspan(static_cast<size_t>(run.length())), 1);
    expect_same(*want, run, "seed " + std::to_string(seed));
  }
}

TEST_P(RollbackTest, ARefusedTruncateLeavesTheSequenceUsable) {
  const auto ids = random_ids(53, 40);
  const auto want = straight(ids);
  SequenceRun run(*model_, 40);
  run.feed(std::span(ids).first(30));
  EXPECT_FALSE(run.state().truncate(23));
  EXPECT_FALSE(run.state().truncate(31));
  run.feed(std::span(ids).subspan(30));
  expect_same(*want, run, "after a refusal");
}

}  // namespace
}  // namespace hadal::model
