#pragma once
// States whose rows are a function of source, position and token, as if a model had computed them.

#include <cstdint>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "cache/prefix_tree.h"
#include "cache/sequence_state.h"

namespace hadal::cache {

StateLayout written_layout();

/// "Computes" tokens: every row depends on all tokens up to its position.
void write_tokens(SequenceState& state, std::span<const int32_t> tokens);

/// Whether both states go on alike.
testing::AssertionResult same_states(SequenceState& want, SequenceState& got);

std::vector<int32_t> some_tokens(uint32_t seed, int64_t count);
std::vector<int32_t> joined(std::vector<int32_t> first, const std::vector<int32_t>& second);

}  // namespace hadal::cache
