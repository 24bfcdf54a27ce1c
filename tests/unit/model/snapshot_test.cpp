// A state made from another sequence's blocks and snapshot goes on bit for bit like one that has computed
// everything itself.

#include <algorithm>

#include <gtest/gtest.h>

#include "sequence_run.h"
#include "tiny_models.h"

namespace hadal::model {
namespace {

constexpr int64_t kBlock = cache::kBlockTokens;

struct Choice {
  const char* checkpoint;
  PrecisionMode precision;
  ReplayMode replay = ReplayMode::kOff;
  int64_t replay_keep = 140;
};

class SnapshotTest : public testing::TestWithParam<Choice> {
 protected:
  SnapshotTest()
      : model_(load_tiny(GetParam().checkpoint, {.precision = GetParam().precision,
                                                 .replay = GetParam().replay,
                                                 .replay_keep = GetParam().replay_keep,
                                                 .keeps_snapshots = true})) {}

  bool has_replay() const { return GetParam().replay != ReplayMode::kOff; }

  cache::StatePrefix prefix_of(cache::SequenceState& state, int64_t position) const {
    EXPECT_TRUE(state.has_snapshot_at(position)) << position << " of " << state.length();
    cache::StatePrefix prefix;
    for (int64_t i = 0; i < position / kBlock; ++i) {
      prefix.blocks.push_back(state.blocks().block(i));
    }
    const auto& context = state.engram_context();
    prefix.context.assign(context.begin(),
                          context.begin() + std::min<ptrdiff_t>(std::ssize(context), position));
    prefix.snapshot = state.snapshot(position);
    return prefix;
  }

  /// Feeds the rest of `ids` in random chunks, with logits of the last `num_logits` positions.
  static void feed_rest(SequenceRun& run, Ids ids, int64_t num_logits, Choices& choices) {
    const auto total = static_cast<int64_t>(ids.size());
    while (run.length() < total) {
      const int64_t count = std::min(1 + choices.below(200), total - run.length());
      const int64_t wanted = std::clamp<int64_t>(run.length() + count - (total - num_logits), 0, count);
      run.feed(ids.subspan(static_cast<size_t>(run.length()), static_cast<size_t>(count)), wanted);
    }
  }

  std::unique_ptr<Model> model_;
};

INSTANTIATE_TEST_SUITE_P(
    All, SnapshotTest,
    testing::Values(Choice{"tiny", PrecisionMode::kProduct}, Choice{"tiny", PrecisionMode::kQat},
                    Choice{"tiny-mini", PrecisionMode::kF32}, Choice{"tiny-long", PrecisionMode::kProduct},
                    Choice{"tiny-long", PrecisionMode::kF32Kvq},
                    Choice{"tiny-engram", PrecisionMode::kProduct},
                    Choice{"tiny", PrecisionMode::kProduct, ReplayMode::kCompact, 140},
                    Choice{"tiny-long", PrecisionMode::kProduct, ReplayMode::kCompact, 140},
                    Choice{"tiny-long", PrecisionMode::kProduct, ReplayMode::kMask, 140},
                    Choice{"tiny-long", PrecisionMode::kQat, ReplayMode::kCompact, 150},
                    Choice{"models/tiny", PrecisionMode::kProduct, ReplayMode::kCompact, 140}),
    [](const auto& test) {
      std::string name = std::string(test.param.checkpoint) + "_" + precision_name(test.param.precision) +
                         (test.param.replay == ReplayMode::kOff    ? ""
                          : test.param.replay == ReplayMode::kMask ? "_mask"
                                                                   : "_compact");
      std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '/'; }, '_');
      return name;
    });

