#pragma once
// The indexer: which compressed entries each row attends to (model.md section 8).

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/model_config.h"
#include "model/buffer.h"
#include "model/capture.h"
#include "model/operators.h"
#include "model/pass.h"
#include "model/weights.h"

namespace hadal::model {

struct CacheMap;
struct Rotations;

/// A list of ids per row of a pass.
class RowLists {
 public:
  void assign(int64_t rows) { lists_.resize(static_cast<size_t>(rows)); }
  std::vector<int32_t>& operator[](int64_t row) { return lists_[static_cast<size_t>(row)]; }
  const std::vector<int32_t>& operator[](int64_t row) const { return lists_[static_cast<size_t>(row)]; }

 private:
  std::vector<std::vector<int32_t>> lists_;
};

class Indexer {
 public:
  Indexer(const checkpoint::TextConfig& config, const CacheMap& cache_map, Operators& operators)
      : config_(config), cache_map_(cache_map), operators_(operators) {}

  /// Selects for every row, from the packed attention input and packed low-rank query of the layer.
  void select(int64_t layer, const IndexerWeights& weights, const Pass& pass, const Rotations& rotations,
              PackedRows x, PackedRows q_low, Capture* capture);

  /// Entries of a row by the last select(), ascending.
  const std::vector<int32_t>& selected(int64_t row) const { return selected_[row]; }

 private:
  /// The scores of one row: of groups 0, 1, ... or, if ids is set, of these groups.
  struct ScoredRow {
    std::span<const float> scores;
    const std::vector<int32_t>* ids = nullptr;
  };

  void project(const IndexerWeights& weights, const Pass& pass, const Rotations& rotations, PackedRows x,
               PackedRows q_low);
  void select_segment(int64_t layer, const Pass& pass, const SegmentRows& place);
  void score_all(int64_t layer, const Pass& pass, int64_t row, int64_t rows, int64_t groups);
  void score_listed(int64_t layer, const Pass& pass, int64_t row, const std::vector<int32_t>& groups);
  void score_tile(int64_t row, const float* tile, int64_t count, float* scores) const;
  float score_scale() const;
  template <class GroupOf, class Body>
  void each_key_tile(int64_t layer, const Pass& pass, int64_t row, int64_t total, GroupOf&& group_of,
                     Body&& body);
  void choose(int64_t layer, int64_t row, const ScoredRow& scored);
  void choose_candidates(int64_t row, std::span<const float> scores);
  void list_candidate_groups(int64_t row, int64_t visible, std::vector<int32_t>& groups) const;
  int64_t visible_groups(int64_t layer, const Pass& pass, int64_t row) const;
  void record(int64_t layer, const Pass& pass, Capture& capture) const;
  const float* query(int64_t row) const;
  const float* head_weights(int64_t row) const { return head_weights_.data() + row * config_.index_n_heads; }

  const checkpoint::TextConfig& config_;
  const CacheMap& cache_map_;
  Operators& operators_;
  Buffer<float> queries_, head_weights_, scores_;
  RowLists selected_;
  RowLists candidates_;  ///< blocks kept at the candidate source layer, ascending
};

}  // namespace hadal::model
