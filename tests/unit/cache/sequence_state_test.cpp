#include "cache/sequence_state.h"

#include <algorithm>
#include <cstring>

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
  const auto budget = std::make_shared<MemoryBudget>();
  state.charge_to(budget);
  const size_t empty = state.allocated_bytes();
  EXPECT_EQ(empty, make_layout().ring_bytes());
  EXPECT_GE(empty, 4 * (8 + 3) * 5U);
  EXPECT_EQ(budget->used(), empty);
  const size_t block = BlockShape(make_layout()).bytes;
  EXPECT_EQ(block, 640U + 384U + 384U + 1280U + 768U) << "64, 64 and 128 rows";
  EXPECT_EQ(state.growth_bytes(128), block);
  EXPECT_EQ(state.growth_bytes(129), 2 * block);
  pass(state, 2);
  EXPECT_EQ(state.allocated_bytes() - empty, block + state.engram_context().capacity() * sizeof(int32_t));
  EXPECT_EQ(budget->used(), empty + block);
  EXPECT_EQ(state.growth_bytes(126), 0U);
}

// --- snapshots and forks --------------------------------------------------------------------------------

/// A pass that also writes: each row holds a function of its source, position and `salt`.
void write_pass(SequenceState& state, int64_t num_tokens, int salt = 0) {
  const int64_t start = state.length();
  const int64_t end = start + num_tokens;
  const auto& layout = state.layout();
  const auto fill = [&](std::byte* row, size_t bytes, int64_t kind, int64_t index) {
    for (size_t i = 0; i < bytes; ++i) {
      row[i] = static_cast<std::byte>(kind * 31 + index * 7 + salt * 101 + static_cast<int64_t>(i));
    }
  };
  for (size_t s = 0; s < state.sources().size(); ++s) {
    auto& source = state.sources()[s];
    for (RowStore* store : {&source.entries, &source.index_keys}) {
      store->resize(end / layout.sources[s].ratio);
      for (int64_t i = start / layout.sources[s].ratio; i < store->size(); ++i) {
        fill(store->row_bytes() == 0 ? nullptr : store->row(i), store->row_bytes(),
             static_cast<int64_t>(s) * 2 + (store == &source.entries), i);
      }
    }
    for (int64_t position = start; position < end; ++position) {
      fill(source.tail.row(position), source.tail.row_bytes(), 40 + static_cast<int64_t>(s), position);
    }
  }
  for (size_t layer = 0; layer < state.windows().size(); ++layer) {
    for (int64_t position = start; position < end; ++position) {
      fill(state.windows()[layer].row(position), layout.window_row_bytes, 50 + static_cast<int64_t>(layer),
           position);
    }
  }
  for (int64_t position = start; position < end; ++position) {
    state.engram_context().push_back(static_cast<int32_t>(position * 3 + salt));
  }
  state.advance(num_tokens);
}

void expect_same(SequenceState& want, SequenceState& got, int64_t num_windows = 4) {
  ASSERT_EQ(want.length(), got.length());
  EXPECT_EQ(want.engram_context(), got.engram_context());
  const auto same = [](const std::byte* a, const std::byte* b, size_t bytes) {
    return bytes == 0 || std::memcmp(a, b, bytes) == 0;
  };
  for (size_t s = 0; s < want.sources().size(); ++s) {
    auto& a = want.sources()[s];
    auto& b = got.sources()[s];
    ASSERT_EQ(a.entries.size(), b.entries.size());
    ASSERT_EQ(a.index_keys.size(), b.index_keys.size());
    for (int64_t i = 0; i < a.index_keys.size(); ++i) {
      ASSERT_TRUE(same(a.index_keys.row(i), b.index_keys.row(i), a.index_keys.row_bytes())) << s << ' ' << i;
    }
    for (int64_t i = 0; a.entries.row_bytes() > 0 && i < a.entries.size(); ++i) {
      ASSERT_TRUE(same(a.entries.row(i), b.entries.row(i), a.entries.row_bytes())) << s << ' ' << i;
    }
    const int64_t ratio = want.layout().sources[s].ratio;
    for (int64_t position = want.length() / ratio * ratio; position < want.length(); ++position) {
      ASSERT_TRUE(same(a.tail.row(position), b.tail.row(position), a.tail.row_bytes()));
    }
  }
  for (int64_t layer = 0; layer < num_windows; ++layer) {
    auto& a = want.windows()[static_cast<size_t>(layer)];
    auto& b = got.windows()[static_cast<size_t>(layer)];
    for (int64_t i = std::max<int64_t>(want.length() - 8, 0); i < want.length(); ++i) {
      ASSERT_TRUE(same(a.row(i), b.row(i), a.row_bytes())) << "layer " << layer << ", position " << i;
    }
  }
}

StatePrefix prefix_of(SequenceState& state, int64_t position) {
  StatePrefix prefix;
  for (int64_t i = 0; i < position / kBlockTokens; ++i) {
    prefix.blocks.push_back(state.blocks().block(i));
  }
  const auto& context = state.engram_context();
  prefix.context.assign(context.begin(), context.begin() + position);
  prefix.snapshot = state.snapshot(position);
  return prefix;
}

StateLayout reaching_layout() {
  StateLayout layout = make_layout();
  layout.snapshot_reach = 128;
  return layout;
}

