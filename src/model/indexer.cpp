#include "model/indexer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/quantize.h"
#include "model/attention.h"
#include "model/top_k.h"

namespace hadal::model {
namespace {

constexpr int64_t kTile = 16;    ///< keys that the score kernel takes at once
constexpr int64_t kBlock = 128;  ///< keys of one task
/// Scores held at once, in floats: bounds memory for long prompts.
constexpr int64_t kMaxScores = int64_t{1} << 24;

/// Scratch of one compute thread.
struct Scratch {
  Buffer<float> keys;
  Buffer<float> keys_t;
  std::vector<uint64_t> order;
  std::vector<int32_t> picked;
  std::vector<float> block_scores;
};
Scratch& scratch() {
  thread_local Scratch instance;
  return instance;
}

}  // namespace

const float* Indexer::query(int64_t row) const {
  return queries_.data() + row * config_.index_n_heads * config_.index_head_dim;
}

int64_t Indexer::visible_groups(int64_t layer, const Pass& pass, int64_t row) const {
  return (pass.rows[static_cast<size_t>(row)].position + 1) /
         config_.compress_ratios[static_cast<size_t>(layer)];
}

void Indexer::project(const IndexerWeights& weights, const Pass& pass, const Rotations& rotations,
                      PackedRows x, PackedRows q_low) {
  const int64_t rows = pass.num_rows();
  const int64_t heads = config_.index_n_heads;
  const int64_t dim = config_.index_head_dim;
  float* q = queries_.reserve(rows * heads * dim);
  operators_.linear_packed(weights.wq_b, q_low, rows, q, heads * dim);
  operators_.each_row(rows, heads * dim * 8, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> code(static_cast<size_t>(kernels::row_bytes(cache_map_.index_format, dim)));
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t h = 0; h < heads; ++h) {
        float* head = q + (row * heads + h) * dim;
        operators_.kernels().rope(head, dim, rotations.cos(row), rotations.sin(row), rotations.half, false);
        operators_.border(head, dim);
        kernels::encode_row(cache_map_.index_format, head, dim, code.data());
        operators_.kernels().decode_row(cache_map_.index_format, code.data(), dim, head);
      }
    }
  });
  operators_.linear_packed(weights.weights_proj, x, rows, head_weights_.reserve(rows * heads), heads);
}

void Indexer::select(int64_t layer, const IndexerWeights& weights, const Pass& pass,
                     const Rotations& rotations, PackedRows x, PackedRows q_low, Capture* capture) {
  project(weights, pass, rotations, x, q_low);
  selected_.assign(pass.num_rows());
  if (config_.candidate_source_layer_id == layer) {
    candidates_.assign(pass.num_rows());
  }
  for (const auto& place : pass.places) {
    select_segment(layer, pass, place);
  }
  if (capture != nullptr && capture->index) {
    record(layer, pass, *capture);
  }
}

void Indexer::select_segment(int64_t layer, const Pass& pass, const SegmentRows& place) {
  const bool restricted = config_.candidate_source_layer_id && *config_.candidate_source_layer_id < layer;
  const int64_t end = place.first_row + place.num_rows;
  for (int64_t row = place.first_row; row < end;) {
    const int64_t visible = visible_groups(layer, pass, row);
    const int64_t blocks =
        restricted ? (visible + config_.candidate_block_size - 1) / config_.candidate_block_size : 0;
    if (restricted && static_cast<int64_t>(candidates_[row].size()) < blocks) {
      std::vector<int32_t> groups;
      list_candidate_groups(row, visible, groups);
      score_listed(layer, pass, row, groups);
      choose(layer, row, {{scores_.data(), groups.size()}, &groups});
      ++row;
      continue;
    }
    // Rows that score every visible group go together, as many as the score buffer holds.
    int64_t last = row + 1;
    const auto scores_everything = [&](int64_t candidate_row) {
      const int64_t seen = visible_groups(layer, pass, candidate_row);
      return !restricted || static_cast<int64_t>(candidates_[candidate_row].size()) >=
                                (seen + config_.candidate_block_size - 1) / config_.candidate_block_size;
    };
    while (last < end && (last - row + 1) * visible_groups(layer, pass, last) <= kMaxScores &&
           scores_everything(last)) {
      ++last;
    }
    const int64_t groups = visible_groups(layer, pass, last - 1);
    score_all(layer, pass, row, last - row, groups);
    operators_.each_row(last - row, groups * 4, [&](int64_t first, int64_t stop) {
      for (int64_t i = first; i < stop; ++i) {
        const auto seen = static_cast<size_t>(visible_groups(layer, pass, row + i));
        choose(layer, row + i, {{scores_.data() + i * groups, seen}, nullptr});
      }
    });
    row = last;
  }
}

float Indexer::score_scale() const {
  return static_cast<float>(1.0 /
                            std::sqrt(static_cast<double>(config_.index_head_dim * config_.index_n_heads)));
}

