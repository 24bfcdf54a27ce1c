#pragma once
// Power-of-two scales as float32, one table for all instruction sets.

#include <cstdint>

namespace hadal::kernels {

/// values[b] = 2^(b - 127 + 8) for the e8m0 byte b. Decoders produce element / 256, so that element * scale
/// comes out exact from one product also for b = 0, whose scale alone would be subnormal. Bytes above 246
/// would pass the float32 range: they give infinity, so that a damaged file shows at once, not quietly.
struct ScaleTable {
  float values[256];
};
extern const ScaleTable kScaleTimes256;

}  // namespace hadal::kernels
