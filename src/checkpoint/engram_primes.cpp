#include "checkpoint/engram_primes.h"

#include <array>
#include <cstddef>

namespace hadal::checkpoint {
namespace {

__extension__ using Wide = unsigned __int128;

uint64_t multiply_mod(uint64_t a, uint64_t b, uint64_t modulus) {
  return static_cast<uint64_t>(static_cast<Wide>(a) * b % modulus);
}

uint64_t power_mod(uint64_t base, uint64_t exponent, uint64_t modulus) {
  uint64_t out = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) {
      out = multiply_mod(out, base, modulus);
    }
    base = multiply_mod(base, base, modulus);
  }
  return out;
}

// Miller-Rabin. With the first twelve primes as bases it is exact below 3.3e24.
bool is_prime(uint64_t n) {
  constexpr std::array<uint64_t, 12> kBases = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  if (n < 2) {
    return false;
  }
  for (const uint64_t base : kBases) {
    if (n % base == 0) {
      return n == base;
    }
  }
  uint64_t odd = n - 1;
  int halvings = 0;
  for (; odd % 2 == 0; odd /= 2) {
    ++halvings;
  }
  for (const uint64_t base : kBases) {
    uint64_t x = power_mod(base, odd, n);
    bool passes = x == 1 || x == n - 1;
    for (int step = 1; step < halvings && !passes; ++step) {
      x = multiply_mod(x, x, n);
      passes = x == n - 1;
    }
    if (!passes) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<LayerPrimes> engram_primes(int64_t num_layers, int64_t max_ngram_size, int64_t num_heads,
                                       int64_t vocab_size) {
  // Every list starts its search at vocab_size and skips what earlier lists took. As those took every prime
  // from vocab_size on, in order, a list simply goes on where the previous one stopped.
  std::vector<LayerPrimes> layers(static_cast<size_t>(num_layers));
  auto candidate = static_cast<uint64_t>(vocab_size);
  for (LayerPrimes& primes : layers) {
    primes.reserve(static_cast<size_t>((max_ngram_size - 1) * num_heads));
    for (int64_t count = (max_ngram_size - 1) * num_heads; count > 0; ++candidate) {
      if (is_prime(candidate)) {
        primes.push_back(static_cast<int64_t>(candidate));
        --count;
      }
    }
  }
  return layers;
}

}  // namespace hadal::checkpoint
