#pragma once
// What the layers of one forward call share: which rows there are and where they belong.

#include <cstdint>
#include <span>
#include <vector>

#include "model/language_model.h"

namespace hadal::model {

/// One token in the batch.
struct Row {
  int32_t segment = 0;
  int64_t position = 0;
};

/// A segment's place in the batch. Its rows are consecutive and end with its last token; under compact
/// replay the decoder half keeps only a suffix of them.
struct SegmentRows {
  int64_t start = 0;        ///< position of the segment's first token
  int64_t end = 0;          ///< one past its last token
  int64_t replay_from = 0;  ///< decoder-half windows begin here
  int64_t first_row = 0;    ///< index of its first row in the batch
  int64_t num_rows = 0;

  int64_t first_position() const { return end - num_rows; }
};

struct Pass {
  std::span<const Segment> segments;
  std::vector<SegmentRows> places;  ///< one per segment
  std::vector<Row> rows;

  int64_t num_rows() const { return static_cast<int64_t>(rows.size()); }
  cache::SequenceState& state(const Row& row) const {
    return *segments[static_cast<size_t>(row.segment)].state;
  }

  /// Keeps the last `kept[s]` rows of each segment; calls move_row(from, to) for each kept row, ascending,
  /// with to <= from.
  template <class MoveRow>
  void keep_last(std::span<const int64_t> kept, MoveRow&& move_row) {
    int64_t to = 0;
    for (size_t s = 0; s < places.size(); ++s) {
      auto& place = places[s];
      const int64_t first = place.first_row + place.num_rows - kept[s];
      place.first_row = to;
      place.num_rows = kept[s];
      for (int64_t i = 0; i < kept[s]; ++i, ++to) {
        rows[static_cast<size_t>(to)] = rows[static_cast<size_t>(first + i)];
        if (first + i != to) {
          move_row(first + i, to);
        }
      }
    }
    rows.resize(static_cast<size_t>(to));
  }
};

}  // namespace hadal::model
