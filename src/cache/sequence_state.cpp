#include "cache/sequence_state.h"

#include <algorithm>

namespace hadal::cache {

void RowStore::resize(int64_t size) {
  const auto blocks = static_cast<size_t>((size + kBlockRows - 1) / kBlockRows);
  while (blocks_.size() < blocks) {
    blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(kBlockRows * row_bytes_));
  }
  blocks_.resize(blocks);
  size_ = size;
}

SequenceState::SequenceState(const StateLayout& layout, int64_t replay_from)
    : max_rollback_(layout.max_rollback), replay_from_(replay_from) {
  for (const auto& source : layout.sources) {
    ratios_.push_back(source.ratio);
    // A cut inside a group needs the inputs of the tokens before it in that group again.
    const int64_t tail_rows = source.tail_bytes == 0 ? 0 : source.ratio + layout.max_rollback;
    sources_.push_back({RowStore(source.entry_bytes), RowStore(source.index_key_bytes),
                        RowRing(std::max<int64_t>(tail_rows, 1), source.tail_bytes)});
  }
  windows_.assign(static_cast<size_t>(layout.num_layers),
                  RowRing(layout.window + layout.max_rollback, layout.window_row_bytes));
}

bool SequenceState::truncate(int64_t length) {
  if (length < 0 || length > length_ || longest_ - length > max_rollback_) {
    return false;
  }
  length_ = length;
  for (size_t i = 0; i < sources_.size(); ++i) {
    auto& source = sources_[i];
    source.entries.resize(std::min(source.entries.size(), length / ratios_[i]));
    source.index_keys.resize(std::min(source.index_keys.size(), length / ratios_[i]));
  }
  engram_context_.resize(std::min(engram_context_.size(), static_cast<size_t>(length)));
  return true;
}

void SequenceState::advance(int64_t num_tokens) {
  length_ += num_tokens;
  longest_ = std::max(longest_, length_);
}

size_t SequenceState::allocated_bytes() const {
  size_t bytes = engram_context_.capacity() * sizeof(int32_t);
  for (const auto& source : sources_) {
    bytes += source.entries.allocated_bytes() + source.index_keys.allocated_bytes() +
             source.tail.allocated_bytes();
  }
  for (const auto& window : windows_) {
    bytes += window.allocated_bytes();
  }
  return bytes;
}

}  // namespace hadal::cache