/// Calls body(first, count, tile) for each tile of up to 16 of the keys group_of(0) .. group_of(total - 1),
/// decoded and laid out for the score kernel; blocks of tiles run side by side.
template <class GroupOf, class Body>
void Indexer::each_key_tile(int64_t layer, const Pass& pass, int64_t row, int64_t total, GroupOf&& group_of,
                            Body&& body) {
  const int64_t dim = config_.index_head_dim;
  const auto slot = static_cast<size_t>(cache_map_.index_slot[static_cast<size_t>(layer)]);
  const auto& keys = pass.state(pass.rows[static_cast<size_t>(row)]).sources()[slot].index_keys;
  const auto& kernels = operators_.kernels();
  operators_.pool().parallel_for((total + kBlock - 1) / kBlock, [&](int64_t block) {
    float* decoded = scratch().keys.reserve(kTile * dim);
    float* tile = scratch().keys_t.reserve(kTile * dim);
    const int64_t stop = std::min((block + 1) * kBlock, total);
    for (int64_t first = block * kBlock; first < stop; first += kTile) {
      const int64_t count = std::min(kTile, stop - first);
      for (int64_t i = 0; i < count; ++i) {
        kernels.decode_row(cache_map_.index_format,
                           reinterpret_cast<const uint8_t*>(keys.row(group_of(first + i))), dim,
                           decoded + i * dim);
      }
      kernels.transpose_keys(decoded, count, dim, tile);
      body(first, count, tile);
    }
  });
}

/// scores_[i][g] for rows row .. row + rows - 1 and groups 0 .. groups - 1 (those that a row sees).
void Indexer::score_all(int64_t layer, const Pass& pass, int64_t row, int64_t rows, int64_t groups) {
  float* scores = scores_.reserve(std::max<int64_t>(rows * groups, 1));
  const auto same = [](int64_t i) { return i; };
  each_key_tile(layer, pass, row, groups, same, [&](int64_t first, int64_t count, const float* tile) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t seen = std::min(count, visible_groups(layer, pass, row + i) - first);
      if (seen > 0) {
        score_tile(row + i, tile, seen, scores + i * groups + first);
      }
    }
  });
}

/// scores_[i] of groups[i] for one row.
void Indexer::score_listed(int64_t layer, const Pass& pass, int64_t row, const std::vector<int32_t>& groups) {
  const auto total = static_cast<int64_t>(groups.size());
  float* scores = scores_.reserve(std::max<int64_t>(total, 1));
  const auto listed = [&](int64_t i) { return int64_t{groups[static_cast<size_t>(i)]}; };
  each_key_tile(layer, pass, row, total, listed, [&](int64_t first, int64_t count, const float* tile) {
    score_tile(row, tile, count, scores + first);
  });
}

void Indexer::score_tile(int64_t row, const float* tile, int64_t count, float* scores) const {
  operators_.kernels().index_scores(query(row), head_weights(row), config_.index_n_heads,
                                    config_.index_head_dim, tile, count, score_scale(), scores);
  operators_.border(scores, count);
}

void Indexer::list_candidate_groups(int64_t row, int64_t visible, std::vector<int32_t>& groups) const {
  const int64_t size = config_.candidate_block_size;
  for (const int32_t block : candidates_[row]) {
    for (int64_t g = block * size; g < std::min((block + 1) * size, visible); ++g) {
      groups.push_back(static_cast<int32_t>(g));
    }
  }
}

void Indexer::choose(int64_t layer, int64_t row, const ScoredRow& scored) {
  if (config_.candidate_source_layer_id == layer) {
    choose_candidates(row, scored.scores);
  }
  auto& selected = selected_[row];
  selected.clear();
  select_top(scored.scores, config_.index_topk, scratch().order, selected);
  if (scored.ids != nullptr) {
    for (int32_t& id : selected) {
      id = (*scored.ids)[static_cast<size_t>(id)];
    }
  }
}

void Indexer::choose_candidates(int64_t row, std::span<const float> scores) {
  auto& kept = candidates_[row];
  kept.clear();
  if (scores.empty()) {
    return;
  }
  const auto size = static_cast<size_t>(config_.candidate_block_size);
  auto& blocks = scratch().block_scores;
  blocks.clear();
  for (size_t first = 0; first < scores.size(); first += size) {
    const auto block = scores.subspan(first, std::min(size, scores.size() - first));
    blocks.push_back(*std::max_element(block.begin(), block.end()));
  }
  blocks.back() = std::numeric_limits<float>::infinity();  // the newest block always stays
  select_top(blocks, config_.candidate_topk_blocks, scratch().order, kept);
}

void Indexer::record(int64_t layer, const Pass& pass, Capture& capture) const {
  const auto write = [&](const std::string& name, const RowLists& lists, int64_t width) {
    int64_t* out = capture.id_array(name, {capture.num_positions, width});
    for (int64_t row = 0; row < pass.num_rows(); ++row) {
      const int64_t position = pass.rows[static_cast<size_t>(row)].position;
      std::copy(lists[row].begin(), lists[row].end(), out + position * width);
    }
  };
  write(fmt::format("topk.{}", layer), selected_, config_.index_topk);
  if (config_.candidate_source_layer_id == layer) {
    write("candidates", candidates_, config_.candidate_topk_blocks);
  }
}

}  // namespace hadal::model
