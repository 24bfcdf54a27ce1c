// Attention over gathered keys, and index scores. Included by cpu/body.inl.

/// scores[h][k] for R heads and K keys at once: one virtual vector each, so the tile only hides latency.
template <int R, int K>
inline void score_tile(const float* q, const float* keys, int64_t dim, float scale, float* scores,
                       int64_t stride) {
  F32x16 sums[R][K];
  for (int r = 0; r < R; ++r) {
    for (int k = 0; k < K; ++k) {
      sums[r][k] = v_zero();
    }
  }
  for (int64_t i = 0; i < dim; i += 16) {
    F32x16 key[K];
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) {
      key[k] = v_load(keys + k * dim + i);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F32x16 query = v_load(q + r * dim + i);
#pragma GCC unroll 8
      for (int k = 0; k < K; ++k) {
        sums[r][k] = v_fma(query, key[k], sums[r][k]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int k = 0; k < K; ++k) {
      scores[r * stride + k] = v_sum(sums[r][k]) * scale;
    }
  }
}

template <int R>
inline void score_heads(const float* q, const float* keys, int64_t num_keys, int64_t dim, float scale,
                        float* scores, int64_t stride) {
  int64_t k = 0;
  for (; k + kTileTokens <= num_keys; k += kTileTokens) {
    score_tile<R, kTileTokens>(q, keys + k * dim, dim, scale, scores + k, stride);
  }
  for (; k < num_keys; ++k) {
    score_tile<R, 1>(q, keys + k * dim, dim, scale, scores + k, stride);
  }
}

/// Turns a row of scores into probabilities.
inline void softmax_with_sink(float* scores, int64_t num_keys, int64_t padded, float sink) {
  for (int64_t k = num_keys; k < padded; ++k) {
    scores[k] = sink;  // takes no part in the maximum beyond the sink itself
  }
  F32x16 highest = v_set(sink);
  for (int64_t k = 0; k < padded; k += 16) {
    highest = v_max(v_load(scores + k), highest);
  }
  const float top = v_max_lane(highest);
  F32x16 sum = v_zero();
  for (int64_t k = 0; k < padded; k += 16) {
    const F32x16 e = v_exp(v_sub(v_load(scores + k), v_set(top)));
    v_store(scores + k, e);
    if (k + 16 <= num_keys) {
      sum = v_add(sum, e);
    } else {
      sum = v_add(sum, v_load_part(scores + k, num_keys - k, 0.0F));
    }
  }
  alignas(64) float lanes[16];
  v_store(lanes, v_exp(v_set(sink - top)));
  const float total = v_sum(sum) + lanes[0];
  for (int64_t k = 0; k < padded; k += 16) {
    v_store(scores + k, v_div(v_load(scores + k), v_set(total)));
  }
}

/// out[h][i..i+16*C) += p[h][k] * keys[k][i..], keys ascending, for R heads.
template <int R, int C>
inline void value_tile(const float* scores, int64_t stride, const float* keys, int64_t num_keys, int64_t dim,
                       float* out) {
  F32x16 sums[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      sums[r][c] = v_zero();
    }
  }
  for (int64_t k = 0; k < num_keys; ++k) {
    F32x16 value[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      value[c] = v_load(keys + k * dim + c * 16);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F32x16 p = v_set(scores[r * stride + k]);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) {
        sums[r][c] = v_fma(p, value[c], sums[r][c]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      v_store(out + r * dim + c * 16, sums[r][c]);
    }
  }
}

template <int R>
inline void value_heads(const float* scores, int64_t stride, const float* keys, int64_t num_keys, int64_t dim,
                        float* out) {
  int64_t i = 0;
  for (; i + 64 <= dim; i += 64) {
    value_tile<R, 4>(scores, stride, keys + i, num_keys, dim, out + i);
  }
  for (; i < dim; i += 16) {
    value_tile<R, 1>(scores, stride, keys + i, num_keys, dim, out + i);
  }
}

void attend(const float* q, const float* keys, int64_t num_keys, int64_t heads, int64_t dim, float scale,
            const float* sinks, float* scores, float* out) {
  const int64_t padded = (num_keys + 15) / 16 * 16;
  int64_t h = 0;
  for (; h + kTileRows <= heads; h += kTileRows) {
    score_heads<kTileRows>(q + h * dim, keys, num_keys, dim, scale, scores + h * padded, padded);
  }
  for (; h < heads; ++h) {
    score_heads<1>(q + h * dim, keys, num_keys, dim, scale, scores + h * padded, padded);
  }
  for (h = 0; h < heads; ++h) {
    softmax_with_sink(scores + h * padded, num_keys, padded, sinks[h]);
  }
  h = 0;
  for (; h + kTileRows <= heads; h += kTileRows) {
    value_heads<kTileRows>(scores + h * padded, padded, keys, num_keys, dim, out + h * dim);
  }
  for (; h < heads; ++h) {
    value_heads<1>(scores + h * padded, padded, keys, num_keys, dim, out + h * dim);
  }
}

/// 16 keys in the lanes, R heads at once.
template <int R>
inline void index_tile(const float* q, const float* weights, int64_t dim, const float* keys_t,
                       F32x16& total) {
  F32x16 dots[R];
  for (int r = 0; r < R; ++r) {
    dots[r] = v_zero();
  }
  for (int64_t block = 0; block < dim; block += 32) {
    F32x16 sums[R];
    for (int r = 0; r < R; ++r) {
      sums[r] = v_zero();
    }
    for (int64_t i = block; i < block + 32; ++i) {
      const F32x16 key = v_load(keys_t + i * 16);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        sums[r] = v_fma(v_set(q[r * dim + i]), key, sums[r]);
      }
    }
    for (int r = 0; r < R; ++r) {
      dots[r] = v_add(dots[r], sums[r]);
    }
  }
  for (int r = 0; r < R; ++r) {
    total = v_fma(v_set(weights[r]), v_max(dots[r], v_zero()), total);
  }
}

void index_scores(const float* q, const float* weights, int64_t heads, int64_t dim, const float* keys_t,
                  int64_t num_keys, float scale, float* scores) {
  for (int64_t g = 0; g < num_keys; g += 16) {
    const float* tile = keys_t + g * dim;
    F32x16 total = v_zero();
    int64_t h = 0;
    for (; h + kTileRows <= heads; h += kTileRows) {
      index_tile<kTileRows>(q + h * dim, weights + h, dim, tile, total);
    }
    for (; h < heads; ++h) {
      index_tile<1>(q + h * dim, weights + h, dim, tile, total);
    }
    v_store_upto(scores + g, num_keys - g < 16 ? num_keys - g : 16, v_mul(total, v_set(scale)));
  }
}

void transpose_keys(const float* keys, int64_t count, int64_t dim, float* keys_t) {
  for (int64_t i = 0; i < dim; ++i) {
    for (int64_t l = 0; l < 16; ++l) {
      keys_t[i * 16 + l] = l < count ? keys[l * dim + i] : 0.0F;
    }
  }
}
