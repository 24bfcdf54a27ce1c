#include "engine/verification.h"

#include <algorithm>
#include <cassert>

namespace hadal::engine {
namespace {

struct Rate {
  float rate = 0;  ///< chance that this guess and all before it are right
  size_t sequence = 0;
};

/// All guesses, likely ones first. Within a sequence rates never grow, so a prefix of this list holds a
/// prefix of each sequence's guesses.
std::vector<Rate> rank_guesses(std::span<const std::vector<float>> confidences) {
  std::vector<Rate> rates;
  for (size_t s = 0; s < confidences.size(); ++s) {
    float rate = 1;
    for (const float confidence : confidences[s]) {
      rate *= confidence > 0 ? std::min(confidence, 1.0F) : 0.0F;  // a NaN counts as 0
      rates.push_back({rate, s});
    }
  }
  std::stable_sort(rates.begin(), rates.end(), [](const Rate& a, const Rate& b) { return a.rate > b.rate; });
  return rates;
}

std::vector<int64_t> count_first(std::span<const Rate> ranked, int64_t num_guesses, size_t num_sequences) {
  std::vector<int64_t> counts(num_sequences, 0);
  for (int64_t i = 0; i < std::min(num_guesses, static_cast<int64_t>(ranked.size())); ++i) {
    ++counts[ranked[static_cast<size_t>(i)].sequence];
  }
  return counts;
}

}  // namespace

CostCurve::CostCurve(std::vector<Point> points) : points_(std::move(points)) {
  std::sort(points_.begin(), points_.end(), [](const Point& a, const Point& b) { return a.rows < b.rows; });
  for (size_t i = 1; i < points_.size(); ++i) {
    points_[i].seconds = std::max(points_[i].seconds, points_[i - 1].seconds);
  }
}

double CostCurve::seconds(int64_t rows) const {
  assert(!points_.empty());
  const auto above = std::lower_bound(points_.begin(), points_.end(), rows,
                                      [](const Point& point, int64_t value) { return point.rows < value; });
  if (above == points_.begin() || points_.size() == 1) {
    return points_.front().seconds;
  }
  const auto right = above == points_.end() ? above - 1 : above;
  const Point& a = *(right - 1);
  const Point& b = *right;
  return a.seconds +
         (b.seconds - a.seconds) * static_cast<double>(rows - a.rows) / static_cast<double>(b.rows - a.rows);
}

std::vector<int64_t> spread_verification(std::span<const std::vector<float>> confidences,
                                         int64_t num_guesses) {
  return count_first(rank_guesses(confidences), num_guesses, confidences.size());
}

std::vector<int64_t> choose_verification(std::span<const std::vector<float>> confidences, int64_t max_guesses,
                                         const CostCurve& curve) {
  const std::vector<Rate> ranked = rank_guesses(confidences);
  const auto num_sequences = static_cast<int64_t>(confidences.size());
  const int64_t most = std::clamp<int64_t>(max_guesses, 0, static_cast<int64_t>(ranked.size()));
  if (curve.empty() || num_sequences == 0) {
    return count_first(ranked, most, confidences.size());
  }
  auto expected = static_cast<double>(num_sequences);
  double best = expected / curve.seconds(num_sequences);
  int64_t best_count = 0;
  for (int64_t count = 1; count <= most; ++count) {
    expected += static_cast<double>(ranked[static_cast<size_t>(count) - 1].rate);
    const double throughput = expected / curve.seconds(num_sequences + count);
    if (throughput > best) {
      best = throughput;
      best_count = count;
    }
  }
  return count_first(ranked, best_count, confidences.size());
}

}  // namespace hadal::engine
