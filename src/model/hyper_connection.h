#pragma once
// Hyper-connections in their shifted form (model.md section 5).

#include "checkpoint/model_config.h"
#include "model/buffer.h"
#include "model/operators.h"
#include "model/weights.h"

namespace hadal::model {

/// The mixing coefficients of one sub-layer for all rows: pre [rows, m], post [rows, m], comb [rows, m, m].
struct Mixes {
  Buffer<float> pre;
  Buffer<float> post;
  Buffer<float> comb;
};

/// Computes the coefficients from the trunk [rows, m, H].
void hyper_connection_mixes(Operators& operators, const HyperConnectionWeights& weights,
                            const checkpoint::TextConfig& config, const float* streams, int64_t rows,
                            Buffer<float>& raw, Mixes& mixes);

}  // namespace hadal::model
