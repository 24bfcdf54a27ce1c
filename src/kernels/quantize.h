#pragma once
// The run-time quantizers of model.md section 3: cached rows and simulated activations. Integer and single
// float operations only, so that every compiler and instruction set gives the same bits.

#include <cstdint>

#include "kernels/kernels.h"

namespace hadal::kernels {

/// Nearest-even e4m3 code of x, saturating at 448; NaN gives 0x7f.
uint8_t e4m3_from_float(float x);
float float_from_e4m3(uint8_t code);

/// Nearest e2m1 code, ties to the even code, saturating at 6; keeps the sign of zero.
uint8_t e2m1_from(double x);

/// The e8m0 byte of the smallest power of two >= t, for positive float32 t.
uint8_t e8m0_at_least(float t);

/// Quantizes one row of n channels (a multiple of 32) into row_bytes(format, n) bytes. kF32 copies.
void encode_row(RowFormat format, const float* x, int64_t n, uint8_t* row);

/// 32 channels to FP8 with one power-of-two scale, and back.
void fake_quantize_fp8(const float* x, float* y);

}  // namespace hadal::kernels
