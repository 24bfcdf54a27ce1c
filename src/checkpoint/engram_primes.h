#pragma once
// The table sizes of the Engram hash (model.md section 9). They follow from the configuration alone and
// give the number of rows of every Engram table, which is why they live beside the configuration.

#include <cstdint>
#include <vector>

namespace hadal::checkpoint {

/// Primes of one Engram layer, n-gram length 2 first, inside it by head: [(n-1) * heads].
/// The layer's table has as many rows as their sum.
using LayerPrimes = std::vector<int64_t>;

/// Primes of all `num_layers` Engram layers: for each layer and n-gram length 2..max_ngram_size the next
/// `num_heads` primes from `vocab_size` up that are in no earlier list. Expects num_layers >= 0,
/// max_ngram_size >= 2, num_heads >= 1 and 2 <= vocab_size <= 2^40.
std::vector<LayerPrimes> engram_primes(int64_t num_layers, int64_t max_ngram_size, int64_t num_heads,
                                       int64_t vocab_size);

}  // namespace hadal::checkpoint
