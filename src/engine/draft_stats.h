#pragma once
// How drafting went: counters of guesses by their place in the block, and whether confidences are true.

#include <array>
#include <cstddef>
#include <cstdint>

namespace hadal::engine {

inline constexpr int64_t kMaxDraftLength = 16;  ///< guesses of one block

struct DraftStats {
  struct Position {
    uint64_t drafted = 0;   ///< guessed
    uint64_t verified = 0;  ///< of these, computed by the target
    uint64_t reached = 0;   ///< of these, with every guess before them accepted
    uint64_t accepted = 0;  ///< of these, equal to the target's own token
  };
  /// Reached guesses by confidence: bin i holds [i/10, (i+1)/10), the last one 1 too.
  struct Bin {
    uint64_t count = 0;
    uint64_t accepted = 0;
    double confidence_sum = 0;
  };
  static constexpr size_t kNumBins = 10;
  static size_t bin_of(float confidence);  ///< in [0, 1]

  std::array<Position, static_cast<size_t>(kMaxDraftLength)> positions{};
  std::array<Bin, kNumBins> bins{};

  /// A guess with every one before it accepted, and what became of it.
  void count_reached(int64_t position, float confidence, bool accepted);
  DraftStats& operator+=(const DraftStats& other);
  Position total() const;  ///< over all positions

  /// Expected calibration error: the mean over reached guesses of their bin's |mean confidence - share of
  /// accepted|; 0 without guesses.
  double calibration_error() const;
};

}  // namespace hadal::engine
