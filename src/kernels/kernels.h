#pragma once
// The operators of the model, one contract each, and the table through which they are called.
//
// Every operator exists three times: scalar (the specification), AVX2 and AVX-512. All three come from one
// generic body over a virtual vector of 16 float32 lanes (cpu/vec_*.h), whose operations are single IEEE
// operations in every form, so that the results are equal bit for bit. docs/numerics.md states the order
// of accumulation of each operator.
//
// The caller must run with denormals flushed (base/thread_pool.h: FlushDenormals); inside ThreadPool tasks
// that holds. This header includes nothing but fixed-width integers on purpose: sources that are compiled
// for one instruction set must not emit inline functions that others share.

#include <cstdint>

namespace hadal::kernels {

enum class WeightFormat : uint8_t {
  kFp8,   ///< e4m3 [rows, cols], scales e8m0 [ceil(rows/32), ceil(cols/32)]
  kFp4,   ///< packed e2m1 [rows, cols/2], low nibble first, scales e8m0 [rows, cols/32]
  kBf16,  ///< [rows, cols]
  kF32,   ///< [rows, cols]
};

/// A weight matrix [rows, cols] in the checkpoint's own bytes; cols is a multiple of 32. Not owning.
/// Decoded value = element * scale, exact in float32 for scale bytes 0..246 (docs/numerics.md).
struct Weight {
  WeightFormat format = WeightFormat::kF32;
  const uint8_t* data = nullptr;
  const uint8_t* scales = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  /// First of the matrix's rows that this view holds, modulo 32: which row of `scales` (kFp8) is which.
  int64_t scale_row_offset = 0;
};

/// What happens to a linear layer's input before the product.
enum class InputRounding : uint8_t {
  kNone,  ///< float32 as it is
  kBf16,  ///< rounded to bfloat16, nearest-even
  kFp8,   ///< quantized to e4m3 per 32 channels with a power-of-two scale, and back (model.md section 3)
};

/// Formats of cached rows (keys that are also values, and index keys).
enum class RowFormat : uint8_t {
  kF32,
  kFp8,       ///< per row: n e4m3 bytes, then n/32 e8m0 scales
  kFp4Kv,     ///< per row: n/2 packed e2m1 bytes, then n/16 e4m3 scales
  kFp4Index,  ///< per row: n/2 packed e2m1 bytes, then n/32 e8m0 scales
};

/// Bytes of one row of n channels.
constexpr int64_t row_bytes(RowFormat format, int64_t n) {
  switch (format) {
    case RowFormat::kF32:
      return n * 4;
    case RowFormat::kFp8:
      return n + n / 32;
    case RowFormat::kFp4Kv:
      return n / 2 + n / 16;
    case RowFormat::kFp4Index:
      return n / 2 + n / 32;
  }
  return 0;
}

struct Kernels {
  const char* name;  ///< "scalar", "avx2", "avx512"

  /// Prepares `tokens` rows of a linear input for `linear`: rounds, and reorders each 32 channels so that
  /// the 16 even channels come first. x [tokens, cols] with row stride x_stride; packed [tokens, cols].
  void (*pack_input)(const float* x, int64_t x_stride, int64_t tokens, int64_t cols, InputRounding rounding,
                     float* packed);

  /// y[t][n] = sum over k of x[t][k] * w[n][k], for weight rows [row_begin, row_end); y points at column 0.
  /// x is packed, rows of stride x_stride. Lane l of the virtual vector takes channels 32g + 2l + 1, then
  /// 32g + 2l of each group g, by fused multiply-add from zero; lanes are added by the tree of
  /// cpu/vec_scalar.h. The result of an element never depends on tokens or on the row range.
  void (*linear)(const Weight& w, int64_t row_begin, int64_t row_end, const float* x, int64_t x_stride,
                 int64_t tokens, float* y, int64_t y_stride);

  /// y = x * rsqrt(mean(x^2) + eps) * weight (bfloat16 [n]); the inverse root is 1 / sqrt, correctly
  /// rounded. x and y may be the same. Also returns nothing else: see sum_of_squares for the statistic.
  void (*rms_norm)(const float* x, const uint8_t* weight, int64_t n, float eps, float* y);

