#include "written_state.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace hadal::cache {
namespace {

void fill(std::byte* row, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; ++i) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    row[i] = static_cast<std::byte>(seed >> 56);
  }
}

bool same_bytes(const std::byte* a, const std::byte* b, size_t bytes) {
  return bytes == 0 || std::memcmp(a, b, bytes) == 0;
}

}  // namespace

StateLayout written_layout() {
  return {.sources = {{.ratio = 2, .entry_bytes = 10, .index_key_bytes = 6, .tail_bytes = 8},
                      {.ratio = 1, .entry_bytes = 10, .index_key_bytes = 0, .tail_bytes = 0}},
          .num_layers = 3,
          .window = 8,
          .window_row_bytes = 5,
          .max_rollback = 3,
          .snapshot_reach = 128};
}

void write_tokens(SequenceState& state, std::span<const int32_t> tokens) {
  const int64_t start = state.length();
  const auto& layout = state.layout();
  auto& history = state.engram_context();
  history.insert(history.end(), tokens.begin(), tokens.end());
  std::vector<uint64_t> hashes{11};
  for (const int32_t token : history) {
    hashes.push_back((hashes.back() ^ static_cast<uint64_t>(token)) * 0x9e3779b97f4a7c15 + 1);
  }
  const auto end = static_cast<int64_t>(history.size());
  for (size_t s = 0; s < layout.sources.size(); ++s) {
    auto& source = state.sources()[s];
    const int64_t ratio = layout.sources[s].ratio;
    for (RowStore* store : {&source.entries, &source.index_keys}) {
      store->resize(end / ratio);
      for (int64_t i = start / ratio; store->row_bytes() > 0 && i < store->size(); ++i) {
        fill(store->row(i), store->row_bytes(), hashes[static_cast<size_t>((i + 1) * ratio)] + s);
      }
    }
    for (int64_t at = start; at < end; ++at) {
      fill(source.tail.row(at), source.tail.row_bytes(), hashes[static_cast<size_t>(at + 1)] + 20 + s);
    }
  }
  for (size_t layer = 0; layer < state.windows().size(); ++layer) {
    for (int64_t at = start; at < end; ++at) {
      fill(state.windows()[layer].row(at), layout.window_row_bytes,
           hashes[static_cast<size_t>(at + 1)] + 40 + layer);
    }
  }
  state.advance(static_cast<int64_t>(tokens.size()));
}

testing::AssertionResult same_states(SequenceState& want, SequenceState& got) {
  if (want.length() != got.length() || want.engram_context() != got.engram_context()) {
    return testing::AssertionFailure() << "length " << got.length() << ", want " << want.length();
  }
  for (size_t s = 0; s < want.sources().size(); ++s) {
    auto& a = want.sources()[s];
    auto& b = got.sources()[s];
    for (const auto& [x, y] : {std::pair{&a.entries, &b.entries}, {&a.index_keys, &b.index_keys}}) {
      for (int64_t i = 0; x->row_bytes() > 0 && i < x->size(); ++i) {
        if (!same_bytes(x->row(i), y->row(i), x->row_bytes())) {
          return testing::AssertionFailure() << "source " << s << ", row " << i;
        }
      }
    }
    const int64_t ratio = want.layout().sources[s].ratio;
    for (int64_t at = want.length() / ratio * ratio; at < want.length(); ++at) {
      if (!same_bytes(a.tail.row(at), b.tail.row(at), a.tail.row_bytes())) {
        return testing::AssertionFailure() << "tail " << s << ", position " << at;
      }
    }
  }
  for (size_t layer = 0; layer < want.windows().size(); ++layer) {
    for (int64_t at = std::max<int64_t>(want.length() - want.layout().window, 0); at < want.length(); ++at) {
      if (!same_bytes(want.windows()[layer].row(at), got.windows()[layer].row(at),
                      want.layout().window_row_bytes)) {
        return testing::AssertionFailure() << "layer " << layer << ", position " << at;
      }
    }
  }
  return testing::AssertionSuccess();
}

std::vector<int32_t> some_tokens(uint32_t seed, int64_t count) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::generate(tokens.begin(), tokens.end(), [&] { return static_cast<int32_t>(random() % 1000); });
  return tokens;
}

std::vector<int32_t> joined(std::vector<int32_t> first, const std::vector<int32_t>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace hadal::cache
