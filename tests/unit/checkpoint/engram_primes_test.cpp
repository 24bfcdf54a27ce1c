#include "checkpoint/engram_primes.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

namespace hadal::checkpoint {
namespace {

bool is_prime_by_division(int64_t n) {
  for (int64_t divisor = 2; divisor * divisor <= n; ++divisor) {
    if (n % divisor == 0) {
      return false;
    }
  }
  return n >= 2;
}

/// The rule as it is written: every list starts anew and skips what is used.
std::vector<LayerPrimes> by_the_rule(int64_t num_layers, int64_t max_ngram_size, int64_t num_heads,
                                     int64_t vocab_size) {
  std::set<int64_t> used;
  std::vector<LayerPrimes> out;
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    LayerPrimes& primes = out.emplace_back();
    for (int64_t length = 2; length <= max_ngram_size; ++length) {
      int64_t candidate = vocab_size - 1;
      for (int64_t head = 0; head < num_heads; ++head) {
        do {
          ++candidate;
        } while (!is_prime_by_division(candidate) || used.contains(candidate));
        used.insert(candidate);
        primes.push_back(candidate);
      }
    }
  }
  return out;
}

TEST(EngramPrimes, FollowTheRule) {
  for (const int64_t vocab_size : {2, 3, 97, 200, 300, 1500, 65536, 16000000}) {
    EXPECT_EQ(engram_primes(3, 4, 4, vocab_size), by_the_rule(3, 4, 4, vocab_size)) << vocab_size;
  }
}

TEST(EngramPrimes, GiveThePublishedTableSizes) {
  const auto primes = engram_primes(2, 4, 8, 16000000);
  EXPECT_EQ(primes[0].front(), 16000057);
  EXPECT_EQ(primes[1].back(), 16000889);
  EXPECT_EQ(std::accumulate(primes[0].begin(), primes[0].end(), int64_t{0}), 384006168);
  EXPECT_EQ(std::accumulate(primes[1].begin(), primes[1].end(), int64_t{0}), 384016682);
}

TEST(EngramPrimes, AreExactBeyond32Bits) {
  // The first primes above 2^40.
  const auto primes = engram_primes(1, 2, 4, int64_t{1} << 40);
  EXPECT_EQ(primes[0], (LayerPrimes{1099511627791, 1099511627803, 1099511627831, 1099511627873}));
}

TEST(EngramPrimes, NoLayersGiveNothing) {
  EXPECT_TRUE(engram_primes(0, 4, 8, 100).empty());
}

}  // namespace
}  // namespace hadal::checkpoint
