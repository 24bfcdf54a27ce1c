#pragma once
// How many guesses of each sequence a step verifies. Pure functions: results do not depend on the batch, so
// this decides about speed only, never about tokens.

#include <cstdint>
#include <span>
#include <vector>

namespace hadal::engine {

/// The time of a forward pass by its number of rows, as far as it was measured.
class CostCurve {
 public:
  struct Point {
    int64_t rows = 0;  ///< at least 1
    double seconds = 0;
  };
  CostCurve() = default;
  /// Points in any order, one for each number of rows. Where more rows took less time, the longer time of
  /// fewer rows stands for them: noise must not pay.
  explicit CostCurve(std::vector<Point> points);

  bool empty() const { return points_.empty(); }
  std::span<const Point> points() const { return points_; }
  /// Linear between the points, along the last two beyond them, constant below the first. Not for an empty
  /// curve.
  double seconds(int64_t rows) const;

 private:
  std::vector<Point> points_;  ///< by rows
};

/// How many guesses of each sequence to verify: those that make expected tokens per second greatest, the
/// fewest where it is equal. `confidences[s]` are those of the guesses of sequence s that could be verified
/// (none: a Without a curve everything is verified, likely guesses first.
std::vector<int64_t> choose_verification(std::span<const std::vector<float>> confidences, int64_t max_guesses,
                                         const CostCurve& curve);

/// Spreads `num_guesses` over the sequences, likely guesses first; ties: the lower sequence.
std::vector<int64_t> spread_verification(std::span<const std::vector<float>> confidences,
                                         int64_t num_guesses);

}  // namespace hadal::engine
