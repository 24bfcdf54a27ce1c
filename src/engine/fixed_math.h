#pragma once
// Logarithm and exponential with one fixed order of double operations. The C library's may change between
// versions and instruction sets; tokens must not. The code is the specification: additions, multiplications
// and one division, never fused (the build sets -ffp-contract=off), rounding to nearest. Relative errors: of
// the logarithm below 2^-51, of the exponential (which only weighs and bounds) below 2^-46; both are tested.

#include <bit>
#include <cstdint>

namespace hadal::engine {

namespace fixed_math_constants {
inline constexpr double kLog2E = 0x1.71547652b82fep+0;
inline constexpr double kLn2High =
    0x1.62e42fee00000p-1;  ///< ln 2 to 32 bits: exact when multiplied by an exponent
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;  ///< ln 2 - kLn2High
inline constexpr double kSqrt2 = 0x1.6a09e667f3bcdp+0;
inline constexpr double kRoundToInteger =
    0x1.8p+52;  ///< added to |x| < 2^51, leaves x as an integer in the low bits
}  // namespace fixed_math_constants

/// ln x for positive, finite, normal x.
[[gnu::always_inline]] inline double fixed_log(double x) {
  using namespace fixed_math_constants;
  constexpr uint64_t kMantissaMask = 0x000fffffffffffff;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & kMantissaMask) | 0x3ff0000000000000);
  if (mantissa >= kSqrt2) {  // now in [sqrt(1/2), sqrt(2)), so that x near 1 has exponent 0 and loses nothing
    mantissa *= 0.5;
    ++exponent;
  }
  // ln(1 + f) = 2 atanh(s) with s = f / (2 + f), |s| < 0.172
  const double f = mantissa - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double series = 1.0 / 21.0;
  series = series * z + 1.0 / 19.0;
  series = series * z + 1.0 / 17.0;
  series = series * z + 1.0 / 15.0;
  series = series * z + 1.0 / 13.0;
  series = series * z + 1.0 / 11.0;
  series = series * z + 1.0 / 9.0;
  series = series * z + 1.0 / 7.0;
  series = series * z + 1.0 / 5.0;
  series = series * z + 1.0 / 3.0;
  const double twice_s = s + s;
  const double log_mantissa = twice_s + twice_s * (series * z);
  const double e = static_cast<double>(exponent);
  return e * kLn2High + (log_mantissa + e * kLn2Low);
}

/// e^x for -700 <= x <= 0.
[[gnu::always_inline]] inline double fixed_exp_in_range(double x) {
  using namespace fixed_math_constants;
  const double shifted = x * kLog2E + kRoundToInteger;
  const double k = shifted - kRoundToInteger;
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= ln(2) / 2
  double series = 1.0 / 39916800.0;                   // 1 / 11!
  series = series * r + 1.0 / 3628800.0;
  series = series * r + 1.0 / 362880.0;
  series = series * r + 1.0 / 40320.0;
  series = series * r + 1.0 / 5040.0;
  series = series * r + 1.0 / 720.0;
  series = series * r + 1.0 / 120.0;
  series = series * r + 1.0 / 24.0;
  series = series * r + 1.0 / 6.0;
  series = series * r + 0.5;
  series = series * (r * r) + r;
  const double power = 1.0 + series;
  // Times 2^k: k sits in the low bits of `shifted` and is added to the exponent field.
  return std::bit_cast<double>(std::bit_cast<uint64_t>(power) + (std::bit_cast<uint64_t>(shifted) << 52));
}

/// e^x for x <= 0, -infinity included. Below -700 it stays at e^-700 (about 1e-304).
[[gnu::always_inline]] inline double fixed_exp(double x) {
  return fixed_exp_in_range(x > -700.0 ? x : -700.0);
}

}  // namespace hadal::engine
