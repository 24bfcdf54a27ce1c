#pragma once
// Rows of logits for tests, made from Philox words so that other programs can make the same.

#include <cstdint>
#include <string_view>
#include <vector>

namespace hadal::engine {

/// "flat", "coarse" (many ties), "peaked" or "masked" (two thirds -infinity); the recipes are those of
/// tools/make_sampler_goldens.py.
std::vector<float> make_row(std::string_view kind, uint32_t row_seed, int64_t num_tokens);

}  // namespace hadal::engine
