// Linear layers. Included by cpu/body.inl; the contract is in kernels.h.

constexpr int64_t kGroup = 32;  ///< channels that share a scale and make one even/odd pair of vectors

inline Pair scaled(Pair pair, float scale) {
  const F32x16 factor = v_set(scale);
  return {v_mul(pair.even, factor), v_mul(pair.odd, factor)};
}

// A reader decodes group g of weight row n. All of a row's arithmetic before the sum is exact.
// kLineGroups groups fill a cache line.
struct Fp8Reader {
  static constexpr int kLineGroups = 2;
  const uint8_t* data;
  const uint8_t* scales;
  int64_t cols;
  int64_t scale_cols;
  int64_t scale_row_offset;
  explicit Fp8Reader(const Weight& w)
      : data(w.data),
        scales(w.scales),
        cols(w.cols),
        scale_cols(w.cols / kGroup),
        scale_row_offset(w.scale_row_offset) {}
  Pair group(int64_t n, int64_t g) const {
    const uint8_t scale = scales[(n + scale_row_offset) / kGroup * scale_cols + g];
    return scaled(v_load_fp8(data + n * cols + g * kGroup), kScaleTimes256.values[scale]);
  }
  const uint8_t* address(int64_t n, int64_t g) const { return data + n * cols + g * kGroup; }
};
struct Fp4Reader {
  static constexpr int kLineGroups = 4;
  const uint8_t* data;
  const uint8_t* scales;
  int64_t row_bytes;
  int64_t scale_cols;
  explicit Fp4Reader(const Weight& w)
      : data(w.data), scales(w.scales), row_bytes(w.cols / 2), scale_cols(w.cols / kGroup) {}
  Pair group(int64_t n, int64_t g) const {
    return v_load_fp4_scaled(address(n, g), kScaleTimes256.values[scales[n * scale_cols + g]]);
  }
  const uint8_t* address(int64_t n, int64_t g) const { return data + n * row_bytes + g * (kGroup / 2); }
};
struct Bf16Reader {
  static constexpr int kLineGroups = 1;
  const uint8_t* data;
  int64_t row_bytes;
  explicit Bf16Reader(const Weight& w) : data(w.data), row_bytes(w.cols * 2) {}
  Pair group(int64_t n, int64_t g) const { return v_load_bf16(address(n, g)); }
  const uint8_t* address(int64_t n, int64_t g) const { return data + n * row_bytes + g * (kGroup * 2); }
};
struct F32Reader {
  static constexpr int kLineGroups = 1;
  const uint8_t* data;
  int64_t row_bytes;
  explicit F32Reader(const Weight& w) : data(w.data), row_bytes(w.cols * 4) {}
  Pair group(int64_t n, int64_t g) const {
    // A tensor in a file need not be aligned to its element size.
    float values[kGroup];
    __builtin_memcpy(values, address(n, g), sizeof(values));
    return v_load_f32_pair(values);
  }
  const uint8_t* address(int64_t n, int64_t g) const { return data + n * row_bytes + g * (kGroup * 4); }
};

/// The one step of every dot product: odd channels first, then even ones.
inline F32x16 accumulate(Pair w, const float* x, F32x16 sum) {
  return v_fma(w.even, v_load(x), v_fma(w.odd, v_load(x + 16), sum));
}

/// Few tokens: weights are decoded as they stream by, R rows at a time to hide the latency of the sums.
template <class Reader, int R, int T>
inline void stream_rows(const Reader& reader, int64_t groups, int64_t n, const float* x, int64_t x_stride,
                        float* y, int64_t y_stride) {
  F32x16 sums[R][T];
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) {
      sums[r][t] = v_zero();
    }
  }
  const auto add_group = [&](int64_t g) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Pair w = reader.group(n + r, g);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        sums[r][t] = accumulate(w, x + t * x_stride + g * kGroup, sums[r][t]);
      }
    }
  };
  int64_t g = 0;
  for (; g + Reader::kLineGroups <= groups; g += Reader::kLineGroups) {
    // The rows that come next lie R rows further on: too far apart for the hardware to foresee. Past the end
    // of the matrix a prefetch is harmless.
    for (int r = 0; r < R; ++r) {
      __builtin_prefetch(reader.address(n + R + r, g));
    }
#pragma GCC unroll 4
    for (int i = 0; i < Reader::kLineGroups; ++i) {
      add_group(g + i);
    }
  }
  for (; g < groups; ++g) {
    add_group(g);
  }
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) {
      y[t * y_stride + n + r] = v_sum(sums[r][t]);
    }
  }
}

