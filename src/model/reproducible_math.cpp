#include "model/reproducible_math.h"

#include <bit>
#include <cstdint>

namespace hadal::model {
namespace {

/// Nearest integer, ties to even, for |x| < 2^51.
double nearest_integer(double x) {
  constexpr double kShift = 0x1.8p52;
  return (x + kShift) - kShift;
}

double power_of_two(int64_t exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

}  // namespace

double reproducible_exp(double x) {
  // ln 2 in two parts; the first has 32 bits, so that its product with a small integer is exact.
  constexpr double kLn2High = 0x1.62e42feep-1;
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  const double n = nearest_integer(x * 0x1.71547652b82fep0);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double sum = 1.0;
  for (int term = 14; term >= 1; --term) {
    sum = 1.0 + sum * r / static_cast<double>(term);
  }
  return sum * power_of_two(static_cast<int64_t>(n));
}

double reproducible_log(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  auto exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0xfffffffffffffULL) | (1023ULL << 52));
  if (mantissa > 0x1.6a09e667f3bcdp0) {
    mantissa *= 0.5;
    ++exponent;
  }
  // log m = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.172
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double square = s * s;
  double sum = 0.0;
  for (int term = 23; term >= 1; term -= 2) {
    sum = 1.0 / static_cast<double>(term) + square * sum;
  }
  return static_cast<double>(exponent) * 0x1.62e42fefa39efp-1 + 2.0 * s * sum;
}

void reproducible_sincos(double x, double* sine, double* cosine) {
  // pi/2 in three parts of 32 bits and a rest: products with the quadrant number are exact.
  constexpr double kPart1 = 0x1.921fb544p0;
  constexpr double kPart2 = 0x1.0b4611a6p-34;
  constexpr double kPart3 = 0x1.3198a2e037073p-69;
  const double quadrant = nearest_integer(x * 0x1.45f306dc9c883p-1);
  const double r = ((x - quadrant * kPart1) - quadrant * kPart2) - quadrant * kPart3;
  const double square = r * r;
  double sin_sum = 1.0;
  double cos_sum = 1.0;
  for (int term = 8; term >= 1; --term) {
    const double even = 2.0 * term;
    sin_sum = 1.0 - sin_sum * square / (even * (even + 1.0));
    cos_sum = 1.0 - cos_sum * square / (even * (even - 1.0));
  }
  const double s = r * sin_sum;
  switch (static_cast<int64_t>(quadrant) & 3) {
    case 0:
      *sine = s, *cosine = cos_sum;
      break;
    case 1:
      *sine = cos_sum, *cosine = -s;
      break;
    case 2:
      *sine = -s, *cosine = -cos_sum;
      break;
    default:
      *sine = -cos_sum, *cosine = s;
      break;
  }
}

}  // namespace hadal::model
