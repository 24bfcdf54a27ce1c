// A block of guesses depends on the sequence's own tokens and nothing else; drafting leaves no trace.

#include <gtest/gtest.h>

#include "draft_run.h"
#include "sequence_run.h"
#include "tiny_models.h"

namespace hadal::model {
namespace {

class DraftTest : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Model> load(TinyChoice choice = {}) const {
    choice.draft_length = choice.draft_length == 0 ? 5 : choice.draft_length;
    return load_tiny(GetParam(), choice);
  }
  static DraftBlock block_after(Model& model, Ids ids, int64_t chunk, int32_t token) {
    SequenceRun run(model, static_cast<int64_t>(ids.size()));
    run.feed_in_chunks(ids, chunk);
    return draft_block(*model.draft_model(), run.state(), token, model.vocab_size());
  }
};

INSTANTIATE_TEST_SUITE_P(All, DraftTest, testing::Values("tiny", "tiny-smooth", "tiny-spec", "models/tiny"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return c == '-' || c == '/'; }, '_');
                           return name;
                         });

TEST_P(DraftTest, InstructionSetsAndThreadsChangeNothing) {
  const auto ids = random_ids(80, 45);
  ThreadPool one(1);
  ThreadPool three(3);
  for (const auto mode : {PrecisionMode::kProduct, PrecisionMode::kF32, PrecisionMode::kQat}) {
    const auto want =
        block_after(*load({.precision = mode, .isa = kernels::Isa::kScalar, .pool = &one}), ids, 45, 7);
    for (const auto isa : {kernels::Isa::kScalar, kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
      if (kernels::isa_supported(isa)) {
        const auto model = load({.precision = mode, .isa = isa, .pool = &three});
        EXPECT_TRUE(same_block(want, block_after(*model, ids, 45, 7))) << kernels::isa_name(isa);
      }
    }
  }
}

TEST_P(DraftTest, ChunksOfThePromptChangeNothing) {
  const auto model = load();
  // Shorter than the window, and longer than window and rollback together.
  for (const int64_t length : {1, 5, 80}) {
    const auto ids = random_ids(81, length);
    const auto want = block_after(*model, ids, length, 9);
    for (const int64_t chunk : {1, 3, 50}) {
      EXPECT_TRUE(same_block(want, block_after(*model, ids, chunk, 9))) << length << " by " << chunk;
    }
  }
}

TEST_P(DraftTest, PartnersInTheSamePassChangeNothing) {
  const auto model = load();
  std::vector<std::unique_ptr<SequenceRun>> runs;
  std::vector<DraftSequence> sequences;
  std::vector<DraftBlock> alone;
  for (int64_t s = 0; s < 6; ++s) {
    const auto ids = random_ids(90 + static_cast<uint64_t>(s), 1 + s * 13);
    runs.push_back(std::make_unique<SequenceRun>(*model, static_cast<int64_t>(ids.size())));
    runs.back()->feed(ids);
    sequences.push_back({&runs.back()->state(), static_cast<int32_t>(100 + s)});
    alone.push_back(draft_block(*model->draft_model(), runs.back()->state(), sequences.back().token,
                                model->vocab_size()));
  }
  for (int round = 0; round < 3; ++round) {
    const auto together = draft_blocks(*model->draft_model(), sequences, model->vocab_size());
    for (size_t s = 0; s < sequences.size(); ++s) {
      EXPECT_TRUE(same_block(alone[s], together[s])) << "sequence " << s << ", round " << round;
    }
    std::rotate(sequences.begin(), sequences.begin() + 2, sequences.end());
    std::rotate(alone.begin(), alone.begin() + 2, alone.end());
  }
}

TEST_P(DraftTest, RejectedTokensLeaveNoTrace) {
  const auto model = load();
  const auto ids = random_ids(82, 70);
  const auto wrong = random_ids(83, 6);
  for (const int64_t length : {4, 40, 70}) {
    const auto prefix = std::span(ids).first(static_cast<size_t>(length));
    const auto want = block_after(*model, prefix, length, 11);
    for (size_t back = 1; back <= 6; ++back) {
      SequenceRun run(*model, length);
      run.feed(prefix);
      run.feed(std::span(wrong).first(back));
      run.truncate(length);
      const auto got = draft_block(*model->draft_model(), run.state(), 11, model->vocab_size());
      EXPECT_TRUE(same_block(want, got)) << back << " back at " << length;
    }
  }
}

TEST_P(DraftTest, DraftingChangesNoLogitsAndNoState) {
  const auto ids = random_ids(84, 60);
  const auto plain = load_tiny(GetParam());
  EXPECT_EQ(plain->draft_model(), nullptr);
  const auto want = whole_run(*plain, ids);
  const auto model = load();
  SequenceRun run(*model, 60);
  for (size_t i = 0; i < ids.size(); ++i) {
    run.feed({&ids[i], 1});
    draft_block(*model->draft_model(), run.state(), ids[(i + 1) % ids.size()], model->vocab_size());
  }
  EXPECT_TRUE(same_logits(want, run.logits(), model->vocab_size()));
  SequenceRun undrafted(*model, 60);
  undrafted.feed(ids);
  EXPECT_TRUE(same_state(model->config().text, undrafted.state(), run.state()));
}

TEST_P(DraftTest, EveryBlockLengthWorks) {
  const auto ids = random_ids(85, 40);
  for (const int64_t length : {1, 2, 6}) {
    const auto model = load({.draft_length = length});
    const auto block = block_after(*model, ids, 40, 3);
    ASSERT_EQ(static_cast<int64_t>(block.tokens.size()), length);
    for (const float confidence : block.confidences) {
      EXPECT_GT(confidence, 0);
      EXPECT_LT(confidence, 1);
    }
    EXPECT_TRUE(same_block(block, block_after(*model, ids, 7, 3)));
  }
}

TEST(DraftReplay, CompactReplayDraftsLikeMask) {
  const auto ids = random_ids(86, 90);
  const auto block_with = [&](ReplayMode mode, int64_t chunk) {
    const auto model = load_tiny("tiny", {.replay = mode, .replay_keep = 24, .draft_length = 5});
    SequenceRun run(*model, 90);
    for (size_t begin = 0; begin < ids.size(); begin += static_cast<size_t>(chunk)) {
      run.feed(std::span(ids).subspan(begin, std::min(static_cast<size_t>(chunk), ids.size() - begin)), 0);
    }
    return draft_block(*model->draft_model(), run.state(), 5, model->vocab_size());
  };
  const auto want = block_with(ReplayMode::kMask, 90);
  for (const int64_t chunk : {90, 70, 8, 1}) {
    EXPECT_TRUE(same_block(want, block_with(ReplayMode::kCompact, chunk))) << chunk;
  }
}

TEST(DraftLoad, RefusesLengthsThatCannotBe) {
  const auto message_of = [](const std::string& name, int64_t length) {
    ModelOptions options;
    options.draft_length = length;
    const auto loaded = Model::load(tiny_checkpoint(name), &tiny_tokenizer(name), shared_pool(), options);
    return loaded ? std::string() : loaded.error().message;
  };
  EXPECT_EQ(message_of("tiny-mini", 0), "");
  EXPECT_EQ(message_of("tiny-mini", 2), "draft-length: 2, but the checkpoint has no draft layers");
  EXPECT_EQ(message_of("tiny", 7), "draft-length: 7, expected 0 to the 6 tokens of a rollback");
  EXPECT_EQ(message_of("tiny", -1), "draft-length: -1, expected 0 to the 6 tokens of a rollback");
}

}  // namespace
}  // namespace hadal::model
