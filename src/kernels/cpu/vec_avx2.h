#pragma once
// The virtual vector in two 256-bit registers; see vec_scalar.h for what each function means.
// Included only by cpu/avx2.cpp, inside its namespace.

struct F32x16 {
  __m256 lo;
  __m256 hi;
};
struct Pair {
  F32x16 even;
  F32x16 odd;
};

inline F32x16 v_zero() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
inline F32x16 v_set(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
inline F32x16 v_load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
inline void v_store(float* p, F32x16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
inline F32x16 v_add(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline F32x16 v_sub(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline F32x16 v_mul(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline F32x16 v_div(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
inline F32x16 v_fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline F32x16 v_min(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
inline F32x16 v_max(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}

inline __m256 v_pow2_half(__m256 t) {
  const __m256i n = _mm256_add_epi32(_mm256_castps_si256(t), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(n, 23));
}
inline F32x16 v_pow2_of_shifted(F32x16 t) {
  return {v_pow2_half(t.lo), v_pow2_half(t.hi)};
}
inline __m256 v_round_bf16_half(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  return _mm256_castsi256_ps(_mm256_and_si256(sum, _mm256_set1_epi32(static_cast<int>(0xffff0000U))));
}
inline F32x16 v_round_bf16(F32x16 a) {
  return {v_round_bf16_half(a.lo), v_round_bf16_half(a.hi)};
}
inline float v_sum(F32x16 a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float v_max_lane(F32x16 a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/// 16 float16 (an e4m3 code in place is the value times 2^-8) -> float32
inline F32x16 v_half(__m256i half_bits) {
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(half_bits)),
          _mm256_cvtph_ps(_mm256_extracti128_si256(half_bits, 1))};
}
inline Pair v_load_fp8(const uint8_t* p) {
  const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i even = _mm256_slli_epi16(codes, 8);  // even codes in the high byte
  const __m256i magnitude = _mm256_set1_epi16(0x7f00);
  const __m256i sign = _mm256_set1_epi16(static_cast<short>(0x8000));
  const auto to_half = [&](__m256i high) {
    return _mm256_or_si256(_mm256_and_si256(high, sign),
                           _mm256_srli_epi16(_mm256_and_si256(high, magnitude), 1));
  };
  return {v_half(to_half(even)), v_half(to_half(codes))};
}
inline F32x16 v_load_fp8_row(const uint8_t* p) {
  const __m256i codes = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(codes, _mm256_set1_epi16(0x80)), 8);
  const __m256i magnitude = _mm256_slli_epi16(_mm256_and_si256(codes, _mm256_set1_epi16(0x7f)), 7);
  return v_half(_mm256_or_si256(sign, magnitude));
}
/// Eight e2m1 codes in the low bits of each lane -> value / 256: magnitude by permutation, sign by shift.
inline __m256 v_fp4_table() {
  return _mm256_setr_ps(0.0F, 0.5F / 256.0F, 1.0F / 256.0F, 1.5F / 256.0F, 2.0F / 256.0F, 3.0F / 256.0F,
                        4.0F / 256.0F, 6.0F / 256.0F);
}
inline __m256 v_fp4_eight(__m256i codes, __m256 table) {
  const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(codes, _mm256_set1_epi32(8)), 28);
  return _mm256_xor_ps(_mm256_permutevar8x32_ps(table, codes), _mm256_castsi256_ps(sign));
}
inline Pair v_load_fp4_from(const uint8_t* p, __m256 table) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m256i low = _mm256_cvtepu8_epi32(bytes);
  const __m256i high = _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8));
  return {{v_fp4_eight(low, table), v_fp4_eight(high, table)},
          {v_fp4_eight(_mm256_srli_epi32(low, 4), table), v_fp4_eight(_mm256_srli_epi32(high, 4), table)}};
}
inline Pair v_load_fp4(const uint8_t* p) {
  return v_load_fp4_from(p, v_fp4_table());
}
/// Scales the table instead of the four results.
inline Pair v_load_fp4_scaled(const uint8_t* p, float scale) {
  return v_load_fp4_from(p, _mm256_mul_ps(v_fp4_table(), _mm256_set1_ps(scale)));
}
inline Pair v_load_bf16(const uint8_t* p) {
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xffff0000U));
  return {{_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))},
          {_mm256_castsi256_ps(_mm256_and_si256(a, mask)), _mm256_castsi256_ps(_mm256_and_si256(b, mask))}};
}
inline F32x16 v_load_bf16_row(const uint8_t* p) {
  const auto widen = [](const uint8_t* q) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(q)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  };
  return {widen(p), widen(p + 16)};
}
inline Pair v_load_f32_pair(const float* p) {
  const auto split = [](const float* q, __m256& even, __m256& odd) {
    const __m256 a = _mm256_loadu_ps(q);
    const __m256 b = _mm256_loadu_ps(q + 8);
    const auto sort = [](__m256 mixed) {
      return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8));
    };
    even = sort(_mm256_shuffle_ps(a, b, 0x88));
    odd = sort(_mm256_shuffle_ps(a, b, 0xdd));
  };
  Pair r;
  split(p, r.even.lo, r.odd.lo);
  split(p + 16, r.even.hi, r.odd.hi);
  return r;
}
inline void v_store_interleaved(float* p, Pair pair) {
  const auto merge = [](float* q, __m256 even, __m256 odd) {
    const __m256 low = _mm256_unpacklo_ps(even, odd);
    const __m256 high = _mm256_unpackhi_ps(even, odd);
    _mm256_storeu_ps(q, _mm256_permute2f128_ps(low, high, 0x20));
    _mm256_storeu_ps(q + 8, _mm256_permute2f128_ps(low, high, 0x31));
  };
  merge(p, pair.even.lo, pair.odd.lo);
  merge(p + 16, pair.even.hi, pair.odd.hi);
}

// 4 accumulators of two registers each, and the operands from memory.
constexpr int kTileRows = 2;
constexpr int kTileTokens = 2;
