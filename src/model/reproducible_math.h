#pragma once
// Elementary functions in float64 from plain additions and products in a fixed order, so that their bits
// depend on no mathematics library. Errors stay below 1e-14 relative (absolute for sine and cosine).

namespace hadal::model {

double reproducible_exp(double x);                                 ///< for |x| < 700
double reproducible_log(double x);                                 ///< for normal x > 0
void reproducible_sincos(double x, double* sine, double* cosine);  ///< for |x| < 2^21

inline double reproducible_sigmoid(double x) {
  const double clamped = x < -700 ? -700 : (x > 700 ? 700 : x);
  return 1.0 / (1.0 + reproducible_exp(-clamped));
}

}  // namespace hadal::model
