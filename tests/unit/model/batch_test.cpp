// What else is in a batch changes nothing, nor does the place in it.

#include <gtest/gtest.h>

#include "sequence_run.h"
#include "tiny_models.h"

namespace hadal::model {
namespace {

struct Choice {
  const char* checkpoint;
  PrecisionMode precision;
  ReplayMode replay = ReplayMode::kOff;
  int64_t replay_keep = 140;
  int64_t draft_length = 0;
};

class BatchTest : public testing::TestWithParam<Choice> {
 protected:
  BatchTest()
      : model_(load_tiny(GetParam().checkpoint, {.precision = GetParam().precision,
                                                 .replay = GetParam().replay,
                                                 .replay_keep = GetParam().replay_keep,
                                                 .draft_length = GetParam().draft_length})) {}
  std::unique_ptr<Model> model_;
};

INSTANTIATE_TEST_SUITE_P(
    All, BatchTest,
    testing::Values(Choice{"tiny", PrecisionMode::kProduct, ReplayMode::kOff, 140, 5},
                    Choice{"tiny-long", PrecisionMode::kProduct}, Choice{"tiny-long", PrecisionMode::kQat},
                    Choice{"tiny-mini", PrecisionMode::kF32},
                    Choice{"tiny", PrecisionMode::kProduct, ReplayMode::kCompact, 24, 5}),
    [](const auto& test) {
      std::string name = std::string(test.param.checkpoint) + "_" + precision_name(test.param.precision) +
                         (test.param.replay == ReplayMode::kOff ? "" : "_compact");
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST_P(BatchTest, PartnersInAnyMixLengthAndOrderLeaveASequenceAlone) {
  // Sequences of unlike lengths take random steps (prefill chunks, single tokens, short segments) in passes
  // that hold random subsets in random order.
  const std::vector<int64_t> lengths{64, 7, 90, 33, 1, 48};
  Choices choices(6);
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::unique_ptr<SequenceRun>> runs;
  for (size_t s = 0; s < lengths.size(); ++s) {
    ids.push_back(random_ids(10 + s, lengths[s]));
    runs.push_back(std::make_unique<SequenceRun>(*model_, lengths[s]));
  }
  const auto is_open = [&](size_t s) { return runs[s]->length() < lengths[s]; };
  int64_t widest = 0;
  while (std::any_of(lengths.begin(), lengths.end(),
                     [&, s = size_t{0}](int64_t) mutable { return is_open(s++); })) {
    std::vector<size_t> order;
    for (size_t s = 0; s < lengths.size(); ++s) {
      if (is_open(s) && choices.below(4) != 0) {
        order.insert(order.begin() + choices.below(static_cast<int64_t>(order.size()) + 1), s);
      }
    }
    std::vector<Segment> segments;
    for (const size_t s : order) {
      const int64_t most = choices.below(2) == 0 ? 1 : 30;
      const int64_t count = std::min(1 + choices.below(most), lengths[s] - runs[s]->length());
      const auto tokens =
          std::span(ids[s]).subspan(static_cast<size_t>(runs[s]->length()), static_cast<size_t>(count));
      segments.push_back({&runs[s]->state(), tokens, runs[s]->grow(count)});
    }
    widest = std::max(widest, static_cast<int64_t>(segments.size()));
    if (!segments.empty()) {
      ASSERT_TRUE(model_->forward(segments).has_value());
    }
  }
  EXPECT_GE(widest, 3);
  for (size_t s = 0; s < lengths.size(); ++s) {
    SequenceRun alone(*model_, lengths[s]);
    alone.feed(ids[s]);
    EXPECT_TRUE(same_logits(alone.logits(), runs[s]->logits(), model_->vocab_size())) << "sequence " << s;
    EXPECT_TRUE(same_state(model_->config().text, alone.state(), runs[s]->state())) << "sequence " << s;
  }
}

TEST_P(BatchTest, SequencesWithTheSameTokensAgree) {
  const auto ids = random_ids(20, 50);
  const auto other_ids = random_ids(21, 23);
  SequenceRun first(*model_, 50);
  SequenceRun other(*model_, 23);
  SequenceRun second(*model_, 50);
  const std::vector<Segment> segments{{&first.state(), ids, first.grow(50)},
                                      {&other.state(), other_ids, other.grow(23)},
                                      {&second.state(), ids, second.grow(50)}};
  ASSERT_TRUE(model_->forward(segments).has_value());
  EXPECT_TRUE(same_logits(first.logits(), second.logits(), model_->vocab_size()));
  EXPECT_TRUE(same_state(model_->config().text, first.state(), second.state()));
}

TEST_P(BatchTest, SegmentsMayWantNoLogits) {
  const auto ids = random_ids(22, 30);
  SequenceRun silent(*model_, 30);
  SequenceRun heard(*model_, 30);
  const std::vector<Segment> segments{
      {&silent.state(), std::span(ids).first(20), {}},
      {&heard.state(), ids, heard.grow(30).last(static_cast<size_t>(model_->vocab_size()))}};
  ASSERT_TRUE(model_->forward(segments).has_value());
  const auto alone = whole_run(*model_, ids);
  const auto last = static_cast<size_t>(29 * model_->vocab_size());
  EXPECT_TRUE(same_logits(std::span(alone).subspan(last), heard.logits_at(29), model_->vocab_size()));
  EXPECT_EQ(silent.length(), 20);
}

}  // namespace
}  // namespace hadal::model
