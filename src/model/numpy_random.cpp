#include "model/numpy_random.h"

#include <array>
#include <bit>
#include <cstddef>

namespace hadal::model {
namespace {

constexpr size_t kPoolWords = 4;

/// numpy.random.SeedSequence(seed).generate_state(8, uint32).
std::array<uint32_t, 8> seed_words(uint32_t seed) {
  uint32_t hash_constant = 0x43b0d7e5;
  const auto hash = [&](uint32_t value) {
    value ^= hash_constant;
    hash_constant *= 0x931e8875;
    value *= hash_constant;
    return value ^ (value >> 16);
  };
  std::array<uint32_t, kPoolWords> pool{};
  pool[0] = hash(seed);
  for (size_t index = 1; index < kPoolWords; ++index) {
    pool[index] = hash(0);
  }
  for (size_t source = 0; source < kPoolWords; ++source) {
    for (size_t target = 0; target < kPoolWords; ++target) {
      if (source != target) {
        const uint32_t mixed = 0xca01f9ddU * pool[target] - 0x4973f715U * hash(pool[source]);
        pool[target] = mixed ^ (mixed >> 16);
      }
    }
  }
  std::array<uint32_t, 8> words{};
  uint32_t output_constant = 0x8b51f9dd;
  for (size_t index = 0; index < words.size(); ++index) {
    uint32_t value = pool[index % kPoolWords] ^ output_constant;
    output_constant *= 0x58f38ded;
    value *= output_constant;
    words[index] = value ^ (value >> 16);
  }
  return words;
}

}  // namespace

NumpyGenerator::NumpyGenerator(uint32_t seed) {
  const auto words = seed_words(seed);
  std::array<uint64_t, 4> quads{};
  for (size_t index = 0; index < quads.size(); ++index) {
    quads[index] = words[2 * index] | static_cast<uint64_t>(words[2 * index + 1]) << 32;
  }
  increment_ = (static_cast<Wide>(quads[2]) << 64 | quads[3]) << 1 | 1;
  next();
  state_ += static_cast<Wide>(quads[0]) << 64 | quads[1];
  next();
}

uint64_t NumpyGenerator::next() {
  constexpr Wide kMultiplier = static_cast<Wide>(0x2360ed051fc65da4) << 64 | 0x4385df649fccf645;
  state_ = state_ * kMultiplier + increment_;
  return std::rotr(static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_),
                   static_cast<int>(state_ >> 122));
}

uint64_t NumpyGenerator::below(uint64_t bound) {
  Wide product = static_cast<Wide>(next()) * bound;
  if (static_cast<uint64_t>(product) < bound) {
    // 2^64 mod bound: the draws below it would make some values likelier than others.
    const uint64_t threshold = (0 - bound) % bound;
    while (static_cast<uint64_t>(product) < threshold) {
      product = static_cast<Wide>(next()) * bound;
    }
  }
  return static_cast<uint64_t>(product >> 64);
}

}  // namespace hadal::model
