#include "model/engram_hash.h"

#include <algorithm>
#include <numeric>

#include "checkpoint/engram_primes.h"
#include "model/numpy_random.h"

namespace hadal::model {

Result<EngramHash> EngramHash::create(const checkpoint::TextConfig& text,
                                      std::span<const int32_t> vocabulary_map) {
  EngramHash out;
  int64_t vocabulary = text.vocab_size;
  if (text.engram_compressed_vocab_size == 0) {
    out.map_.resize(static_cast<size_t>(vocabulary));
    std::iota(out.map_.begin(), out.map_.end(), 0);
  } else {
    out.map_.assign(vocabulary_map.begin(), vocabulary_map.end());
    vocabulary = out.map_.empty() ? 0 : *std::max_element(out.map_.begin(), out.map_.end()) + int64_t{1};
    if (vocabulary != text.engram_compressed_vocab_size) {
      return fail(ErrorCode::kInvalidArgument,
                  "text_config.engram_compressed_vocab_size: found {}, expected {}, what tokenizer.json "
                  "comes to (is it "
                  "the one of this checkpoint?)",
                  text.engram_compressed_vocab_size, vocabulary);
    }
  }
  if (text.engram_pad_token_id < 0 || text.engram_pad_token_id >= std::ssize(out.map_)) {
    return fail(ErrorCode::kInvalidArgument,
                "text_config.engram_pad_token_id: found {}, expected an id below {}",
                text.engram_pad_token_id, out.map_.size());
  }
  out.pad_ = out.map_[static_cast<size_t>(text.engram_pad_token_id)];
  out.max_ngram_size_ = static_cast<int>(text.engram_max_ngram_size);
  out.heads_ = static_cast<int>(text.engram_n_heads);
  out.rows_per_token_ = (out.max_ngram_size_ - 1) * out.heads_;

  const auto primes = checkpoint::engram_primes(std::ssize(text.engram_layer_ids), text.engram_max_ngram_size,
                                                text.engram_n_heads, text.engram_vocab_size);
  // Products of a compressed id and a multiplier stay below 2^63.
  const uint64_t bound =
      std::max<uint64_t>(1, static_cast<uint64_t>(INT64_MAX) / static_cast<uint64_t>(vocabulary) / 2);
  for (size_t slot = 0; slot < primes.size(); ++slot) {
    Layer layer;
    for (const int64_t prime : primes[slot]) {
      layer.columns.push_back({.prime = prime, .offset = layer.num_rows});
      layer.num_rows += prime;
    }
    if (slot >= text.engram_num_embeddings.size() || text.engram_num_embeddings[slot] != layer.num_rows) {
      return fail(ErrorCode::kInvalidArgument, "text_config.engram_num_embeddings[{}]: found {}, expected {}",
                  slot, slot < text.engram_num_embeddings.size() ? text.engram_num_embeddings[slot] : 0,
                  layer.num_rows);
    }
    NumpyGenerator generator(static_cast<uint32_t>(10007 * text.engram_layer_ids[slot]));
    for (int64_t index = 0; index < text.engram_max_ngram_size; ++index) {
      layer.multipliers.push_back(generator.below(bound) * 2 + 1);
    }
    out.layers_.push_back(std::move(layer));
  }
  return out;
}

void EngramHash::rows(size_t layer_slot, std::span<const int32_t> compressed, size_t first,
                      int64_t* out) const {
  const Layer& layer = layers_[layer_slot];
  for (size_t position = first; position < compressed.size(); ++position) {
    if (compressed[position] == kImagePosition) {
      out = std::fill_n(out, rows_per_token_, int64_t{-1});
      continue;
    }
    uint64_t accumulator = static_cast<uint64_t>(compressed[position]) * layer.multipliers[0];
    const Column* column = layer.columns.data();
    bool is_cut = false;  // the look-back has met the start or an image
    for (size_t back = 1; back < layer.multipliers.size(); ++back) {
      is_cut = is_cut || back > position || compressed[position - back] == kImagePosition;
      const int32_t token = is_cut ? pad_ : compressed[position - back];
      accumulator ^= static_cast<uint64_t>(token) * layer.multipliers[back];
      for (int head = 0; head < heads_; ++head, ++column) {
        *out++ = static_cast<int64_t>(accumulator % static_cast<uint64_t>(column->prime)) + column->offset;
      }
    }
  }
}

}  // namespace hadal::model
