#pragma once
// Engram: rows of huge hashed n-gram tables, mixed into the trunk (model.md section 9).

#include <cstdint>
#include <vector>

#include "checkpoint/model_config.h"
#include "model/buffer.h"
#include "model/capture.h"
#include "model/engram_hash.h"
#include "model/operators.h"
#include "model/pass.h"
#include "model/weights.h"

namespace hadal::model {

class Engram {
 public:
  Engram(const checkpoint::TextConfig& config, EngramHash hash, Operators& operators)
      : config_(config), hash_(std::move(hash)), operators_(operators) {}

  /// Appends the pass's tokens to the states' contexts, computes the table rows of all Engram layers, and
  /// asks the kernel to read those that are not in memory, so that the disk works while earlier layers
  /// compute.
  void begin(const Pass& pass, const ModelWeights& weights, Capture* capture);

  /// streams [rows, m, H] += gated table values of engram layer number `slot`.
  void forward(size_t slot, const EngramWeights& weights, const Pass& pass, float* streams);

 private:
  const checkpoint::TextConfig& config_;
  EngramHash hash_;
  Operators& operators_;
  std::vector<std::vector<int64_t>> table_rows_;  ///< per layer slot: [rows, rows_per_token]
  Buffer<float> embeddings_, packed_, kv_;
};

}  // namespace hadal::model
