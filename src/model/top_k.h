#pragma once
// Selection of the best-scored columns, with the reference's tie rule.

#include <cstdint>
#include <span>
#include <vector>

namespace hadal::model {

/// Appends the positions of the k largest scores (all, if fewer) to `out` in ascending order; equal scores
/// prefer the lower position. NaN ranks last.
void select_top(std::span<const float> scores, int64_t k, std::vector<uint64_t>& scratch,
                std::vector<int32_t>& out);

/// The k best in descending order of score, ties by position; for small counts (router).
void rank_top(std::span<const float> scores, int64_t k, std::vector<uint64_t>& scratch, int32_t* out);

}  // namespace hadal::model
