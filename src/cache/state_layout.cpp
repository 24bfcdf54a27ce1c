#include "cache/state_layout.h"

#include <algorithm>

namespace hadal::cache {
namespace {

size_t padded(size_t bytes) {
  constexpr size_t kAlignment = 32;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

bool StateLayout::has_aligned_blocks() const {
  return std::all_of(sources.begin(), sources.end(),
                     [](const Source& source) { return kBlockTokens % source.ratio == 0; });
}

size_t StateLayout::ring_bytes() const {
  size_t bytes = 0;
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    bytes += static_cast<size_t>(ring_rows(layer)) * window_row_bytes;
  }
  for (const Source& source : sources) {
    if (source.tail_bytes > 0) {
      bytes += static_cast<size_t>(source.ratio + max_rollback) * source.tail_bytes;
    }
  }
  return bytes;
}

size_t StateLayout::snapshot_bytes() const {
  const int64_t layers = first_replayed_layer ? std::min(*first_replayed_layer, num_layers) : num_layers;
  return static_cast<size_t>(layers * window) * window_row_bytes;
}

BlockShape::BlockShape(const StateLayout& layout) {
  for (const auto& source : layout.sources) {
    Region region;
    region.rows = std::max<int64_t>(kBlockTokens / source.ratio, 1);
    region.index_keys = bytes;
    bytes += padded(static_cast<size_t>(region.rows) * source.index_key_bytes);
    region.entries = bytes;
    bytes += padded(static_cast<size_t>(region.rows) * source.entry_bytes);
    regions.push_back(region);
  }
}

}  // namespace hadal::cache
