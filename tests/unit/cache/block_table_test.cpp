#include "cache/block_table.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace hadal::cache {
namespace {

constexpr int64_t kRows = 64;
constexpr size_t kRowBytes = 7;
constexpr size_t kOffset = 32;
constexpr size_t kBlockBytes = kOffset + kRows * kRowBytes;

void fill_row(std::byte* row, int64_t value) {
  std::memset(row, static_cast<int>(value % 251), kRowBytes);
}

bool row_holds(const std::byte* row, int64_t value) {
  for (size_t i = 0; i < kRowBytes; ++i) {
    if (row[i] != static_cast<std::byte>(value % 251)) {
      return false;
    }
  }
  return true;
}

class BlockTableTest : public testing::Test {
 protected:
  void append(RowStore& store, int64_t count) {
    const int64_t before = store.size();
    store.resize(before + count);
    for (int64_t i = before; i < store.size(); ++i) {
      fill_row(store.row(i), i);
    }
  }

  std::shared_ptr<MemoryBudget> budget_ = std::make_shared<MemoryBudget>(1 << 20);
  BlockTable table_{kBlockBytes, budget_};
  RowStore store_{table_, kOffset, kRows, kRowBytes};
};

TEST_F(BlockTableTest, StartsEmpty) {
  EXPECT_EQ(store_.size(), 0);
  EXPECT_EQ(store_.row_bytes(), kRowBytes);
  EXPECT_EQ(table_.allocated_bytes(), 0U);
  EXPECT_EQ(budget_->used(), 0U);
}

TEST_F(BlockTableTest, KeepsRowsAndTheirPlacesWhileGrowing) {
  std::vector<const std::byte*> places;
  for (int64_t size = 1; size <= 3 * kRows + 5; ++size) {
    append(store_, 1);
    places.push_back(store_.row(size - 1));
  }
  for (int64_t i = 0; i < store_.size(); ++i) {
    EXPECT_EQ(store_.row(i), places[static_cast<size_t>(i)]);
    ASSERT_TRUE(row_holds(store_.row(i), i)) << i;
  }
  EXPECT_EQ(budget_->used(), 4 * kBlockBytes);
  EXPECT_EQ(budget_->free(), budget_->limit() - 4 * kBlockBytes);
}

TEST_F(BlockTableTest, ShrinkingFreesBlocksAndKeepsWhatStays) {
  append(store_, 2 * kRows + 1);
  store_.resize(kRows + 1);
  table_.shrink(store_.num_blocks());
  EXPECT_EQ(table_.size(), 2);
  EXPECT_EQ(budget_->used(), 2 * kBlockBytes);
  store_.resize(2 * kRows + 1);
  for (int64_t i = 0; i < kRows + 1; ++i) {
    ASSERT_TRUE(row_holds(store_.row(i), i)) << i;
  }
}

TEST_F(BlockTableTest, RowsOfNoBytesTakeNoMemory) {
  RowStore none(table_, 0, kRows, 0);
  none.resize(1000);
  EXPECT_EQ(none.size(), 1000);
  EXPECT_EQ(none.num_blocks(), 0);
  EXPECT_EQ(budget_->used(), 0U);
}

TEST_F(BlockTableTest, ABlockThatIsSharedIsCopiedBeforeItIsWritten) {
  append(store_, kRows + 10);
  BlockTable other(kBlockBytes, budget_);
  RowStore others_rows(other, kOffset, kRows, kRowBytes);
  other.assign({table_.block(0), table_.block(1)});
  others_rows.adopt(kRows + 10);
  EXPECT_EQ(budget_->used(), 2 * kBlockBytes);
  EXPECT_EQ(other.num_to_allocate(0, 2), 2);
  EXPECT_EQ(other.num_to_allocate(1, 3), 2);

  others_rows.resize(kRows + 11);
  fill_row(others_rows.row(kRows + 10), 200);
  EXPECT_EQ(budget_->used(), 3 * kBlockBytes);
  EXPECT_EQ(other.block(0), table_.block(0)) << "the full block stays shared";
  EXPECT_NE(other.block(1), table_.block(1));
  for (int64_t i = 0; i < kRows + 10; ++i) {
    ASSERT_TRUE(row_holds(others_rows.row(i), i)) << i;
  }
  append(store_, 1);
  EXPECT_TRUE(row_holds(store_.row(kRows + 10), kRows + 10));
  EXPECT_TRUE(row_holds(others_rows.row(kRows + 10), 200));
  EXPECT_EQ(budget_->used(), 3 * kBlockBytes) << "the last holder writes where it is";
}

TEST_F(BlockTableTest, AFrozenBlockIsCopiedEvenIfNobodyElseHoldsIt) {
  append(store_, 10);
  const std::byte* place = store_.row(0);
  table_.block(0)->freeze();
  EXPECT_EQ(table_.num_to_allocate(0, 1), 1);
  append(store_, 1);
  EXPECT_NE(store_.row(0), place);
  EXPECT_TRUE(row_holds(store_.row(9), 9));
  EXPECT_EQ(budget_->used(), kBlockBytes);
}

TEST_F(BlockTableTest, WhoeverDropsABlockLastFreesIt) {
  {
    BlockTable other(kBlockBytes, budget_);
    append(store_, 1);
    other.assign({table_.block(0)});
    table_.shrink(0);
    EXPECT_EQ(budget_->used(), kBlockBytes);
  }
  EXPECT_EQ(budget_->used(), 0U);
}

TEST(MemoryBudget, HasNothingFreeWhenOverdrawn) {
  const auto budget = std::make_shared<MemoryBudget>(10);
  Charge charge(budget, 4);
  EXPECT_EQ(budget->free(), 6U);
  {
    const Charge more(budget, 9);
    EXPECT_EQ(budget->used(), 13U);
    EXPECT_EQ(budget->free(), 0U);
    Charge moved = std::move(charge);
    EXPECT_EQ(budget->used(), 13U);
  }
  EXPECT_EQ(budget->used(), 0U);
}

}  // namespace
}  // namespace hadal::cache
