// Norms, hyper-connection mixes, activations and rotations. Included by cpu/body.inl.

/// exp(x) to about one unit in the last place, for x in [-87, 88]; outside it saturates. Reduction by
/// n = round(x / ln 2) with ln 2 in two parts, then a polynomial of degree 7 (Taylor terms suffice on
/// |r| <= 0.35), all by fused multiply-add.
inline F32x16 v_exp(F32x16 x) {
  x = v_max(v_min(x, v_set(88.0F)), v_set(-87.0F));
  const F32x16 shift = v_set(0x1.8p23F);
  const F32x16 shifted = v_fma(x, v_set(0x1.715476p0F), shift);
  const F32x16 n = v_sub(shifted, shift);
  F32x16 r = v_fma(n, v_set(-0x1.62e4p-1F), x);
  r = v_fma(n, v_set(-0x1.7f7d1cp-20F), r);
  F32x16 p = v_set(1.0F / 5040.0F);
  p = v_fma(p, r, v_set(1.0F / 720.0F));
  p = v_fma(p, r, v_set(1.0F / 120.0F));
  p = v_fma(p, r, v_set(1.0F / 24.0F));
  p = v_fma(p, r, v_set(1.0F / 6.0F));
  p = v_fma(p, r, v_set(0.5F));
  p = v_fma(p, r, v_set(1.0F));
  p = v_fma(p, r, v_set(1.0F));
  return v_mul(p, v_pow2_of_shifted(shifted));
}

/// The first `count` (1 to 16) floats at p, the rest `fill`.
inline F32x16 v_load_part(const float* p, int64_t count, float fill) {
  alignas(64) float lanes[16];
  for (int64_t l = 0; l < 16; ++l) {
    lanes[l] = l < count ? p[l] : fill;
  }
  return v_load(lanes);
}
inline void v_store_part(float* p, int64_t count, F32x16 a) {
  alignas(64) float lanes[16];
  v_store(lanes, a);
  for (int64_t l = 0; l < count; ++l) {
    p[l] = lanes[l];
  }
}

/// Calls body(i, count) for each run of up to 16 channels.
template <class Body>
inline void each_vector(int64_t n, Body&& body) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    body(i, int64_t{16});
  }
  if (i < n) {
    body(i, n - i);
  }
}
inline F32x16 v_load_upto(const float* p, int64_t count) {
  return count == 16 ? v_load(p) : v_load_part(p, count, 0.0F);
}
inline void v_store_upto(float* p, int64_t count, F32x16 a) {
  return count == 16 ? v_store(p, a) : v_store_part(p, count, a);
}

float sum_of_squares(const float* x, int64_t n) {
  F32x16 sum = v_zero();
  each_vector(n, [&](int64_t i, int64_t count) {
    const F32x16 v = v_load_upto(x + i, count);
    sum = v_fma(v, v, sum);
  });
  return v_sum(sum);
}

inline float inverse_root(float mean_square, float eps) {
  return 1.0F / __builtin_sqrtf(mean_square + eps);
}

void rms_norm(const float* x, const uint8_t* weight, int64_t n, float eps, float* y) {
  const F32x16 factor = v_set(inverse_root(sum_of_squares(x, n) / static_cast<float>(n), eps));
  for (int64_t i = 0; i < n; i += 16) {
    v_store(y + i, v_mul(v_mul(v_load(x + i), factor), v_load_bf16_row(weight + 2 * i)));
  }
}

void hc_collapse(const float* streams, const float* pre, int64_t num_streams, int64_t n, float* y) {
  each_vector(n, [&](int64_t i, int64_t count) {
    F32x16 sum = v_mul(v_set(pre[0]), v_load_upto(streams + i, count));
    for (int64_t j = 1; j < num_streams; ++j) {
      sum = v_fma(v_set(pre[j]), v_load_upto(streams + j * n + i, count), sum);
    }
    v_store_upto(y + i, count, sum);
  });
}

void hc_expand(const float* y, const float* post, const float* comb, int64_t num_streams, int64_t n,
               float* streams) {
  each_vector(n, [&](int64_t i, int64_t count) {
    F32x16 old[8];
    for (int64_t j = 0; j < num_streams; ++j) {
      old[j] = v_load_upto(streams + j * n + i, count);
    }
    const F32x16 value = v_load_upto(y + i, count);
    for (int64_t k = 0; k < num_streams; ++k) {
      F32x16 sum = v_mul(v_set(post[k]), value);
      for (int64_t j = 0; j < num_streams; ++j) {
        sum = v_fma(v_set(comb[j * num_streams + k]), old[j], sum);
      }
      v_store_upto(streams + k * n + i, count, sum);
    }
  });
}

void swiglu(const float* gate, const float* up, int64_t n, float limit, float weight, float* act) {
  const F32x16 one = v_set(1.0F);
  each_vector(n, [&](int64_t i, int64_t count) {
    F32x16 g = v_load_upto(gate + i, count);
    F32x16 u = v_load_upto(up + i, count);
    if (limit > 0.0F) {
      g = v_min(g, v_set(limit));
      u = v_max(v_min(u, v_set(limit)), v_set(-limit));
    }
    const F32x16 silu = v_div(g, v_add(one, v_exp(v_sub(v_zero(), g))));
    v_store_upto(act + i, count, v_mul(v_mul(silu, u), v_set(weight)));
  });
}