TEST_P(SnapshotTest, PromptsWithACommonBeginningGoOnFromItAsIfComputed) {
  Choices choices(GetParam().replay_keep + static_cast<int64_t>(GetParam().precision));
  for (uint64_t trial = 0; trial < 3; ++trial) {
    // The first prompt ends within reach of the border that the second one starts from.
    const int64_t border = kBlock * (1 + choices.below(3));
    const int64_t reach = model_->new_state(1)->layout().snapshot_reach;
    const auto shared = random_ids(100 + trial, border);
    auto first_ids = shared;
    const auto first_end = random_ids(200 + trial, 1 + choices.below(reach));
    first_ids.insert(first_ids.end(), first_end.begin(), first_end.end());
    auto second_ids = shared;
    const int64_t least = has_replay() ? GetParam().replay_keep : 1;
    const auto second_end = random_ids(300 + trial, least + choices.below(200));
    second_ids.insert(second_ids.end(), second_end.begin(), second_end.end());

    SequenceRun first(*model_, static_cast<int64_t>(first_ids.size()));
    feed_rest(first, first_ids, 1, choices);
    const auto length = static_cast<int64_t>(second_ids.size());
    SequenceRun warm(*model_, length);
    ASSERT_TRUE(warm.state().can_start_from(border));
    warm.state().start_from(prefix_of(first.state(), border));
    warm.grow(border);
    SequenceRun cold(*model_, length);
    feed_rest(cold, second_ids, least, choices);
    feed_rest(warm, second_ids, least, choices);
    const auto compared = static_cast<size_t>(least * model_->vocab_size());
    ASSERT_TRUE(same_logits(cold.logits().last(compared), warm.logits().last(compared), model_->vocab_size()))
        << "border " << border << ", trial " << trial;
    ASSERT_TRUE(same_state(model_->config().text, cold.state(), warm.state()));
    for (int step = 0; step < 3; ++step) {
      const std::vector<int32_t> next{cold.best_token()};
      cold.feed(next);
      warm.feed(next);
      ASSERT_TRUE(
          same_logits(cold.logits_at(length + step), warm.logits_at(length + step), model_->vocab_size()));
    }
  }
}

TEST_P(SnapshotTest, AConversationGoesOnFromTheEndOfEachAnswer) {
  // Every turn starts from the last border of the turn before, whose end was generated token by token.
  Choices choices(77);
  std::vector<int32_t> ids = random_ids(1, 150);
  cache::StatePrefix kept;
  for (int turn = 0; turn < 4; ++turn) {
    const auto length = static_cast<int64_t>(ids.size());
    SequenceRun cold(*model_, length);
    feed_rest(cold, ids, 1, choices);
    SequenceRun warm(*model_, length);
    if (turn > 0) {
      const int64_t border = kept.snapshot->position;
      ASSERT_TRUE(warm.state().can_start_from(border));
      warm.state().start_from(std::move(kept));
      warm.grow(border);
    }
    feed_rest(warm, ids, 1, choices);
    ASSERT_TRUE(same_logits(cold.logits_at(length - 1), warm.logits_at(length - 1), model_->vocab_size()));
    for (int step = 0; step < 40; ++step) {
      const std::vector<int32_t> next{cold.best_token()};
      ids.push_back(next[0]);
      cold.feed(next);
      warm.feed(next);
      ASSERT_TRUE(same_logits(cold.logits_at(cold.length() - 1), warm.logits_at(warm.length() - 1),
                              model_->vocab_size()))
          << "turn " << turn << ", step " << step;
    }
    ASSERT_TRUE(same_state(model_->config().text, cold.state(), warm.state()));
    kept = prefix_of(warm.state(), warm.length() / kBlock * kBlock);
    const auto question = random_ids(50 + static_cast<uint64_t>(turn), 160 + choices.below(60));
    ids.insert(ids.end(), question.begin(), question.end());
  }
}

TEST_P(SnapshotTest, AForkedStateGoesOnByItself) {
  const auto ids = random_ids(5, 200);
  SequenceRun run(*model_, 200);
  run.feed(ids);
  const auto fork = run.state().fork();
  const auto mine = random_ids(6, 30);
  const auto others = random_ids(7, 30);
  std::vector<float> logits(static_cast<size_t>(30 * model_->vocab_size()));
  const std::vector<Segment> segments{{&run.state(), mine, run.grow(30)}, {fork.get(), others, logits}};
  ASSERT_TRUE(model_->forward(segments).has_value());
  for (const auto* end : {&mine, &others}) {
    SequenceRun alone(*model_, 200);
    alone.feed(ids);
    alone.feed(*end);
    const auto rows = static_cast<size_t>(30 * model_->vocab_size());
    EXPECT_TRUE(same_logits(alone.logits().last(rows),
                            end == &mine ? run.logits().last(rows) : std::span<const float>(logits),
                            model_->vocab_size()));
    EXPECT_TRUE(same_state(model_->config().text, alone.state(), end == &mine ? run.state() : *fork));
  }
}

}  // namespace
}  // namespace hadal::model
