#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "cache/sequence_state.h"

namespace hadal::cache {
namespace {

constexpr int64_t kBlock = RowStore::kBlockRows;

void fill_row(std::byte* row, size_t bytes, int64_t value) {
  std::memset(row, static_cast<int>(value % 251), bytes);
}

bool row_holds(const std::byte* row, size_t bytes, int64_t value) {
  for (size_t i = 0; i < bytes; ++i) {
    if (row[i] != static_cast<std::byte>(value % 251)) {
      return false;
    }
  }
  return true;
}

TEST(RowStore, StartsEmpty) {
  const RowStore store(12);
  EXPECT_EQ(store.size(), 0);
  EXPECT_EQ(store.row_bytes(), 12U);
  EXPECT_EQ(store.allocated_bytes(), 0U);
}

TEST(RowStore, KeepsRowsAndTheirPlacesWhileGrowing) {
  RowStore store(7);
  std::vector<const std::byte*> places;
  for (int64_t size = 1; size <= 3 * kBlock + 5; ++size) {
    store.resize(size);
    fill_row(store.row(size - 1), 7, size);
    places.push_back(store.row(size - 1));
  }
  for (int64_t i = 0; i < store.size(); ++i) {
    EXPECT_EQ(store.row(i), places[static_cast<size_t>(i)]);
    ASSERT_TRUE(row_holds(store.row(i), 7, i + 1)) << i;
  }
}

TEST(RowStore, RowsOfABlockFollowEachOther) {
  RowStore store(33);
  store.resize(2 * kBlock);
  for (int64_t i = 0; i + 1 < 2 * kBlock; ++i) {
    if ((i + 1) % kBlock != 0) {
      ASSERT_EQ(store.row(i) + 33, store.row(i + 1)) << i;
    }
  }
}

TEST(RowStore, ShrinkingDropsWholeBlocksAndKeepsWhatStays) {
  RowStore store(4);
  store.resize(2 * kBlock + 1);
  for (int64_t i = 0; i < store.size(); ++i) {
    fill_row(store.row(i), 4, i);
  }
  EXPECT_EQ(store.allocated_bytes(), static_cast<size_t>(3 * kBlock * 4));
  store.resize(kBlock + 1);
  EXPECT_EQ(store.size(), kBlock + 1);
  EXPECT_EQ(store.allocated_bytes(), static_cast<size_t>(2 * kBlock * 4));
  store.resize(2 * kBlock + 1);
  for (int64_t i = 0; i < kBlock + 1; ++i) {
    ASSERT_TRUE(row_holds(store.row(i), 4, i)) << i;
  }
  store.resize(0);
  EXPECT_EQ(store.allocated_bytes(), 0U);
}

TEST(RowStore, RowsOfNoBytesTakeNoMemory) {
  RowStore store(0);
  store.resize(1000);
  EXPECT_EQ(store.size(), 1000);
  EXPECT_EQ(store.allocated_bytes(), 0U);
}

TEST(RowRing, HoldsTheLastRowsByPosition) {
  RowRing ring(5, 3);
  EXPECT_EQ(ring.capacity(), 5);
  EXPECT_EQ(ring.allocated_bytes(), 15U);
  for (int64_t position = 0; position < 1000; ++position) {
    fill_row(ring.row(position), 3, position);
    for (int64_t kept = std::max<int64_t>(0, position - 4); kept <= position; ++kept) {
      ASSERT_TRUE(row_holds(ring.row(kept), 3, kept)) << kept << " at " << position;
    }
  }
  const RowRing& view = ring;
  EXPECT_EQ(view.row(7), view.row(2));
  EXPECT_NE(view.row(7), view.row(3));
}

TEST(RowRing, WorksAtGreatPositions) {
  RowRing ring(134, 16);
  const int64_t far = int64_t{1} << 40;
  for (int64_t i = 0; i < 134; ++i) {
    fill_row(ring.row(far + i), 16, i);
  }
  for (int64_t i = 0; i < 134; ++i) {
    ASSERT_TRUE(row_holds(ring.row(far + i), 16, i));
  }
}

}  // namespace
}  // namespace hadal::cache