  /// sum of x[i]^2, lanes i mod 16, fused, then the tree.
  float (*sum_of_squares)(const float* x, int64_t n);

  /// y[i] = sum over j of pre[j] * streams[j*n + i], j ascending, fused after the first product.
  void (*hc_collapse)(const float* streams, const float* pre, int64_t num_streams, int64_t n, float* y);

  /// out[k*n + i] = post[k]*y[i], then + comb[j*m + k] * streams[j*n + i] for j ascending, fused. In place
  /// is allowed. At most 8 streams.
  void (*hc_expand)(const float* y, const float* post, const float* comb, int64_t num_streams, int64_t n,
                    float* streams);

  /// act[i] = silu(min(gate[i], limit)) * clamp(up[i], -limit, limit) * weight; limit <= 0: no limit.
  void (*swiglu)(const float* gate, const float* up, int64_t n, float limit, float weight, float* act);

  /// y[i] += x[i]
  void (*add)(const float* x, int64_t n, float* y);

  /// Rounds n values to bfloat16 (nearest-even) in place.
  void (*round_bf16)(float* x, int64_t n);

  /// Rotates adjacent pairs of the last 2*half channels of a row of n channels: (a, b) ->
  /// (a cos - b sin, a sin + b cos); inverse negates sin. The b product is rounded, the a product fused.
  void (*rope)(float* x, int64_t n, const float* cosines, const float* sines, int64_t half, bool inverse);

  /// bfloat16 [n] -> float32.
  void (*decode_bf16)(const uint8_t* x, int64_t n, float* y);

  /// One cached row (or Engram table row) -> float32. n is a multiple of 32.
  void (*decode_row)(RowFormat format, const uint8_t* row, int64_t n, float* y);

  /// Attention of one query position over `num_keys` keys that are also the values.
  /// q [heads, dim], keys [num_keys, dim], sinks [heads], out [heads, dim]; scores is scratch for
  /// heads * round_up(num_keys, 16) floats. score = (q . key) * scale, lanes channel mod 16, fused, tree;
  /// p = exp(score - max) / (sum exp + exp(sink - max)), where the maximum includes the sink and the sum runs
  /// over keys in lanes key mod 16, tree, sink last; out = sum p * key, keys ascending, fused. num_keys may
  /// be 0.
  void (*attend)(const float* q, const float* keys, int64_t num_keys, int64_t heads, int64_t dim, float scale,
                 const float* sinks, float* scores, float* out);

  /// Index scores of one query position against `num_keys` keys, which start at a multiple of 16 of the
  /// tile layout: score[g] = sum over heads h ascending of weight[h] * max(q_h . key_g, 0) * scale.
  /// q [heads, dim]; keys_t is [ceil(num_keys/16)][dim][16] (see transpose_keys). A dot product is summed
  /// per block of 32 channels (fused, channels ascending, from zero), blocks then added in order: inside a
  /// block the FP4 products add exactly.
  void (*index_scores)(const float* q, const float* weights, int64_t heads, int64_t dim, const float* keys_t,
                       int64_t num_keys, float scale, float* scores);

  /// 16 decoded keys [16, dim] -> [dim][16]; rows at or past `count` become zero.
  void (*transpose_keys)(const float* keys, int64_t count, int64_t dim, float* keys_t);

  /// latent[c] = sum over j of softmax_j(gates[j][c]) * values[j][c] for `ratio` rows, j ascending.
  void (*pool_group)(const float* const* values, const float* const* gates, int64_t ratio, int64_t n,
                     float* latent);

  /// Engram: streams[j] += gate_j * value with the gate of model.md section 9. key [m, n], value [n],
  /// q_weight and k_weight bfloat16 [m, n].
  void (*engram_mix)(const float* key, const float* value, const uint8_t* q_weight, const uint8_t* k_weight,
                     int64_t num_streams, int64_t n, float eps, float* streams);
};

enum class Isa : uint8_t { kScalar, kAvx2, kAvx512 };

/// The best instruction set that this CPU and operating system run.
Isa detect_isa();
bool isa_supported(Isa isa);
const char* isa_name(Isa isa);

/// The table of an instruction set; it must be supported.
const Kernels& kernels_for(Isa isa);

}  // namespace hadal::kernels
