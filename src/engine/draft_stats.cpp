#include "engine/draft_stats.h"

#include <algorithm>
#include <cmath>

namespace hadal::engine {

size_t DraftStats::bin_of(float confidence) {
  return std::min(static_cast<size_t>(confidence * static_cast<float>(kNumBins)), kNumBins - 1);
}

void DraftStats::count_reached(int64_t position, float confidence, bool accepted) {
  auto& place = positions[static_cast<size_t>(position)];
  ++place.reached;
  place.accepted += accepted ? 1 : 0;
  auto& counted = bins[bin_of(confidence)];
  ++counted.count;
  counted.accepted += accepted ? 1 : 0;
  counted.confidence_sum += static_cast<double>(confidence);
}

DraftStats& DraftStats::operator+=(const DraftStats& other) {
  for (size_t i = 0; i < positions.size(); ++i) {
    positions[i].drafted += other.positions[i].drafted;
    positions[i].verified += other.positions[i].verified;
    positions[i].reached += other.positions[i].reached;
    positions[i].accepted += other.positions[i].accepted;
  }
  for (size_t i = 0; i < bins.size(); ++i) {
    bins[i].count += other.bins[i].count;
    bins[i].accepted += other.bins[i].accepted;
    bins[i].confidence_sum += other.bins[i].confidence_sum;
  }
  return *this;
}

DraftStats::Position DraftStats::total() const {
  Position sum;
  for (const Position& position : positions) {
    sum.drafted += position.drafted;
    sum.verified += position.verified;
    sum.reached += position.reached;
    sum.accepted += position.accepted;
  }
  return sum;
}

double DraftStats::calibration_error() const {
  double error = 0;
  uint64_t count = 0;
  for (const Bin& bin : bins) {
    error += std::fabs(bin.confidence_sum - static_cast<double>(bin.accepted));
    count += bin.count;
  }
  return count == 0 ? 0 : error / static_cast<double>(count);
}

}  // namespace hadal::engine
