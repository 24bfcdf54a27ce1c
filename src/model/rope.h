#pragma once
// Rotary position embedding: the two frequency tables of a model, and the rotations of given positions.

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/model_config.h"

namespace hadal::model {

/// Inverse frequencies, float32 as the reference computes them (model.md section 6): plain, and YaRN.
std::vector<float> plain_inverse_frequencies(int64_t dim, double theta);
std::vector<float> yarn_inverse_frequencies(int64_t dim, double theta,
                                            const checkpoint::RopeScaling& scaling);

/// Cosines and sines of `position * inverse[i]`, the angle taken in float32. Each output has inverse.size()
/// values.
void rope_rotation(int64_t position, std::span<const float> inverse, float* cosines, float* sines);

}  // namespace hadal::model
