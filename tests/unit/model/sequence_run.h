#pragma once
// Runs of single sequences through a model, and bitwise comparison of logits and states.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "cache/sequence_state.h"
#include "model/model.h"

namespace hadal::model {

using Ids = std::span<const int32_t>;

/// A sequence that grows by forward passes of its own and keeps the logits of all its positions.
class SequenceRun {
 public:
  /// prompt_length: what new_state() is told; bounded replay depends on it.
  SequenceRun(Model& model, int64_t prompt_length)
      : model_(model), vocab_size_(model.vocab_size()), state_(model.new_state(prompt_length)) {}

  /// One pass over these tokens; logits for the last `num_logits` of them (all by default), zeros for others.
  void feed(Ids ids, int64_t num_logits = -1);

  /// As many passes as needed, at most `chunk` tokens each.
  void feed_in_chunks(Ids ids, int64_t chunk);

  void truncate(int64_t length);

  cache::SequenceState& state() { return *state_; }
  int64_t length() const { return state_->length(); }
  std::span<const float> logits() const { return logits_; }
  std::span<const float> logits_at(int64_t position) const {
    return std::span(logits_).subspan(static_cast<size_t>(position * vocab_size_),
                                      static_cast<size_t>(vocab_size_));
  }
  int32_t best_token() const;  ///< argmax of the last position, the lowest id of equal ones

  /// For passes made by others: room for `num_tokens` more rows of logits.
  std::span<float> grow(int64_t num_tokens);

 private:
  Model& model_;
  int64_t vocab_size_;
  std::unique_ptr<cache::SequenceState> state_;
  std::vector<float> logits_;
};

/// Logits of all positions from a single pass.
std::vector<float> whole_run(Model& model, Ids ids);

/// Whether both hold the same float bits; names the first position (rows of `vocab_size`) that differs.
testing::AssertionResult same_logits(std::span<const float> want, std::span<const float> got,
                                     int64_t vocab_size);

/// Whether two states of one model continue alike: lengths, every entry and index key, and those rows of the
/// windows and tails that later tokens may read. Windows of decoder-half layers count from replay_from on.
testing::AssertionResult same_state(const checkpoint::TextConfig& config, cache::SequenceState& want,
                                    cache::SequenceState& got);

}  // namespace hadal::model
