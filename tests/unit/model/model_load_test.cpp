// What loading refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model.h"
#include "sequence_run.h"
#include "tiny_models.h"

namespace hadal::model {
namespace {

TEST(ModelLoad, EngramNeedsTheTokenizer) {
  const auto refused = Model::load(tiny_checkpoint("tiny-engram"), nullptr, shared_pool(), {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("tokenizer.json"));
}

TEST(ModelLoad, EngramNeedsTheTokenizerOfItsCheckpoint) {
  const auto other = tokenizer::Tokenizer::load(std::string(HADAL_MODELS) + "/tiny/tokenizer.json").value();
  const auto refused = Model::load(tiny_checkpoint("tiny-engram"), other.get(), shared_pool(), {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("engram_compressed_vocab_size"));
}

TEST(ModelLoad, TellsWhatTheCheckpointIs) {
  const auto model = load_tiny("tiny-long");
  EXPECT_EQ(model->vocab_size(), 2048);
  EXPECT_EQ(model->max_positions(), 4096);
  EXPECT_EQ(model->config().text.num_hidden_layers, 8);
  EXPECT_EQ(model->options().max_rollback, 6);
  EXPECT_EQ(model->new_state(10)->length(), 0);
}

TEST(ModelLoad, CapturesCanBeStopped) {
  const auto model = load_tiny("tiny-mini");
  const auto ids = random_ids(90, 5);
  Capture capture;
  capture.hidden = capture.router = capture.index = true;
  capture.num_positions = 5;
  model->set_capture(&capture);
  const auto with = whole_run(*model, ids);
  EXPECT_EQ(capture.floats.at("streams").shape, (std::vector<int64_t>{3, 5, 4, 64}));
  EXPECT_EQ(capture.ids.at("experts").shape, (std::vector<int64_t>{3, 5, 4}));
  EXPECT_EQ(capture.ids.count("topk.1"), 1U);
  capture.floats.clear();
  capture.ids.clear();
  model->set_capture(nullptr);
  const auto without = whole_run(*model, ids);
  EXPECT_TRUE(capture.floats.empty());
  EXPECT_TRUE(capture.ids.empty());
  EXPECT_TRUE(same_logits(with, without, model->vocab_size()));
}

}  // namespace
}  // namespace hadal::model
