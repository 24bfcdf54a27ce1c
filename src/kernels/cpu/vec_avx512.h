#pragma once
// The virtual vector in one 512-bit register; see vec_scalar.h for what each function means.
// Included only by cpu/avx512.cpp, inside its namespace.

struct F32x16 {
  __m512 v;
};
struct Pair {
  F32x16 even;
  F32x16 odd;
};

inline F32x16 v_zero() {
  return {_mm512_setzero_ps()};
}
inline F32x16 v_set(float x) {
  return {_mm512_set1_ps(x)};
}
inline F32x16 v_load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
inline void v_store(float* p, F32x16 a) {
  _mm512_storeu_ps(p, a.v);
}
inline F32x16 v_add(F32x16 a, F32x16 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
inline F32x16 v_sub(F32x16 a, F32x16 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
inline F32x16 v_mul(F32x16 a, F32x16 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
inline F32x16 v_div(F32x16 a, F32x16 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
inline F32x16 v_fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline F32x16 v_min(F32x16 a, F32x16 b) {
  return {_mm512_min_ps(a.v, b.v)};
}
inline F32x16 v_max(F32x16 a, F32x16 b) {
  return {_mm512_max_ps(a.v, b.v)};
}

inline F32x16 v_pow2_of_shifted(F32x16 t) {
  const __m512i n = _mm512_add_epi32(_mm512_castps_si512(t.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(n, 23))};
}
inline F32x16 v_round_bf16(F32x16 a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  return {_mm512_castsi512_ps(_mm512_and_si512(sum, _mm512_set1_epi32(static_cast<int>(0xffff0000U))))};
}
inline __m256 v_upper(__m512 a) {
  return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1));
}
inline float v_sum(F32x16 a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), v_upper(a.v));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float v_max_lane(F32x16 a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), v_upper(a.v));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/// e4m3 codes in the low byte of each 16-bit lane of `low`, already in place as float16 (value times 2^-8).
inline F32x16 v_half(__m256i half_bits) {
  return {_mm512_cvtph_ps(half_bits)};
}
inline Pair v_load_fp8(const uint8_t* p) {
  const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i even = _mm256_slli_epi16(codes, 8);  // even codes in the high byte
  const __m256i magnitude = _mm256_set1_epi16(0x7f00);
  const __m256i sign = _mm256_set1_epi16(static_cast<short>(0x8000));
  const auto to_half = [&](__m256i high) {
    // sign | (code & 0x7f) << 7, in one ternary operation: (high & sign) | ((high & 0x7f00) >> 1)
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
inline __m512 v_fp4_table() {
  return _mm512_setr_ps(0.0F, 0.5F / 256.0F, 1.0F / 256.0F, 1.5F / 256.0F, 2.0F / 256.0F, 3.0F / 256.0F,
                        4.0F / 256.0F, 6.0F / 256.0F, -0.0F, -0.5F / 256.0F, -1.0F / 256.0F, -1.5F / 256.0F,
                        -2.0F / 256.0F, -3.0F / 256.0F, -4.0F / 256.0F, -6.0F / 256.0F);
}
inline Pair v_load_fp4(const uint8_t* p) {
  // The permutation reads the low four bits of each lane only, so the even code needs no mask.
  const __m512i codes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m512 table = v_fp4_table();
  return {{_mm512_permutexvar_ps(codes, table)}, {_mm512_permutexvar_ps(_mm512_srli_epi32(codes, 4), table)}};
}
/// Scales the table instead of the two results.
inline Pair v_load_fp4_scaled(const uint8_t* p, float scale) {
  const __m512i codes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m512 table = _mm512_mul_ps(v_fp4_table(), _mm512_set1_ps(scale));
  return {{_mm512_permutexvar_ps(codes, table)}, {_mm512_permutexvar_ps(_mm512_srli_epi32(codes, 4), table)}};
}
inline Pair v_load_bf16(const uint8_t* p) {
  const __m512i both = _mm512_loadu_si512(p);
  return {{_mm512_castsi512_ps(_mm512_slli_epi32(both, 16))},
          {_mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(static_cast<int>(0xffff0000U))))}};
}
inline F32x16 v_load_bf16_row(const uint8_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
inline Pair v_load_f32_pair(const float* p) {
  const __m512 a = _mm512_loadu_ps(p);
  const __m512 b = _mm512_loadu_ps(p + 16);
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return {{_mm512_permutex2var_ps(a, even, b)}, {_mm512_permutex2var_ps(a, odd, b)}};
}
inline void v_store_interleaved(float* p, Pair pair) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  _mm512_storeu_ps(p, _mm512_permutex2var_ps(pair.even.v, low, pair.odd.v));
  _mm512_storeu_ps(p + 16, _mm512_permutex2var_ps(pair.even.v, high, pair.odd.v));
}

// 24 accumulators, 4 + 6 operands: all of the 32 registers.
constexpr int kTileRows = 4;
constexpr int kTileTokens = 6;
