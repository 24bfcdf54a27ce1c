#include "cache/block_table.h"

#include <algorithm>
#include <cstring>

namespace hadal::cache {

void BlockTable::prepare_to_write(int64_t first, int64_t last) {
  while (size() < last) {
    blocks_.push_back(std::make_shared<Block>(block_bytes_, budget_));
  }
  for (int64_t index = first; index < last; ++index) {
    if (is_shared(index)) {
      auto copy = std::make_shared<Block>(block_bytes_, budget_);
      std::memcpy(copy->data(), block(index)->data(), block_bytes_);
      replace(index, std::move(copy));
    }
  }
}

int64_t BlockTable::num_to_allocate(int64_t first, int64_t last) const {
  int64_t count = std::max<int64_t>(last - size(), 0);
  for (int64_t index = first; index < std::min(last, size()); ++index) {
    count += is_shared(index) ? 1 : 0;
  }
  return count;
}

void BlockTable::shrink(int64_t size) {
  if (size < this->size()) {
    blocks_.resize(static_cast<size_t>(size));
  }
}

void RowStore::resize(int64_t size) {
  if (size > size_ && row_bytes_ > 0) {
    table_->prepare_to_write(size_ / rows_per_block_, blocks_for(size));
  }
  size_ = size;
}

}  // namespace hadal::cache
