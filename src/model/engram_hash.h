#pragma once
// Which rows of the Engram tables a token's n-grams select. Exact 64-bit integer arithmetic throughout: the
// multipliers exceed 2^53 and must never pass through a double.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "checkpoint/model_config.h"

namespace hadal::model {

/// In a sequence of compressed ids: an image position. It has no rows, and no n-gram looks past it.
inline constexpr int32_t kImagePosition = -1;

/// Immutable; safe to use from many threads at once.
class EngramHash {
 public:
  /// `vocabulary_map` is that of build_vocabulary_map, and not used (may be empty) if the configuration has
  /// no compressed vocabulary. kInvalidArgument names the field if the map is of another size than
  /// engram_compressed_vocab_size or engram_num_embeddings are not the prime sums.
  static Result<EngramHash> create(const checkpoint::TextConfig& text,
                                   std::span<const int32_t> vocabulary_map);

  /// Table rows per token and layer: (max_ngram_size - 1) * heads, shorter n-grams first, by head inside.
  int rows_per_token() const { return rows_per_token_; }

  /// Tokens before a position that its rows depend on: max_ngram_size - 1.
  int context_length() const { return max_ngram_size_ - 1; }

  size_t num_layers() const { return layers_.size(); }

  /// Rows of the table of one layer (a position in engram_layer_ids).
  int64_t num_rows(size_t layer_slot) const { return layers_[layer_slot].num_rows; }

  /// The compressed id of a token; an id outside the map counts as the padding token.
  int32_t compress(int32_t token_id) const {
    return static_cast<size_t>(token_id) < map_.size() ? map_[static_cast<size_t>(token_id)] : pad_;
  }

  /// Row numbers of the positions [first, compressed.size()), [count, rows_per_token()], into `out`; -1 at
  /// image positions. `compressed` are compressed ids (or kImagePosition) of consecutive positions; those
  /// before `first` are context only. It must begin with the sequence, or context_length() or more positions
  /// before `first`: whatever is not there counts as before the sequence.
  void rows(size_t layer_slot, std::span<const int32_t> compressed, size_t first, int64_t* out) const;

 private:
  struct Column {
    int64_t prime = 0;
    int64_t offset = 0;  // sum of the primes before it
  };
  struct Layer {
    std::vector<uint64_t> multipliers;  // [max_ngram_size]
    std::vector<Column> columns;        // [rows_per_token]
    int64_t num_rows = 0;
  };

  EngramHash() = default;

  int max_ngram_size_ = 0;
  int heads_ = 0;
  int rows_per_token_ = 0;
  int32_t pad_ = 0;           // compressed
  std::vector<int32_t> map_;  // token id -> compressed id
  std::vector<Layer> layers_;
};

}  // namespace hadal::model
