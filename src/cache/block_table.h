#pragma once
// The compressed KV entries and index keys of a sequence, in blocks that sequences can share.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/memory_budget.h"

namespace hadal::cache {

/// Rows of all sources for kBlockTokens tokens, as BlockShape says. Zero at first: blocks go to disk whole.
class Block {
 public:
  Block(size_t bytes, std::shared_ptr<MemoryBudget> budget)
      : bytes_(std::make_unique<std::byte[]>(bytes)), charge_(std::move(budget), bytes) {}
  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  /// Makes it immutable: other threads may read it from now on, and who owns it alone again cannot know
  /// whether they have finished before.
  void freeze() { is_frozen_ = true; }
  bool is_frozen() const { return is_frozen_; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  Charge charge_;
  bool is_frozen_ = false;
};

/// Shared by sequences with a common beginning, the prefix tree and the disk tier; whoever drops it last
/// frees it. A block that more than one holds, or that is frozen, is never written.
using BlockPointer = std::shared_ptr<Block>;

/// The blocks of one sequence, in order. Not thread-safe; the blocks it shares may be read elsewhere.
class BlockTable {
 public:
  BlockTable(size_t block_bytes, std::shared_ptr<MemoryBudget> budget)
      : block_bytes_(block_bytes), budget_(std::move(budget)) {}

  int64_t size() const { return static_cast<int64_t>(blocks_.size()); }
  const BlockPointer& block(int64_t index) const { return blocks_[static_cast<size_t>(index)]; }
  std::byte* data(int64_t index) const { return blocks_[static_cast<size_t>(index)]->data(); }

  /// Makes blocks first .. last - 1 there and this sequence's own: missing ones are allocated, shared ones
  /// copied.
  void prepare_to_write(int64_t first, int64_t last);
  /// Of blocks first .. last - 1, how many prepare_to_write() would allocate or copy.
  int64_t num_to_allocate(int64_t first, int64_t last) const;

  void assign(std::vector<BlockPointer> blocks) { blocks_ = std::move(blocks); }
  /// Puts an equal block, which others hold too, in the place of this one.
  void replace(int64_t index, BlockPointer block) { blocks_[static_cast<size_t>(index)] = std::move(block); }
  /// Drops the blocks from `size` on.
  void shrink(int64_t size);
  size_t block_bytes() const { return block_bytes_; }
  size_t allocated_bytes() const { return blocks_.size() * block_bytes_; }
  void set_budget(std::shared_ptr<MemoryBudget> budget) { budget_ = std::move(budget); }

 private:
  bool is_shared(int64_t index) const { return block(index).use_count() > 1 || block(index)->is_frozen(); }
  size_t block_bytes_;
  std::shared_ptr<MemoryBudget> budget_;
  std::vector<BlockPointer> blocks_;
};

/// Rows of equal size of one source, appended one after the other: a view of a part of each block.
class RowStore {
 public:
  /// `offset`: of the first row in a block.
  RowStore(BlockTable& table, size_t offset, int64_t rows_per_block, size_t row_bytes)
      : table_(&table), offset_(offset), rows_per_block_(rows_per_block), row_bytes_(row_bytes) {}

  int64_t size() const { return size_; }
  size_t row_bytes() const { return row_bytes_; }
  const std::byte* row(int64_t index) const { return address(index); }
  /// To be written only if it is new since the last resize().
  std::byte* row(int64_t index) { return address(index); }
  /// Makes the store `size` rows long. New rows are uninitialized and may be written; rows past the new end
  /// are dropped, their memory stays with the table.
  void resize(int64_t size);
  /// Makes the store `size` rows long with rows that the table's blocks hold already.
  void adopt(int64_t size) { size_ = size; }

  /// Blocks that the rows up to the end take.
  int64_t num_blocks() const { return row_bytes_ == 0 ? 0 : blocks_for(size_); }
  int64_t blocks_for(int64_t rows) const { return (rows + rows_per_block_ - 1) / rows_per_block_; }
  int64_t rows_per_block() const { return rows_per_block_; }

 private:
  std::byte* address(int64_t index) const {
    return table_->data(index / rows_per_block_) + offset_ +
           static_cast<size_t>(index % rows_per_block_) * row_bytes_;
  }
  BlockTable* table_;
  size_t offset_;
  int64_t rows_per_block_;
  size_t row_bytes_;
  int64_t size_ = 0;
};

}  // namespace hadal::cache
