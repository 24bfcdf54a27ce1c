#include "sequence_run.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace hadal::model {

std::span<float> SequenceRun::grow(int64_t num_tokens) {
  const size_t before = logits_.size();
  logits_.resize(before + static_cast<size_t>(num_tokens * vocab_size_), 0.0F);
  return std::span(logits_).subspan(before);
}

void SequenceRun::feed(Ids ids, int64_t num_logits) {
  const auto rows = grow(static_cast<int64_t>(ids.size()));
  const auto wanted = num_logits < 0 ? rows.size() : static_cast<size_t>(num_logits * vocab_size_);
  const Segment segment{state_.get(), ids, rows.last(wanted)};
  const auto done = model_.forward({&segment, 1});
  ASSERT_TRUE(done.has_value()) << done.error().message;
}

void SequenceRun::feed_in_chunks(Ids ids, int64_t chunk) {
  while (!ids.empty()) {
    const auto count = std::min(ids.size(), static_cast<size_t>(chunk));
    feed(ids.first(count));
    ids = ids.subspan(count);
  }
}

void SequenceRun::truncate(int64_t length) {
  ASSERT_TRUE(state_->truncate(length)) << state_->length() << " to " << length;
  logits_.resize(static_cast<size_t>(length * vocab_size_));
}

int32_t SequenceRun::best_token() const {
  const auto last = logits_at(length() - 1);
  return static_cast<int32_t>(std::max_element(last.begin(), last.end()) - last.begin());
}

std::vector<float> whole_run(Model& model, Ids ids) {
  SequenceRun run(model, static_cast<int64_t>(ids.size()));
  run.feed(ids);
  return {run.logits().begin(), run.logits().end()};
}

testing::AssertionResult same_logits(std::span<const float> want, std::span<const float> got,
                                     int64_t vocab_size) {
  if (want.size() != got.size()) {
    return testing::AssertionFailure() << got.size() << " logits, want " << want.size();
  }
  if (std::memcmp(want.data(), got.data(), want.size_bytes()) == 0) {
    return testing::AssertionSuccess();
  }
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::bit_cast<uint32_t>(want[i]) != std::bit_cast<uint32_t>(got[i])) {
      return testing::AssertionFailure()
             << "row " << i / static_cast<size_t>(vocab_size) << ", token "
             << i % static_cast<size_t>(vocab_size) << ": " << got[i] << ", want " << want[i];
    }
  }
  return testing::AssertionSuccess();
}

namespace {

bool same_rows(const cache::RowStore& a, const cache::RowStore& b) {
  if (a.size() != b.size() || a.row_bytes() != b.row_bytes()) {
    return false;
  }
  for (int64_t i = 0; i < a.size(); ++i) {
    if (a.row_bytes() != 0 && std::memcmp(a.row(i), b.row(i), a.row_bytes()) != 0) {
      return false;
    }
  }
  return true;
}

bool same_rows(const cache::RowRing& a, const cache::RowRing& b, int64_t begin, int64_t end) {
  const auto bytes = a.allocated_bytes() / static_cast<size_t>(a.capacity());
  for (int64_t position = begin; position < end; ++position) {
    if (bytes != 0 && std::memcmp(a.row(position), b.row(position), bytes) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

testing::AssertionResult same_state(const checkpoint::TextConfig& config, cache::SequenceState& want,
                                    cache::SequenceState& got) {
  const int64_t length = want.length();
  if (got.length() != length) {
    return testing::AssertionFailure() << "length " << got.length() << ", want " << length;
  }
  if (want.sources().size() != got.sources().size() || want.windows().size() != got.windows().size()) {
    return testing::AssertionFailure() << "states of different models";
  }
  for (size_t i = 0; i < want.sources().size(); ++i) {
    auto& a = want.sources()[i];
    auto& b = got.sources()[i];
    const int64_t ratio = config.compress_ratios[static_cast<size_t>(config.index_k_source_layer_ids[i])];
    if (!same_rows(a.entries, b.entries)) {
      return testing::AssertionFailure() << "entries of source " << i << " differ";
    }
    if (!same_rows(a.index_keys, b.index_keys)) {
      return testing::AssertionFailure() << "index keys of source " << i << " differ";
    }
    // What the open group has so far.
    if (ratio > 1 && !same_rows(a.tail, b.tail, length / ratio * ratio, length)) {
      return testing::AssertionFailure() << "tails of source " << i << " differ";
    }
  }
  for (size_t layer = 0; layer < want.windows().size(); ++layer) {
    const bool is_decoder_half = static_cast<int64_t>(layer) >= config.first_consumer_layer;
    const int64_t begin = std::max(std::max<int64_t>(0, length - config.sliding_window + 1),
                                   is_decoder_half ? want.replay_from() : 0);
    if (!same_rows(want.windows()[layer], got.windows()[layer], begin, length)) {
      return testing::AssertionFailure() << "windows of layer " << layer << " differ";
    }
  }
  if (want.engram_context() != got.engram_context()) {
    return testing::AssertionFailure() << "Engram contexts differ";
  }
  return testing::AssertionSuccess();
}

}  // namespace hadal::model