void add(const float* x, int64_t n, float* y) {
  each_vector(n, [&](int64_t i, int64_t count) {
    v_store_upto(y + i, count, v_add(v_load_upto(y + i, count), v_load_upto(x + i, count)));
  });
}

void round_bf16(float* x, int64_t n) {
  each_vector(n, [&](int64_t i, int64_t count) {
    v_store_upto(x + i, count, v_round_bf16(v_load_upto(x + i, count)));
  });
}

void rope(float* x, int64_t n, const float* cosines, const float* sines, int64_t half, bool inverse) {
  float* tail = x + n - 2 * half;
  for (int64_t i = 0; i < half; ++i) {
    const float a = tail[2 * i];
    const float b = tail[2 * i + 1];
    const float c = cosines[i];
    const float s = inverse ? -sines[i] : sines[i];
    tail[2 * i] = __builtin_fmaf(a, c, -(b * s));
    tail[2 * i + 1] = __builtin_fmaf(a, s, b * c);
  }
}

void decode_bf16(const uint8_t* x, int64_t n, float* y) {
  for (int64_t i = 0; i + 16 <= n; i += 16) {
    v_store(y + i, v_load_bf16_row(x + 2 * i));
  }
  for (int64_t i = n / 16 * 16; i < n; ++i) {
    uint16_t half;
    __builtin_memcpy(&half, x + 2 * i, 2);
    y[i] = __builtin_bit_cast(float, static_cast<uint32_t>(half) << 16U);
  }
}

inline float float_of_e4m3_scale(uint8_t code) {
  alignas(64) uint8_t codes[16] = {code};
  alignas(64) float values[16];
  v_store(values, v_load_fp8_row(codes));
  return values[0] * 256.0F;
}

void decode_row(RowFormat format, const uint8_t* row, int64_t n, float* y) {
  switch (format) {
    case RowFormat::kF32:
      __builtin_memcpy(y, row, static_cast<uint64_t>(n) * 4);
      return;
    case RowFormat::kFp8:
      for (int64_t i = 0; i < n; i += 16) {
        v_store(y + i, v_mul(v_load_fp8_row(row + i), v_set(kScaleTimes256.values[row[n + i / 32]])));
      }
      return;
    case RowFormat::kFp4Kv:
      for (int64_t i = 0; i < n; i += 32) {
        // The 8 pairs of a block of 16 channels are the lower or upper 8 lanes of both halves.
        const float first = float_of_e4m3_scale(row[n / 2 + i / 16]) * 256.0F;
        const float second = float_of_e4m3_scale(row[n / 2 + i / 16 + 1]) * 256.0F;
        float scales[16];
        for (int l = 0; l < 16; ++l) {
          scales[l] = l < 8 ? first : second;
        }
        const Pair codes = v_load_fp4(row + i / 2);
        const F32x16 factor = v_load(scales);
        v_store_interleaved(y + i, {v_mul(codes.even, factor), v_mul(codes.odd, factor)});
      }
      return;
    case RowFormat::kFp4Index:
      for (int64_t i = 0; i < n; i += 32) {
        v_store_interleaved(y + i,
                            scaled(v_load_fp4(row + i / 2), kScaleTimes256.values[row[n / 2 + i / 32]]));
      }
      return;
  }
}

void engram_mix(const float* key, const float* value, const uint8_t* q_weight, const uint8_t* k_weight,
                int64_t num_streams, int64_t n, float eps, float* streams) {
  const float count = static_cast<float>(n);
  for (int64_t j = 0; j < num_streams; ++j) {
    float* stream = streams + j * n;
    F32x16 sum = v_zero();
    for (int64_t i = 0; i < n; i += 16) {
      const F32x16 weight =
          v_mul(v_load_bf16_row(q_weight + 2 * (j * n + i)), v_load_bf16_row(k_weight + 2 * (j * n + i)));
      sum = v_fma(v_mul(v_load(stream + i), v_load(key + j * n + i)), weight, sum);
    }
    float dot = v_sum(sum) * inverse_root(sum_of_squares(stream, n) / count, eps);
    dot = dot * inverse_root(sum_of_squares(key + j * n, n) / count, eps) / __builtin_sqrtf(count);
    const float magnitude = __builtin_fabsf(dot);
    const float root = __builtin_sqrtf(magnitude > 1e-6F ? magnitude : 1e-6F);
    const float z = __builtin_copysignf(root, dot);
    alignas(64) float lanes[16];
    v_store(lanes, v_div(v_set(1.0F), v_add(v_set(1.0F), v_exp(v_set(-z)))));
    const F32x16 gate = v_set(lanes[0]);
    for (int64_t i = 0; i < n; i += 16) {
      v_store(stream + i, v_fma(gate, v_load(value + i), v_load(stream + i)));
    }
  }
}

void pool_group(const float* const* values, const float* const* gates, int64_t ratio, int64_t n,
                float* latent) {
  for (int64_t i = 0; i < n; i += 16) {
    F32x16 largest = v_load(gates[0] + i);
    for (int64_t j = 1; j < ratio; ++j) {
      largest = v_max(largest, v_load(gates[j] + i));
    }
    F32x16 total = v_zero();
    F32x16 sum = v_zero();
    for (int64_t j = 0; j < ratio; ++j) {
      const F32x16 e = v_exp(v_sub(v_load(gates[j] + i), largest));
      total = v_add(total, e);
      sum = v_fma(e, v_load(values[j] + i), sum);
    }
    v_store(latent + i, v_div(sum, total));
  }
}
