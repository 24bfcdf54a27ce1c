#include "model/top_k.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace hadal::model {
namespace {

/// Orders ascending as (score descending, position ascending).
uint64_t sort_key(float score, size_t position) {
  if (std::isnan(score)) {
    return 0xffffffffULL << 32 | position;
  }
  // +0 and -0 are equal scores.
  const auto bits = std::bit_cast<uint32_t>(score == 0.0F ? 0.0F : score);
  const uint32_t ascending = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return static_cast<uint64_t>(~ascending) << 32 | position;
}

void make_keys(std::span<const float> scores, std::vector<uint64_t>& keys) {
  keys.resize(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    keys[i] = sort_key(scores[i], i);
  }
}

}  // namespace

void select_top(std::span<const float> scores, int64_t k, std::vector<uint64_t>& scratch,
                std::vector<int32_t>& out) {
  const auto count = static_cast<size_t>(k);
  if (scores.size() <= count) {
    for (size_t i = 0; i < scores.size(); ++i) {
      out.push_back(static_cast<int32_t>(i));
    }
    return;
  }
  make_keys(scores, scratch);
  std::nth_element(scratch.begin(), scratch.begin() + static_cast<std::ptrdiff_t>(count), scratch.end());
  const size_t first = out.size();
  for (size_t i = 0; i < count; ++i) {
    out.push_back(static_cast<int32_t>(scratch[i] & 0xffffffffU));
  }
  std::sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
}

void rank_top(std::span<const float> scores, int64_t k, std::vector<uint64_t>& scratch, int32_t* out) {
  make_keys(scores, scratch);
  std::partial_sort(scratch.begin(), scratch.begin() + k, scratch.end());
  for (int64_t i = 0; i < k; ++i) {
    out[i] = static_cast<int32_t>(scratch[static_cast<size_t>(i)] & 0xffffffffU);
  }
}

}  // namespace hadal::model
