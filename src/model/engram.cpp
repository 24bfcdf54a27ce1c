#include "model/engram.h"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

namespace hadal::model {
namespace {

/// Starts reading the pages of a mapped range in the background.
void read_ahead(const uint8_t* data, int64_t bytes) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(data) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(data) + static_cast<uintptr_t>(bytes);
  // Advice only: on refusal the row is read when it is used.
  (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
}

}  // namespace

void Engram::begin(const Pass& pass, const ModelWeights& weights, Capture* capture) {
  const auto per_token = static_cast<int64_t>(hash_.rows_per_token());
  table_rows_.resize(config_.engram_layer_ids.size());
  for (size_t slot = 0; slot < table_rows_.size(); ++slot) {
    table_rows_[slot].resize(static_cast<size_t>(pass.num_rows() * per_token));
  }
  for (size_t s = 0; s < pass.places.size(); ++s) {
    const auto& place = pass.places[s];
    auto& context = pass.segments[s].state->engram_context();
    for (const int32_t token : pass.segments[s].token_ids) {
      context.push_back(hash_.compress(token));
    }
    for (size_t slot = 0; slot < table_rows_.size(); ++slot) {
      hash_.rows(slot, context, static_cast<size_t>(place.start),
                 table_rows_[slot].data() + place.first_row * per_token);
    }
  }
  const int64_t dim = config_.engram_head_dim;
  for (size_t slot = 0; slot < table_rows_.size(); ++slot) {
    const int64_t layer = config_.engram_layer_ids[slot];
    const auto& engram = *weights.layers[static_cast<size_t>(layer)].engram;
    for (const int64_t row : table_rows_[slot]) {
      read_ahead(engram.table + row * dim, dim);
      read_ahead(engram.scales + row * (dim / 32), dim / 32);
    }
    if (capture != nullptr && capture->engram) {
      int64_t* out =
          capture->id_array(fmt::format("engram_ids.{}", layer), {capture->num_positions, per_token});
      for (int64_t row = 0; row < pass.num_rows(); ++row) {
        std::copy_n(table_rows_[slot].data() + row * per_token, per_token,
                    out + pass.rows[static_cast<size_t>(row)].position * per_token);
      }
    }
  }
}

void Engram::forward(size_t slot, const EngramWeights& weights, const Pass& pass, float* streams) {
  const int64_t rows = pass.num_rows();
  const auto per_token = static_cast<int64_t>(hash_.rows_per_token());
  const int64_t dim = config_.engram_head_dim;
  const int64_t hidden = config_.hidden_size;
  const int64_t m = config_.hc_mult;
  const auto& kernels = operators_.kernels();
  float* embeddings = embeddings_.reserve(rows * per_token * dim);
  // One task a table row: where it has to come from the disk, the reads run side by side.
  operators_.each_row(rows * per_token, 1 << 12, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> code(static_cast<size_t>(kernels::row_bytes(kernels::RowFormat::kFp8, dim)));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = table_rows_[slot][static_cast<size_t>(i)];
      std::memcpy(code.data(), weights.table + row * dim, static_cast<size_t>(dim));
      std::memcpy(code.data() + dim, weights.scales + row * (dim / 32), static_cast<size_t>(dim / 32));
      kernels.decode_row(kernels::RowFormat::kFp8, code.data(), dim, embeddings + i * dim);
    }
  });
  // The rows are FP8 values already: every regime takes them as they are.
  const auto packed = operators_.pack(packed_, embeddings, per_token * dim, rows, per_token * dim,
                                      kernels::InputRounding::kNone);
  const int64_t width = (m + 1) * hidden;
  float* kv = kv_.reserve(rows * width);
  operators_.linear_packed(weights.wkv, packed, rows, kv, width);
  operators_.each_row(rows, width * 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* trunk = streams + row * m * hidden;
      kernels.engram_mix(kv + row * width, kv + row * width + m * hidden, weights.q_weight.data,
                         weights.k_weight.data, m, hidden, static_cast<float>(config_.rms_norm_eps), trunk);
      operators_.border(trunk, m * hidden);
    }
  });
}

}  // namespace hadal::model
