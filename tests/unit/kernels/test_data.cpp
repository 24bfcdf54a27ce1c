#include "test_data.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace hadal::kernels {

uint64_t Random::next() {
  // splitmix64
  uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

double Random::uniform() {
  return static_cast<double>(next() >> 11) * 0x1p-53;
}

float Random::normal() {
  // The sum of 12 uniform numbers is close enough to normal, and its bits depend on no library.
  double sum = -6;
  for (int i = 0; i < 12; ++i) {
    sum += uniform();
  }
  return static_cast<float>(sum);
}

int64_t Random::below(int64_t bound) {
  return static_cast<int64_t>(next() % static_cast<uint64_t>(bound));
}

std::vector<uint8_t> Random::bytes(int64_t n) {
  std::vector<uint8_t> out(static_cast<size_t>(n));
  for (uint8_t& byte : out) {
    byte = static_cast<uint8_t>(next());
  }
  return out;
}

const char* spread_name(Spread spread) {
  switch (spread) {
    case Spread::kNormal:
      return "normal";
    case Spread::kHeavyTailed:
      return "heavy-tailed";
    case Spread::kZeroBlocks:
      return "zero blocks";
    case Spread::kTiny:
      return "tiny";
    case Spread::kHuge:
      return "huge";
  }
  return "";
}

std::vector<float> make_values(Random& random, int64_t n, Spread spread) {
  std::vector<float> values(static_cast<size_t>(n));
  bool is_zero_block = false;
  for (int64_t i = 0; i < n; ++i) {
    float value = random.normal();
    switch (spread) {
      case Spread::kNormal:
        break;
      case Spread::kHeavyTailed:
        value *= random.below(20) == 0 ? 1000.0F : 1.0F;
        break;
      case Spread::kZeroBlocks:
        is_zero_block = i % 32 == 0 ? random.below(2) == 0 : is_zero_block;
        value = is_zero_block ? std::copysign(0.0F, value) : value;
        break;
      case Spread::kTiny:
        value = random.below(4) == 0 ? std::bit_cast<float>(static_cast<uint32_t>(random.below(1 << 23)))
                                     : value * 1e-19F;
        break;
      case Spread::kHuge:
        value *= 1e15F;
        break;
    }
    values[static_cast<size_t>(i)] = value;
  }
  return values;
}

std::vector<uint8_t> make_bf16(Random& random, int64_t n) {
  std::vector<uint8_t> out(static_cast<size_t>(2 * n));
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<uint32_t>(1.0F + 0.5F * random.normal()) >> 16;
    out[static_cast<size_t>(2 * i)] = static_cast<uint8_t>(bits);
    out[static_cast<size_t>(2 * i + 1)] = static_cast<uint8_t>(bits >> 8);
  }
  return out;
}

float bf16_at(const std::vector<uint8_t>& bytes, int64_t index) {
  uint16_t half = 0;
  std::memcpy(&half, bytes.data() + 2 * index, 2);
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

testing::AssertionResult same_bits(std::span<const float> want, std::span<const float> got) {
  if (want.size() != got.size()) {
    return testing::AssertionFailure() << got.size() << " values, want " << want.size();
  }
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]) && std::isnan(got[i])) {
      continue;
    }
    if (std::bit_cast<uint32_t>(want[i]) != std::bit_cast<uint32_t>(got[i])) {
      return testing::AssertionFailure()
             << "value " << i << " is " << got[i] << ", want " << want[i] << " (bits " << std::hex
             << std::bit_cast<uint32_t>(got[i]) << " and " << std::bit_cast<uint32_t>(want[i]) << ")";
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult within(double want, double got, double bound) {
  if (std::fabs(got - want) <= bound) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << got << " is " << std::fabs(got - want) << " away from " << want
                                     << ", allowed " << bound;
}

float flushed(double exact) {
  return std::fabs(exact) < 0x1p-126 ? static_cast<float>(std::copysign(0.0, exact))
                                     : static_cast<float>(exact);
}

}  // namespace hadal::kernels