template <class Reader, int T>
inline void stream_all_rows(const Reader& reader, int64_t groups, int64_t row_begin, int64_t row_end,
                            const float* x, int64_t x_stride, float* y, int64_t y_stride) {
  constexpr int kRows = T <= 2 ? 4 : 2;
  int64_t n = row_begin;
  for (; n + kRows <= row_end; n += kRows) {
    stream_rows<Reader, kRows, T>(reader, groups, n, x, x_stride, y, y_stride);
  }
  for (; n < row_end; ++n) {
    stream_rows<Reader, 1, T>(reader, groups, n, x, x_stride, y, y_stride);
  }
}

// Many tokens: a panel of weight rows is decoded once for a block of tokens, in slices of the columns that
// stay in the first-level cache; sums wait in memory between slices, unrounded as they are.
constexpr int kPanelRows = 4;
constexpr int kBlockTokens = 24;
constexpr int64_t kSliceGroups = 64;

/// sums[r][t] += panel rows r times tokens t over `groups` groups of the slice.
template <int R, int T>
inline void panel_tile(const float* panel, int64_t panel_stride, const float* x, int64_t x_stride,
                       int64_t groups, float* sums) {
  F32x16 acc[R][T];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      acc[r][t] = v_load(sums + (r * kBlockTokens + t) * 16);
    }
  }
  for (int64_t half = 0; half < groups * 2; ++half) {
    // Within a group: odd channels (the second 16) first, then even ones.
    const int64_t at = (half ^ 1) * 16;
    F32x16 w[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      w[r] = v_load(panel + r * panel_stride + at);
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const F32x16 value = v_load(x + t * x_stride + at);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        acc[r][t] = v_fma(w[r], value, acc[r][t]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      v_store(sums + (r * kBlockTokens + t) * 16, acc[r][t]);
    }
  }
}

template <int R>
inline void panel_rows(const float* panel, int64_t panel_stride, const float* x, int64_t x_stride,
                       int64_t tokens, int64_t groups, float* sums) {
  int64_t t = 0;
  for (; t + kTileTokens <= tokens; t += kTileTokens) {
    panel_tile<R, kTileTokens>(panel, panel_stride, x + t * x_stride, x_stride, groups, sums + t * 16);
  }
  for (; t < tokens; ++t) {
    panel_tile<R, 1>(panel, panel_stride, x + t * x_stride, x_stride, groups, sums + t * 16);
  }
}

