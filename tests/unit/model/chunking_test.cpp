// How a prompt is cut into passes changes nothing: not one bit of the logits or of the state.

#include <gtest/gtest.h>

#include "sequence_run.h"
#include "tiny_models.h"

namespace hadal::model {
namespace {

struct Choice {
  const char* checkpoint;
  PrecisionMode precision;
};

class ChunkingTest : public testing::TestWithParam<Choice> {
 protected:
  ChunkingTest() : model_(load_tiny(GetParam().checkpoint, {.precision = GetParam().precision})) {}

  void expect_same(SequenceRun& want, SequenceRun& got, const std::string& what) const {
    EXPECT_TRUE(same_logits(want.logits(), got.logits(), model_->vocab_size())) << what;
    EXPECT_TRUE(same_state(model_->config().text, want.state(), got.state())) << what;
  }

  std::unique_ptr<Model> model_;
};

INSTANTIATE_TEST_SUITE_P(
    All, ChunkingTest,
    testing::Values(Choice{"tiny", PrecisionMode::kProduct}, Choice{"tiny", PrecisionMode::kQat},
                    Choice{"tiny-engram", PrecisionMode::kProduct},
                    Choice{"tiny-long", PrecisionMode::kProduct}, Choice{"tiny-long", PrecisionMode::kF32},
                    Choice{"tiny-mini", PrecisionMode::kProduct},
                    Choice{"tiny-smooth", PrecisionMode::kF32Kvq},
                    Choice{"tiny-spec", PrecisionMode::kProduct}),
    [](const auto& test) {
      std::string name = std::string(test.param.checkpoint) + "_" + precision_name(test.param.precision);
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

constexpr int64_t kLength = 101;

TEST_P(ChunkingTest, AnyChunkSizeGivesTheSameLogitsAndState) {
  const auto ids = random_ids(1, kLength);
  SequenceRun whole(*model_, kLength);
  whole.feed(ids);
  for (const int64_t chunk : {1, 2, 3, 5, 7, 64}) {
    SequenceRun run(*model_, kLength);
    run.feed_in_chunks(ids, chunk);
    expect_same(whole, run, "chunks of " + std::to_string(chunk));
  }
}

TEST_P(ChunkingTest, RandomCutsGiveTheSameLogitsAndState) {
  const auto ids = random_ids(2, kLength);
  SequenceRun whole(*model_, kLength);
  whole.feed(ids);
  Choices choices(3);
  for (int round = 0; round < 4; ++round) {
    SequenceRun run(*model_, kLength);
    std::string cuts;
    while (run.length() < kLength) {
      const int64_t most = choices.below(3) == 0 ? 40 : 4;
      const int64_t count = std::min(1 + choices.below(most), kLength - run.length());
      run.feed(std::span(ids).subspan(static_cast<size_t>(run.length()), static_cast<size_t>(count)));
      cuts += " " + std::to_string(run.length());
    }
    expect_same(whole, run, "cuts at" + cuts);
  }
}

TEST_P(ChunkingTest, DecodingAfterAPrefillIsThePrefillOfTheLongerText) {
  const auto ids = random_ids(4, kLength);
  SequenceRun whole(*model_, kLength);
  whole.feed(ids);
  SequenceRun run(*model_, kLength);
  run.feed(std::span(ids).first(90));
  run.feed_in_chunks(std::span(ids).subspan(90), 1);
  expect_same(whole, run, "decoded from 90");
}

TEST_P(ChunkingTest, LogitsThatNobodyAskedForChangeNothing) {
  const auto ids = random_ids(5, 40);
  SequenceRun whole(*model_, 40);
  whole.feed(ids);
  for (const int64_t wanted : {0, 1, 13}) {
    SequenceRun run(*model_, 40);
    run.feed(ids, wanted);
    for (int64_t position = 40 - wanted; position < 40; ++position) {
      EXPECT_TRUE(same_logits(whole.logits_at(position), run.logits_at(position), model_->vocab_size()))
          << position;
    }
    EXPECT_TRUE(same_state(model_->config().text, whole.state(), run.state())) << wanted;
  }
}

}  // namespace
}  // namespace hadal::model
