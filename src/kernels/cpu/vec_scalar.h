#pragma once
// The virtual vector in plain C++: 16 float32 lanes. This is the specification; vec_avx2.h and vec_avx512.h
// do the same with one IEEE operation a lane. Included only by cpu/scalar.cpp, inside its namespace.

struct F32x16 {
  float lane[16];
};

#define HADAL_LANES for (int l = 0; l < 16; ++l)

inline F32x16 v_zero() {
  return F32x16{};
}
inline F32x16 v_set(float x) {
  F32x16 r;
  HADAL_LANES r.lane[l] = x;
  return r;
}
inline F32x16 v_load(const float* p) {
  F32x16 r;
  HADAL_LANES r.lane[l] = p[l];
  return r;
}
inline void v_store(float* p, F32x16 a) {
  HADAL_LANES p[l] = a.lane[l];
}
inline F32x16 v_add(F32x16 a, F32x16 b) {
  HADAL_LANES a.lane[l] += b.lane[l];
  return a;
}
inline F32x16 v_sub(F32x16 a, F32x16 b) {
  HADAL_LANES a.lane[l] -= b.lane[l];
  return a;
}
inline F32x16 v_mul(F32x16 a, F32x16 b) {
  HADAL_LANES a.lane[l] *= b.lane[l];
  return a;
}
inline F32x16 v_div(F32x16 a, F32x16 b) {
  HADAL_LANES a.lane[l] /= b.lane[l];
  return a;
}
/// a * b + c with one rounding
inline F32x16 v_fma(F32x16 a, F32x16 b, F32x16 c) {
  HADAL_LANES c.lane[l] = __builtin_fmaf(a.lane[l], b.lane[l], c.lane[l]);
  return c;
}
/// The second operand where the first is not smaller (or not a number), as minps does.
inline F32x16 v_min(F32x16 a, F32x16 b) {
  HADAL_LANES b.lane[l] = a.lane[l] < b.lane[l] ? a.lane[l] : b.lane[l];
  return b;
}
inline F32x16 v_max(F32x16 a, F32x16 b) {
  HADAL_LANES b.lane[l] = a.lane[l] > b.lane[l] ? a.lane[l] : b.lane[l];
  return b;
}
/// 2^n for the integer n held in the low bits of t = n + 1.5 * 2^23
inline F32x16 v_pow2_of_shifted(F32x16 t) {
  HADAL_LANES {
    const uint32_t bits = (__builtin_bit_cast(uint32_t, t.lane[l]) + 127U) << 23U;
    t.lane[l] = __builtin_bit_cast(float, bits);
  }
  return t;
}
/// Nearest-even bfloat16, as float32. Not for NaN.
inline F32x16 v_round_bf16(F32x16 a) {
  HADAL_LANES {
    uint32_t bits = __builtin_bit_cast(uint32_t, a.lane[l]);
    bits = (bits + 0x7fffU + ((bits >> 16U) & 1U)) & 0xffff0000U;
    a.lane[l] = __builtin_bit_cast(float, bits);
  }
  return a;
}
/// The tree: lanes l and l+8, then l and l+4, l and l+2, l and l+1.
inline float v_sum(F32x16 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) {
      a.lane[l] += a.lane[l + half];
    }
  }
  return a.lane[0];
}
inline float v_max_lane(F32x16 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) {
      a.lane[l] = a.lane[l] > a.lane[l + half] ? a.lane[l] : a.lane[l + half];
    }
  }
  return a.lane[0];
}

/// 32 channels, even ones and odd ones.
struct Pair {
  F32x16 even;
  F32x16 odd;
};

/// 32 e4m3 codes -> value / 256 (the factor is in kScaleTimes256).
inline float e4m3_div_256(uint32_t code) {
  // e4m3 moved into the exponent and mantissa fields of float16 is the value times 2^-8, subnormals included.
  const uint32_t magnitude = code & 0x7fU;
  const uint32_t exponent = magnitude >> 3U;
  const uint32_t mantissa = magnitude & 7U;
  const float value = exponent == 0
                          ? static_cast<float>(mantissa) * 0x1p-17F
                          : __builtin_bit_cast(float, ((exponent + 112U) << 23U) | (mantissa << 20U));
  return (code & 0x80U) != 0 ? -value : value;
}
inline Pair v_load_fp8(const uint8_t* p) {
  Pair r;
  HADAL_LANES {
    r.even.lane[l] = e4m3_div_256(p[2 * l]);
    r.odd.lane[l] = e4m3_div_256(p[2 * l + 1]);
  }
  return r;
}
/// 16 consecutive e4m3 codes -> value / 256
inline F32x16 v_load_fp8_row(const uint8_t* p) {
  F32x16 r;
  HADAL_LANES r.lane[l] = e4m3_div_256(p[l]);
  return r;
}
/// 16 bytes of e2m1 pairs -> value / 256
inline float e2m1_div_256(uint32_t code) {
  constexpr float kMagnitudes[8] = {0.0F,          0.5F / 256.0F, 1.0F / 256.0F, 1.5F / 256.0F,
                                    2.0F / 256.0F, 3.0F / 256.0F, 4.0F / 256.0F, 6.0F / 256.0F};
  const float value = kMagnitudes[code & 7U];
  return (code & 8U) != 0 ? -value : value;
}
inline Pair v_load_fp4(const uint8_t* p) {
  Pair r;
  HADAL_LANES {
    r.even.lane[l] = e2m1_div_256(p[l] & 15U);
    r.odd.lane[l] = e2m1_div_256(p[l] >> 4U);
  }
  return r;
}
/// The same times `scale` (a power of two, so that the order of the two exact products is of no matter)
inline Pair v_load_fp4_scaled(const uint8_t* p, float scale) {
  Pair r = v_load_fp4(p);
  HADAL_LANES {
    r.even.lane[l] *= scale;
    r.odd.lane[l] *= scale;
  }
  return r;
}
inline Pair v_load_bf16(const uint8_t* p) {
  Pair r;
  HADAL_LANES {
    uint32_t both;
    __builtin_memcpy(&both, p + 4 * l, 4);
    r.even.lane[l] = __builtin_bit_cast(float, both << 16U);
    r.odd.lane[l] = __builtin_bit_cast(float, both & 0xffff0000U);
  }
  return r;
}
/// 16 consecutive bfloat16
inline F32x16 v_load_bf16_row(const uint8_t* p) {
  F32x16 r;
  HADAL_LANES {
    uint16_t half;
    __builtin_memcpy(&half, p + 2 * l, 2);
    r.lane[l] = __builtin_bit_cast(float, static_cast<uint32_t>(half) << 16U);
  }
  return r;
}
/// 32 consecutive floats, split into even and odd
inline Pair v_load_f32_pair(const float* p) {
  Pair r;
  HADAL_LANES {
    r.even.lane[l] = p[2 * l];
    r.odd.lane[l] = p[2 * l + 1];
  }
  return r;
}
/// The inverse of v_load_f32_pair
inline void v_store_interleaved(float* p, Pair pair) {
  HADAL_LANES {
    p[2 * l] = pair.even.lane[l];
    p[2 * l + 1] = pair.odd.lane[l];
  }
}

#undef HADAL_LANES

constexpr int kTileRows = 4;
constexpr int kTileTokens = 2;
