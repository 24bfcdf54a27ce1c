#include "cache/sequence_state.h"

#include <algorithm>
#include <cstring>

namespace hadal::cache {

SequenceState::SequenceState(const StateLayout& layout, int64_t replay_from)
    : layout_(layout), replay_from_(replay_from) {
  const BlockShape shape(layout_);
  table_ = std::make_unique<BlockTable>(shape.bytes, nullptr);
  for (size_t i = 0; i < layout_.sources.size(); ++i) {
    const auto& source = layout_.sources[i];
    const auto& region = shape.regions[i];
    // A cut inside a group needs the inputs of the tokens before it in that group again.
    const int64_t tail_rows = source.tail_bytes == 0 ? 0 : source.ratio + layout_.max_rollback;
    sources_.push_back({RowStore(*table_, region.entries, region.rows, source.entry_bytes),
                        RowStore(*table_, region.index_keys, region.rows, source.index_key_bytes),
                        RowRing(std::max<int64_t>(tail_rows, 1), source.tail_bytes)});
  }
  for (int64_t layer = 0; layer < layout_.num_layers; ++layer) {
    windows_.emplace_back(layout_.ring_rows(layer), layout_.window_row_bytes);
  }
}

void SequenceState::charge_to(std::shared_ptr<MemoryBudget> budget) {
  budget_ = std::move(budget);
  table_->set_budget(budget_);
  ring_charge_ = Charge(budget_, ring_bytes());
}

bool SequenceState::truncate(int64_t length) {
  if (length < shortest_ || length > length_ || longest_ - length > layout_.max_rollback) {
    return false;
  }
  length_ = length;
  int64_t num_blocks = 0;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const int64_t rows = length / layout_.sources[i].ratio;
    for (RowStore* store : {&sources_[i].entries, &sources_[i].index_keys}) {
      store->resize(std::min(store->size(), rows));
      num_blocks = std::max(num_blocks, store->num_blocks());
    }
  }
  table_->shrink(num_blocks);
  engram_context_.resize(std::min(engram_context_.size(), static_cast<size_t>(length)));
  return true;
}

bool SequenceState::can_start_from(int64_t length) const {
  return length_ == 0 && length > 0 && length % kBlockTokens == 0 && layout_.has_aligned_blocks() &&
         (!layout_.first_replayed_layer || length <= replay_from_);
}

void SequenceState::start_from(StatePrefix prefix) {
  length_ = longest_ = shortest_ = prefix.snapshot->position;
  table_->assign(std::move(prefix.blocks));
  for (size_t i = 0; i < sources_.size(); ++i) {
    // Nothing is allocated: the blocks are there, and none is written before the next group.
    sources_[i].entries.adopt(length_ / layout_.sources[i].ratio);
    sources_[i].index_keys.adopt(length_ / layout_.sources[i].ratio);
  }
  engram_context_ = std::move(prefix.context);
  const std::byte* from = prefix.snapshot->rows.data();
  for (int64_t layer = 0; layer < layout_.num_layers; ++layer) {
    if (!layout_.is_kept(layer)) {
      continue;
    }
    RowRing& window = windows_[static_cast<size_t>(layer)];
    for (int64_t position = length_ - layout_.window; position < length_; ++position) {
      if (position >= 0) {
        std::memcpy(window.row(position), from, window.row_bytes());
      }
      from += window.row_bytes();
    }
  }
}

bool SequenceState::has_snapshot_at(int64_t position) const {
  const int64_t reach = std::max(layout_.snapshot_reach, layout_.max_rollback);
  return position > 0 && position >= shortest_ && position % kBlockTokens == 0 && position <= length_ &&
         longest_ - position <= reach && layout_.has_aligned_blocks();
}

SnapshotPointer SequenceState::snapshot(int64_t position) const {
  auto snapshot = std::make_shared<StateSnapshot>(position, layout_.snapshot_bytes(), budget_);
  std::byte* to = snapshot->rows.data();
  for (int64_t layer = 0; layer < layout_.num_layers; ++layer) {
    if (!layout_.is_kept(layer)) {
      continue;
    }
    const RowRing& window = windows_[static_cast<size_t>(layer)];
    for (int64_t from = position - layout_.window; from < position; ++from) {
      if (from >= 0) {
        std::memcpy(to, window.row(from), window.row_bytes());
      }
      to += window.row_bytes();
    }
  }
  return snapshot;
}

std::unique_ptr<SequenceState> SequenceState::fork() const {
  auto fork = std::make_unique<SequenceState>(layout_, replay_from_);
  fork->charge_to(budget_);
  fork->length_ = length_;
  fork->longest_ = longest_;
  fork->shortest_ = shortest_;
  std::vector<BlockPointer> blocks;
  for (int64_t i = 0; i < table_->size(); ++i) {
    blocks.push_back(table_->block(i));
  }
  fork->table_->assign(std::move(blocks));
  for (size_t i = 0; i < sources_.size(); ++i) {
    fork->sources_[i].entries.adopt(sources_[i].entries.size());
    fork->sources_[i].index_keys.adopt(sources_[i].index_keys.size());
    fork->sources_[i].tail = sources_[i].tail;
  }
  fork->windows_ = windows_;
  fork->engram_context_ = engram_context_;
  return fork;
}

uint64_t SequenceState::growth_bytes(int64_t num_tokens) const {
  int64_t first = table_->size();
  int64_t last = 0;
  for (size_t i = 0; i < sources_.size(); ++i) {
    for (const RowStore* store : {&sources_[i].entries, &sources_[i].index_keys}) {
      const int64_t rows = (length_ + num_tokens) / layout_.sources[i].ratio;
      if (store->row_bytes() > 0 && rows > store->size()) {
        first = std::min(first, store->size() / store->rows_per_block());
        last = std::max(last, store->blocks_for(rows));
      }
    }
  }
  return static_cast<uint64_t>(table_->num_to_allocate(first, last)) * table_->block_bytes();
}

void SequenceState::advance(int64_t num_tokens) {
  length_ += num_tokens;
  longest_ = std::max(longest_, length_);
}

size_t SequenceState::ring_bytes() const {
  size_t bytes = 0;
  for (const auto& source : sources_) {
    bytes += source.tail.allocated_bytes();
  }
  for (const auto& window : windows_) {
    bytes += window.allocated_bytes();
  }
  return bytes;
}

size_t SequenceState::allocated_bytes() const {
  return engram_context_.capacity() * sizeof(int32_t) + table_->allocated_bytes() + ring_bytes();
}

}  // namespace hadal::cache
