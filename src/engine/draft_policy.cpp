#include "engine/draft_policy.h"

#include <algorithm>

namespace hadal::engine {
namespace {

/// A confidence counts as so many guesses of its bin.
constexpr double kPriorGuesses = 8;
/// Old guesses of a bin lose half of their weight when it has seen so many.
constexpr uint64_t kForgetFrom = 2048;
/// Weight of a step in the running mean.
constexpr double kNew = 1.0 / 16;

double expected_tokens(std::span<const std::vector<float>> confidences, std::span<const int64_t> counts) {
  auto expected = static_cast<double>(confidences.size());
  for (size_t s = 0; s < confidences.size(); ++s) {
    double rate = 1;
    for (int64_t i = 0; i < counts[s]; ++i) {
      rate *= static_cast<double>(confidences[s][static_cast<size_t>(i)]);
      expected += rate;
    }
  }
  return expected;
}

}  // namespace

bool DraftPolicy::wants_drafts() {
  if (pause_ > 0) {
    --pause_;
    return false;
  }
  return true;
}

float DraftPolicy::corrected(float confidence) const {
  if (costs_.pass.empty() || !(confidence >= 0 && confidence <= 1)) {
    return confidence;
  }
  const DraftStats::Bin& bin = seen_.bins[DraftStats::bin_of(confidence)];
  const double right = static_cast<double>(bin.accepted) + kPriorGuesses * static_cast<double>(confidence);
  return static_cast<float>(right / (static_cast<double>(bin.count) + kPriorGuesses));
}

std::vector<int64_t> DraftPolicy::choose(std::span<const std::vector<float>> confidences,
                                         int64_t max_guesses) {
  std::vector<int64_t> counts = choose_verification(confidences, max_guesses, costs_.pass);
  const auto num_drafted =
      std::count_if(confidences.begin(), confidences.end(), [](const auto& row) { return !row.empty(); });
  if (costs_.pass.empty() || costs_.drafts.empty() || num_drafted == 0) {
    return counts;
  }
  const auto num_sequences = static_cast<int64_t>(confidences.size());
  int64_t rows = num_sequences;
  for (const int64_t count : counts) {
    rows += count;
  }
  const double with =
      expected_tokens(confidences, counts) / (costs_.pass.seconds(rows) + costs_.drafts.seconds(num_drafted));
  const double without = static_cast<double>(num_sequences) / costs_.pass.seconds(num_sequences);
  gain_ += (with / without - gain_) * kNew;
  if (++trial_ >= kTrial && gain_ < 1) {
    pause_ = kPause;
    trial_ = 0;
    gain_ = 1;
  }
  return counts;
}

void DraftPolicy::learn(const DraftStats& step) {
  for (size_t i = 0; i < DraftStats::kNumBins; ++i) {
    auto& bin = seen_.bins[i];
    bin.count += step.bins[i].count;
    bin.accepted += step.bins[i].accepted;
    if (bin.count >= kForgetFrom) {
      bin.count /= 2;
      bin.accepted /= 2;
    }
  }
}

}  // namespace hadal::engine
