#pragma once
// Whether guessing pays at all, and how far confidences are to be believed: learnt from what became of
// earlier guesses. It decides about speed only, never about tokens.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/draft_stats.h"
#include "engine/verification.h"

namespace hadal::engine {

/// Times measured on this machine.
struct StepCosts {
  CostCurve pass;    ///< a forward pass by its rows; empty: unknown, everything is guessed and verified
  CostCurve drafts;  ///< a pass of the draft layers by its sequences; empty: free
};

class DraftPolicy {
 public:
  explicit DraftPolicy(StepCosts costs) : costs_(std::move(costs)) {}

  const StepCosts& costs() const { return costs_; }

  /// Asked once for each step in which sequences could get guesses. While guesses pay it says yes; when they
  /// have not paid for a while it says no for kPause steps, then tries again.
  bool wants_drafts();

  /// The confidence corrected by how often guesses of about this confidence were right so far.
  float corrected(float confidence) const;

  /// Guesses to verify of each sequence that decodes, as choose_verification; `confidences` are corrected.
  /// Remembers whether guessing paid if there are guesses.
  std::vector<int64_t> choose(std::span<const std::vector<float>> confidences, int64_t max_guesses);

  /// What became of a step's guesses.
  void learn(const DraftStats& step);

  static constexpr int64_t kTrial = 16;   ///< steps with guesses before it may say no
  static constexpr int64_t kPause = 240;  ///< steps without

 private:
  const StepCosts costs_;
  DraftStats seen_;    ///< only the bins
  double gain_ = 1;    ///< running mean: tokens a second with guesses to those without
  int64_t trial_ = 0;  ///< steps with guesses since the last pause
  int64_t pause_ = 0;  ///< steps still to go without
};

}  // namespace hadal::engine