template <class Reader>
inline void panel_block(const Reader& reader, int64_t groups, int64_t row_begin, int64_t row_end,
                        const float* x, int64_t x_stride, int64_t tokens, float* y, int64_t y_stride) {
  alignas(64) float panel[kPanelRows * kSliceGroups * kGroup];
  alignas(64) float sums[kPanelRows * kBlockTokens * 16];
  for (int64_t n = row_begin; n < row_end; n += kPanelRows) {
    const int rows = row_end - n < kPanelRows ? static_cast<int>(row_end - n) : kPanelRows;
    for (int i = 0; i < kPanelRows * kBlockTokens; ++i) {
      v_store(sums + i * 16, v_zero());
    }
    for (int64_t first = 0; first < groups; first += kSliceGroups) {
      const int64_t slice = groups - first < kSliceGroups ? groups - first : kSliceGroups;
      const int64_t stride = slice * kGroup;
      for (int r = 0; r < rows; ++r) {
        for (int64_t g = 0; g < slice; ++g) {
          const Pair w = reader.group(n + r, first + g);
          v_store(panel + r * stride + g * kGroup, w.even);
          v_store(panel + r * stride + g * kGroup + 16, w.odd);
        }
      }
      int r = 0;
      for (; r + kTileRows <= rows; r += kTileRows) {
        panel_rows<kTileRows>(panel + r * stride, stride, x + first * kGroup, x_stride, tokens, slice,
                              sums + r * kBlockTokens * 16);
      }
      for (; r < rows; ++r) {
        panel_rows<1>(panel + r * stride, stride, x + first * kGroup, x_stride, tokens, slice,
                      sums + r * kBlockTokens * 16);
      }
    }
    for (int r = 0; r < rows; ++r) {
      for (int64_t t = 0; t < tokens; ++t) {
        y[t * y_stride + n + r] = v_sum(v_load(sums + (r * kBlockTokens + t) * 16));
      }
    }
  }
}

template <class Reader>
inline void linear_with(const Reader& reader, int64_t cols, int64_t row_begin, int64_t row_end,
                        const float* x, int64_t x_stride, int64_t tokens, float* y, int64_t y_stride) {
  const int64_t groups = cols / kGroup;
  switch (tokens) {
    case 0:
      return;
    case 1:
      return stream_all_rows<Reader, 1>(reader, groups, row_begin, row_end, x, x_stride, y, y_stride);
    case 2:
      return stream_all_rows<Reader, 2>(reader, groups, row_begin, row_end, x, x_stride, y, y_stride);
    case 3:
      return stream_all_rows<Reader, 3>(reader, groups, row_begin, row_end, x, x_stride, y, y_stride);
    case 4:
      return stream_all_rows<Reader, 4>(reader, groups, row_begin, row_end, x, x_stride, y, y_stride);
    default:
      for (int64_t t = 0; t < tokens; t += kBlockTokens) {
        const int64_t block = tokens - t < kBlockTokens ? tokens - t : kBlockTokens;
        panel_block(reader, groups, row_begin, row_end, x + t * x_stride, x_stride, block, y + t * y_stride,
                    y_stride);
      }
  }
}

void linear(const Weight& w, int64_t row_begin, int64_t row_end, const float* x, int64_t x_stride,
            int64_t tokens, float* y, int64_t y_stride) {
  switch (w.format) {
    case WeightFormat::kFp8:
      return linear_with(Fp8Reader(w), w.cols, row_begin, row_end, x, x_stride, tokens, y, y_stride);
    case WeightFormat::kFp4:
      return linear_with(Fp4Reader(w), w.cols, row_begin, row_end, x, x_stride, tokens, y, y_stride);
    case WeightFormat::kBf16:
      return linear_with(Bf16Reader(w), w.cols, row_begin, row_end, x, x_stride, tokens, y, y_stride);
    case WeightFormat::kF32:
      return linear_with(F32Reader(w), w.cols, row_begin, row_end, x, x_stride, tokens, y, y_stride);
  }
}

void pack_input(const float* x, int64_t x_stride, int64_t tokens, int64_t cols, InputRounding rounding,
                float* packed) {
  for (int64_t t = 0; t < tokens; ++t) {
    const float* row = x + t * x_stride;
    float* out = packed + t * cols;
    for (int64_t k = 0; k < cols; k += kGroup) {
      Pair pair;
      if (rounding == InputRounding::kFp8) {
        float values[kGroup];
        fake_quantize_fp8(row + k, values);
        pair = v_load_f32_pair(values);
      } else {
        pair = v_load_f32_pair(row + k);
      }
      if (rounding == InputRounding::kBf16) {
        pair = {v_round_bf16(pair.even), v_round_bf16(pair.odd)};
      }
      v_store(out + k, pair.even);
      v_store(out + k + 16, pair.odd);
    }
  }
}
