#pragma once
// Outputs with one token each, for readers that may end an answer at any token (stop strings): what they see
// does not depend on how many tokens a step gave.

#include <vector>

#include "engine/request.h"

namespace hadal::engine {

/// The outputs that steps of one token each would have given: usage grows with each token, and what ends the
/// answer is on the last. An output with at most one token comes back as it is.
std::vector<Output> split_output(Output output);

}  // namespace hadal::engine
