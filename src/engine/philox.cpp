#include "engine/philox.h"

#include "engine/fixed_math.h"

namespace hadal::engine {

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = static_cast<uint64_t>(kPhiloxMultiplier0) * counter[0];
    const uint64_t product1 = static_cast<uint64_t>(kPhiloxMultiplier1) * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += kPhiloxWeyl0;
    key[1] += kPhiloxWeyl1;
  }
  return counter;
}

PhiloxCounter noise_words(uint64_t seed, int64_t position, uint32_t group) {
  const auto place = static_cast<uint64_t>(position);
  return philox4x32({group, 0, static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32)},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

double gumbel_of_word(uint32_t word) {
  const double u = (static_cast<double>(word) + 0.5) * 0x1p-32;  // exact: 33 bits
  return -fixed_log(-fixed_log(u));
}

double gumbel(uint64_t seed, int64_t position, int32_t token) {
  const auto id = static_cast<uint32_t>(token);
  return gumbel_of_word(noise_words(seed, position, id / 4)[id % 4]);
}

}  // namespace hadal::engine
