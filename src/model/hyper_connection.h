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

/// x [rows, H] = the trunk [rows, m, H] collapsed with pre [rows, m].
void collapse_trunk(const Operators& operators, const checkpoint::TextConfig& config, const float* streams,
                    const float* pre, int64_t rows, float* x);

/// The trunk takes in a sub-layer's output y [rows, H].
void expand_trunk(const Operators& operators, const checkpoint::TextConfig& config, const float* y,
                  const Mixes& mixes, int64_t rows, float* streams);

/// The trunk of one row at the start: every stream is the embedding [H], and `pre` reads stream 0 only.
void start_trunk(const Operators& operators, const checkpoint::TextConfig& config, const uint8_t* embedding,
                 float* streams, float* pre);

}  // namespace hadal::model
