#pragma once
// The random integers that the Engram hash takes its multipliers from.

#include <cstdint>

namespace hadal::model {

/// The stream of numpy's `default_rng(seed)` (SeedSequence into PCG64, 128-bit state), bit for bit.
class NumpyGenerator {
 public:
  explicit NumpyGenerator(uint32_t seed);

  uint64_t next();

  /// What `integers(0, bound, dtype=int64)` draws, for bounds above 2^32 (numpy treats smaller ones
  /// otherwise).
  uint64_t below(uint64_t bound);

 private:
  __extension__ using Wide = unsigned __int128;
  Wide state_ = 0;
  Wide increment_ = 0;
};

}  // namespace hadal::model