TEST(SequenceState, StartsFromASnapshotTakenAtTheEndOfABlock) {
  SequenceState cold(make_layout(), 0);
  write_pass(cold, 256);
  ASSERT_TRUE(cold.has_snapshot_at(256));
  EXPECT_FALSE(cold.has_snapshot_at(128)) << "the rows are overwritten";
  SequenceState warm(make_layout(), 0);
  ASSERT_TRUE(warm.can_start_from(256));
  warm.start_from(prefix_of(cold, 256));
  expect_same(cold, warm);
  write_pass(cold, 75);
  write_pass(warm, 75);
  expect_same(cold, warm);
}

TEST(SequenceState, ASnapshotReachesBackAsFarAsTheLayoutSays) {
  SequenceState state(reaching_layout(), 0);
  EXPECT_FALSE(state.has_snapshot_at(0));
  for (int64_t length = 1; length <= 600; ++length) {
    write_pass(state, 1);
    for (int64_t position = 0; position <= 768; ++position) {
      EXPECT_EQ(state.has_snapshot_at(position),
                position > 0 && position % 128 == 0 && position <= length && length - position <= 128)
          << position << " of " << length;
    }
  }
  SequenceState exact(reaching_layout(), 0);
  write_pass(exact, 512);
  SequenceState late(reaching_layout(), 0);
  late.start_from(prefix_of(state, 512));
  expect_same(exact, late);
}

TEST(SequenceState, NothingBeforeItsStartCanBeTakenBack) {
  SequenceState cold(make_layout(), 0);
  write_pass(cold, 128);
  SequenceState warm(make_layout(), 0);
  warm.start_from(prefix_of(cold, 128));
  EXPECT_FALSE(warm.truncate(127));
  write_pass(warm, 2);
  EXPECT_FALSE(warm.truncate(127));
  EXPECT_TRUE(warm.truncate(128));
  EXPECT_FALSE(warm.has_snapshot_at(0));
  EXPECT_TRUE(warm.has_snapshot_at(128));
}

TEST(SequenceState, SharedBlocksAreCopiedWhenRowsAreTakenBackAndWrittenAnew) {
  const auto budget = std::make_shared<MemoryBudget>();
  SequenceState state(make_layout(), 0);
  state.charge_to(budget);
  write_pass(state, 128);
  const StatePrefix kept = prefix_of(state, 128);
  SequenceState before(make_layout(), 0);
  before.start_from(kept);
  const uint64_t used = budget->used();
  ASSERT_TRUE(state.truncate(126));
  EXPECT_EQ(state.growth_bytes(2), BlockShape(make_layout()).bytes);
  write_pass(state, 2, 5);
  EXPECT_EQ(budget->used(), used + BlockShape(make_layout()).bytes);
  SequenceState untouched(make_layout(), 0);
  write_pass(untouched, 128);
  expect_same(untouched, before);
}

TEST(SequenceState, UnderBoundedReplayOnlyTheWindowsBeforeItAreKept) {
  StateLayout layout = make_layout();
  layout.first_replayed_layer = 2;
  EXPECT_EQ(layout.snapshot_bytes(), 2 * 8 * 5U);
  EXPECT_EQ(make_layout().snapshot_bytes(), 4 * 8 * 5U);
  SequenceState cold(layout, 300);
  write_pass(cold, 256);
  SequenceState warm(layout, 260);
  EXPECT_TRUE(warm.can_start_from(256));
  EXPECT_FALSE(warm.can_start_from(384)) << "what follows 260 has to be computed for this prompt";
  warm.start_from(prefix_of(cold, 256));
  expect_same(cold, warm, 2);
  SequenceState early(layout, 255);
  EXPECT_FALSE(early.can_start_from(256));
  EXPECT_TRUE(early.can_start_from(128));
}

TEST(SequenceState, StartsOnlyFromTheEndOfABlockAndOnlyOnce) {
  SequenceState state(make_layout(), 0);
  EXPECT_FALSE(state.can_start_from(0));
  EXPECT_FALSE(state.can_start_from(127));
  EXPECT_TRUE(state.can_start_from(128));
  pass(state, 1);
  EXPECT_FALSE(state.can_start_from(128));
}

TEST(SequenceState, GroupsThatCrossBlocksCannotBeShared) {
  StateLayout layout = make_layout();
  layout.sources[0].ratio = 3;
  SequenceState state(layout, 0);
  EXPECT_FALSE(state.can_start_from(384));
  EXPECT_FALSE(state.has_snapshot_at(384));
}

TEST(SequenceState, AForkGoesOnByItself) {
  for (const int64_t at : {1, 5, 128, 129, 300}) {
    const auto budget = std::make_shared<MemoryBudget>();
    {
      SequenceState state(make_layout(), 0);
      state.charge_to(budget);
      write_pass(state, at);
      const auto fork = state.fork();
      expect_same(state, *fork);
      write_pass(state, 40, 1);
      write_pass(*fork, 40, 2);
      SequenceState first(make_layout(), 0);
      write_pass(first, at);
      write_pass(first, 40, 1);
      SequenceState second(make_layout(), 0);
      write_pass(second, at);
      write_pass(second, 40, 2);
      expect_same(first, state);
      expect_same(second, *fork);
      EXPECT_EQ(fork->truncate(at + 40 - 3), true);
    }
    EXPECT_EQ(budget->used(), 0U);
  }
}

}  // namespace
}  // namespace hadal::cache
