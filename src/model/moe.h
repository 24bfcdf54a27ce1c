#pragma once
// Mixture of experts with a shared expert (model.md section 10).

#include <cstdint>
#include <vector>

#include "checkpoint/model_config.h"
#include "model/buffer.h"
#include "model/operators.h"
#include "model/weights.h"

namespace hadal::model {

/// The router's choice for a batch: [rows, top_k], best first.
struct Routing {
  std::vector<int32_t> experts;
  std::vector<float> weights;
};

class Moe {
 public:
  Moe(const checkpoint::TextConfig& config, Operators& operators) : config_(config), operators_(operators) {}

  /// y [rows, H] = experts chosen by the router plus the shared expert, x [rows, H]. A token's expert outputs
  /// are added in order of expert id, the shared expert last. Each weight is read once for all its rows.
  void forward(const MoeWeights& weights, const float* x, int64_t rows, int64_t top_k, float* y);

  const Routing& routing() const { return routing_; }

 private:
  /// An expert and the slots (row, weight) that it computes; the shared expert has every row.
  struct Job {
    const ExpertWeights* weights = nullptr;
    int64_t first_slot = 0;
    int64_t num_slots = 0;
    int64_t inner = 0;       ///< width of gate, up and act
    int64_t act_offset = 0;  ///< where its act rows start
  };
  /// A range of weight rows of one job.
  struct Task {
    int32_t job = 0;
    int64_t begin = 0;
    int64_t end = 0;
  };

  void route(const MoeWeights& weights, const float* x, int64_t rows, int64_t top_k);
  void make_jobs(const MoeWeights& weights, int64_t rows, int64_t top_k);
  template <class RowsOf>
  void cut_tasks(RowsOf&& rows_of_job);
  void gate_and_up(const float* x, int64_t rows);
  void down();
  void combine(int64_t rows, float* y);

  const checkpoint::TextConfig& config_;
  Operators& operators_;
  Routing routing_;
  std::vector<Job> jobs_;
  std::vector<Task> tasks_;
  std::vector<int32_t> slot_rows_;  ///< batch row of each slot
  std::vector<float> slot_weights_;
  std::vector<int64_t> slots_of_row_;  ///< [rows, top_k (+ shared)], in the order of addition
  Buffer<float> logits_, packed_routed_, packed_shared_, gathered_, gate_, up_, act_, packed_act_, outputs_;
};

}  // namespace hadal::model
