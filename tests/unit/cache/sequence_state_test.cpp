#include "cache/sequence_state.h"

#include <gtest/gtest.h>

namespace hadal::cache {
namespace {

StateLayout make_layout() {
  return {.sources = {{.ratio = 2, .entry_bytes = 10, .index_key_bytes = 6, .tail_bytes = 8},
                      {.ratio = 2, .entry_bytes = 0, .index_key_bytes = 6, .tail_bytes = 0},
                      {.ratio = 1, .entry_bytes = 10, .index_key_bytes = 6, .tail_bytes = 0}},
          .num_layers = 4,
          .window = 8,
          .window_row_bytes = 5,
          .max_rollback = 3};
}

/// What a forward pass does to the sizes.
void pass(SequenceState& state, int64_t num_tokens) {
  const int64_t end = state.length() + num_tokens;
  const int64_t ratios[] = {2, 2, 1};
  for (size_t i = 0; i < 3; ++i) {
    state.sources()[i].entries.resize(end / ratios[i]);
    state.sources()[i].index_keys.resize(end / ratios[i]);
  }
  state.engram_context().resize(static_cast<size_t>(end), 7);
  state.advance(num_tokens);
}

TEST(SequenceState, StartsEmptyWithRoomForTheWindowAndTheRollback) {
  SequenceState state(make_layout(), 42);
  EXPECT_EQ(state.length(), 0);
  EXPECT_EQ(state.replay_from(), 42);
  ASSERT_EQ(state.sources().size(), 3U);
  ASSERT_EQ(state.windows().size(), 4U);
  for (const auto& window : state.windows()) {
    EXPECT_GE(window.capacity(), 8 + 3);
  }
  // An unfinished group of 2 reaches back one token more than the rollback.
  EXPECT_GE(state.sources()[0].tail.capacity(), 2 + 3 - 1);
  EXPECT_EQ(state.sources()[0].entries.row_bytes(), 10U);
  EXPECT_EQ(state.sources()[1].entries.row_bytes(), 0U);
  EXPECT_EQ(state.sources()[2].index_keys.row_bytes(), 6U);
}

TEST(SequenceState, TruncateGoesBackUpToTheRollback) {
  SequenceState state(make_layout(), 0);
  pass(state, 20);
  EXPECT_FALSE(state.truncate(16));
  EXPECT_EQ(state.length(), 20);
  EXPECT_TRUE(state.truncate(17));
  EXPECT_EQ(state.length(), 17);
  EXPECT_TRUE(state.truncate(17));
}

TEST(SequenceState, TruncateNeverGoesForwardOrBelowZero) {
  SequenceState state(make_layout(), 0);
  pass(state, 2);
  EXPECT_FALSE(state.truncate(3));
  EXPECT_FALSE(state.truncate(-1));
  EXPECT_TRUE(state.truncate(0));
  EXPECT_FALSE(state.truncate(1));
}

TEST(SequenceState, ARefusedTruncateChangesNothing) {
  SequenceState state(make_layout(), 0);
  pass(state, 21);
  const size_t bytes = state.allocated_bytes();
  EXPECT_FALSE(state.truncate(5));
  EXPECT_EQ(state.sources()[0].entries.size(), 10);
  EXPECT_EQ(state.sources()[2].index_keys.size(), 21);
  EXPECT_EQ(state.engram_context().size(), 21U);
  EXPECT_EQ(state.allocated_bytes(), bytes);
}

TEST(SequenceState, RepeatedTruncatesCountFromTheLongestLength) {
  // Two steps of two tokens would reach window rows that the first forward pass has overwritten.
  SequenceState state(make_layout(), 0);
  pass(state, 20);
  EXPECT_TRUE(state.truncate(18));
  EXPECT_FALSE(state.truncate(16));
  EXPECT_TRUE(state.truncate(17));
  // Shorter passes do not restore what was overwritten.
  pass(state, 1);
  EXPECT_EQ(state.length(), 18);
  EXPECT_FALSE(state.truncate(16));
  EXPECT_TRUE(state.truncate(17));
  // Going past the longest length moves the limit.
  pass(state, 5);
  EXPECT_EQ(state.length(), 22);
  EXPECT_FALSE(state.truncate(18));
  EXPECT_TRUE(state.truncate(19));
}

TEST(SequenceState, TruncateDropsGroupsThatAreNoLongerComplete) {
  SequenceState state(make_layout(), 0);
  pass(state, 20);
  ASSERT_TRUE(state.truncate(19));
  EXPECT_EQ(state.sources()[0].entries.size(), 9);  // group 9 has lost its second token
  EXPECT_EQ(state.sources()[0].index_keys.size(), 9);
  EXPECT_EQ(state.sources()[1].index_keys.size(), 9);
  EXPECT_EQ(state.sources()[2].entries.size(), 19);
  EXPECT_EQ(state.engram_context().size(), 19U);
  ASSERT_TRUE(state.truncate(18));
  EXPECT_EQ(state.sources()[0].entries.size(), 9);
  EXPECT_EQ(state.sources()[2].entries.size(), 18);
}

TEST(SequenceState, TruncateLeavesShorterPartsAlone) {
  // A model without Engram keeps no context.
  SequenceState state(make_layout(), 0);
  pass(state, 10);
  state.engram_context().clear();
  ASSERT_TRUE(state.truncate(9));
  EXPECT_TRUE(state.engram_context().empty());
}

TEST(SequenceState, WithoutRollbackOnlyTheOwnLengthIsAllowed) {
  StateLayout layout = make_layout();
  layout.max_rollback = 0;
  SequenceState state(layout, 0);
  pass(state, 4);
  EXPECT_FALSE(state.truncate(3));
  EXPECT_TRUE(state.truncate(4));
}

TEST(SequenceState, AllocatedBytesCountEveryPart) {
  SequenceState state(make_layout(), 0);
  const size_t empty = state.allocated_bytes();
  EXPECT_GE(empty, 4 * (8 + 3) * 5U);
  pass(state, 2);
  const size_t block = static_cast<size_t>(RowStore::kBlockRows);
  EXPECT_EQ(state.allocated_bytes() - empty,
            block * (10 + 6 + 6 + 10 + 6) + state.engram_context().capacity() * sizeof(int32_t));
}

}  // namespace
}  // namespace hadal::cache
