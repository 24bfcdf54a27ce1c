#include "cache/prefix_tree.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

#include "written_state.h"

namespace hadal::cache {
namespace {

using Tokens = std::vector<int32_t>;

class PrefixTreeTest : public testing::Test {
 protected:
  static PrefixKeys keys(std::string_view tenant = "") { return PrefixKeys(root_key("model", tenant, "")); }

  std::unique_ptr<SequenceState> computed(const Tokens& tokens) {
    auto state = std::make_unique<SequenceState>(written_layout(), 0);
    state->charge_to(budget_);
    write_tokens(*state, tokens);
    return state;
  }

  /// Computes `tokens` and keeps the beginning up to its last border.
  void keep(const Tokens& tokens) {
    const auto state = computed(tokens);
    auto its_keys = keys();
    tree_.insert(its_keys, tokens, std::ssize(tokens) / kBlockTokens * kBlockTokens, *state);
  }

  int64_t usable(const Tokens& tokens, std::string_view tenant = "") {
    auto its_keys = keys(tenant);
    return tree_.match(its_keys, tokens, std::ssize(tokens)).usable;
  }

  std::shared_ptr<MemoryBudget> budget_ = std::make_shared<MemoryBudget>();
  PrefixTree tree_{budget_, BlockShape(written_layout()).bytes};
};

TEST_F(PrefixTreeTest, FindsTheLongestBeginningWithASnapshot) {
  const Tokens tokens = some_tokens(1, 700);
  EXPECT_EQ(usable(tokens), 0);
  keep(tokens);
  auto its_keys = keys();
  EXPECT_EQ(tree_.match(its_keys, tokens, 700).usable, 640);
  EXPECT_EQ(tree_.match(its_keys, tokens, 640).usable, 640);
  EXPECT_EQ(tree_.match(its_keys, tokens, 639).usable, 0);
  EXPECT_EQ(tree_.match(its_keys, tokens, 639).present, 512);
  const Tokens other = joined(Tokens(tokens.begin(), tokens.begin() + 400), some_tokens(2, 300));
  EXPECT_EQ(tree_.match(its_keys, tokens, 0).present, 0);
  auto other_keys = keys();
  EXPECT_EQ(tree_.match(other_keys, other, 700).present, 384);
  EXPECT_EQ(tree_.match(other_keys, other, 700).usable, 0);
}

TEST_F(PrefixTreeTest, AStateMadeFromItGoesOnLikeAComputedOne) {
  const Tokens tokens = some_tokens(3, 700);
  keep(tokens);
  const auto cold = computed(tokens);
  SequenceState warm(written_layout(), 0);
  auto its_keys = keys();
  warm.start_from(tree_.take(its_keys, tokens, 640));
  write_tokens(warm, std::span(tokens).subspan(640));
  EXPECT_TRUE(same_states(*cold, warm));
}

TEST_F(PrefixTreeTest, NobodySeesWhatAnotherTenantHasKept) {
  const Tokens tokens = some_tokens(4, 300);
  keep(tokens);
  EXPECT_EQ(usable(tokens), 256);
  EXPECT_EQ(usable(tokens, "somebody else"), 0);
}

TEST_F(PrefixTreeTest, TenantSaltAndModelCannotStandForEachOther) {
  EXPECT_EQ(root_key("m", "a", "b"), root_key("m", "a", "b"));
  EXPECT_NE(root_key("m", "a", "b"), root_key("m", "ab", ""));
  EXPECT_NE(root_key("m", "a", "b"), root_key("m", "", "ab"));
  EXPECT_NE(root_key("m", "a", "b"), root_key("m", "b", "a"));
  EXPECT_NE(root_key("m", "a", "b"), root_key("n", "a", "b"));
  EXPECT_NE(root_key("m", "", "a"), root_key("m", "a", ""));
}

TEST_F(PrefixTreeTest, AKeyDependsOnAllTokensBeforeItAndOnMedia) {
  const Tokens first = some_tokens(5, 128);
  Tokens second = first;
  second[3] ^= 1;
  const PrefixKey root = root_key("m", "", "");
  EXPECT_NE(child_key(root, first), child_key(root, second));
  EXPECT_NE(child_key(child_key(root, first), first), child_key(child_key(root, second), first));
  const std::array<std::byte, 2> digest{std::byte{1}, std::byte{2}};
  EXPECT_NE(child_key(root, first), child_key(root, first, digest));
  EXPECT_EQ(hex(PrefixKey{}).size(), 64U);
}

TEST_F(PrefixTreeTest, EqualBlocksAreKeptOnce) {
  const Tokens common = some_tokens(6, 512);
  keep(joined(common, some_tokens(7, 128)));
  const uint64_t before = budget_->used();
  const Tokens second = joined(common, some_tokens(8, 128));
  {
    const auto state = computed(second);
    auto its_keys = keys();
    const PrefixSegment segment = tree_.insert(its_keys, second, 640, *state);
    EXPECT_EQ(segment.first_block, 0) << "nothing before it has a snapshot";
    EXPECT_EQ(segment.blocks.size(), 5U);
    const auto again = computed(second);
    EXPECT_TRUE(same_states(*again, *state)) << "the state goes on with the shared blocks";
  }
  const uint64_t one_block = BlockShape(written_layout()).bytes + PrefixTree::node_bytes(1);
  EXPECT_EQ(budget_->used(), before + one_block + written_layout().snapshot_bytes());
  EXPECT_EQ(tree_.num_blocks(), 6);
}

TEST_F(PrefixTreeTest, ASegmentBeginsAtTheLastSnapshotBeforeIt) {
  const Tokens tokens = some_tokens(9, 640);
  keep(Tokens(tokens.begin(), tokens.begin() + 256));
  const auto state = computed(tokens);
  auto its_keys = keys();
  const PrefixSegment segment = tree_.insert(its_keys, tokens, 640, *state);
  EXPECT_EQ(segment.first_block, 2);
  EXPECT_EQ(segment.blocks.size(), 3U);
  EXPECT_EQ(segment.parent, its_keys.after(2, tokens));
  EXPECT_EQ(segment.key(), its_keys.after(5, tokens));
  EXPECT_EQ(segment.snapshot->position, 640);

  PrefixTree other(budget_, BlockShape(written_layout()).bytes);
  EXPECT_FALSE(other.insert(segment, its_keys.root())) << "the blocks before it are not there";
  const auto begin = computed(Tokens(tokens.begin(), tokens.begin() + 256));
  auto first_keys = keys();
  EXPECT_TRUE(other.insert(other.insert(first_keys, tokens, 256, *begin), its_keys.root()));
  EXPECT_TRUE(other.insert(segment, its_keys.root()));
  SequenceState warm(written_layout(), 0);
  warm.start_from(other.take(its_keys, tokens, 640));
  EXPECT_TRUE(same_states(*state, warm));
}

TEST_F(PrefixTreeTest, EvictsTheLeastRecentlyUsedOfEqualWorth) {
  std::vector<Tokens> all;
  for (uint32_t i = 0; i < 5; ++i) {
    all.push_back(some_tokens(20 + i, 256));
    keep(all.back());
  }
  auto its_keys = keys();
  tree_.take(its_keys, all[0], 256);
  ASSERT_TRUE(tree_.evict());
  EXPECT_EQ(usable(all[1]), 0);
  for (const size_t kept : {0, 2, 3, 4}) {
    EXPECT_EQ(usable(all[kept]), 256) << kept;
  }
  EXPECT_EQ(tree_.evictions(), 1U);
}

TEST_F(PrefixTreeTest, EvictsLeavesBeforeWhatTheyGrewFrom) {
  const Tokens common = some_tokens(30, 256);
  keep(common);
  const Tokens first = joined(common, some_tokens(31, 256));
  const Tokens second = joined(common, some_tokens(32, 256));
  keep(first);
  keep(second);
  ASSERT_TRUE(tree_.evict());
  EXPECT_EQ(usable(first), 256);
  EXPECT_EQ(usable(second), 512);
  ASSERT_TRUE(tree_.evict());
  EXPECT_EQ(usable(second), 256);
  ASSERT_TRUE(tree_.evict());
  EXPECT_EQ(usable(common), 0);
  EXPECT_FALSE(tree_.evict());
  EXPECT_EQ(budget_->used(), 0U);
}

TEST_F(PrefixTreeTest, EvictsNothingThatRunsWhileThereIsSomethingElse) {
  const Tokens old = some_tokens(40, 256);
  const Tokens fresh = some_tokens(41, 256);
  keep(old);
  keep(fresh);
  SequenceState running(written_layout(), 0);
  auto its_keys = keys();
  running.start_from(tree_.take(its_keys, old, 256));
  for (int i = 0; i < 5; ++i) {
    auto fresh_keys = keys();
    tree_.take(fresh_keys, fresh, 256);
  }
  const uint64_t held = 2 * BlockShape(written_layout()).bytes;
  EXPECT_EQ(tree_.evictable_bytes(), budget_->used() - held);
  ASSERT_TRUE(tree_.evict());
  EXPECT_EQ(usable(fresh), 0);
  EXPECT_EQ(usable(old), 256);
  ASSERT_TRUE(tree_.evict());
  EXPECT_EQ(budget_->used(), held) << "the running state still has its blocks";
  const auto cold = computed(old);
  EXPECT_TRUE(same_states(*cold, running));
}

TEST_F(PrefixTreeTest, ClearFreesEverything) {
  for (uint32_t i = 0; i < 4; ++i) {
    keep(some_tokens(50 + i % 2, 128 * (i + 1)));
  }
  EXPECT_GT(budget_->used(), 0U);
  tree_.clear();
  EXPECT_EQ(budget_->used(), 0U);
  EXPECT_EQ(tree_.num_blocks(), 0);
  EXPECT_EQ(tree_.num_snapshots(), 0);
}

TEST_F(PrefixTreeTest, KeepsItsPromisesOnRandomUse) {
  // Random prompts over few shared beginnings, kept and evicted at random: every hit equals computing, the
  // bytes are exact, and every leaf is of use.
  std::mt19937 random(3);
  const auto below = [&](uint32_t bound) { return static_cast<int64_t>(random() % bound); };
  for (int step = 0; step < 400; ++step) {
    Tokens tokens = some_tokens(static_cast<uint32_t>(60 + below(3)), 128 * below(4));
    tokens = joined(tokens, some_tokens(static_cast<uint32_t>(70 + below(3)), 128 * below(3)));
    tokens = joined(tokens, some_tokens(static_cast<uint32_t>(80 + below(4)), 1 + below(200)));
    auto its_keys = keys();
    const int64_t found = tree_.match(its_keys, tokens, std::ssize(tokens)).usable;
    auto state = std::make_unique<SequenceState>(written_layout(), 0);
    state->charge_to(budget_);
    if (found > 0) {
      state->start_from(tree_.take(its_keys, tokens, found));
    }
    write_tokens(*state, std::span(tokens).subspan(static_cast<size_t>(found)));
    const auto cold = computed(tokens);
    ASSERT_TRUE(same_states(*cold, *state)) << step;
    const int64_t border = std::ssize(tokens) / kBlockTokens * kBlockTokens;
    if (border > found && state->has_snapshot_at(border)) {
      tree_.insert(its_keys, tokens, border, *state);
    }
    for (int64_t i = below(4); i > 1; --i) {
      tree_.evict();
    }
    state.reset();
  }
  EXPECT_EQ(tree_.evictable_bytes(), budget_->used());
  while (tree_.evict()) {
  }
  EXPECT_EQ(tree_.num_blocks(), 0);
  EXPECT_EQ(budget_->used(), 0U);
}

}  // namespace
}  // namespace hadal::cache
