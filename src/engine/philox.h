#pragma once
// Counter-based random numbers (Philox4x32-10; Salmon, Moraes, Dror, Shaw, 2011) and the Gumbel noise that
// sampling adds to logits. Everything here is a pure function: no state, no order, no instruction set.

#include <array>
#include <cstdint>

namespace hadal::engine {

using PhiloxKey = std::array<uint32_t, 2>;
using PhiloxCounter = std::array<uint32_t, 4>;

inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr uint32_t kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr uint32_t kPhiloxWeyl0 = 0x9E3779B9;
inline constexpr uint32_t kPhiloxWeyl1 = 0xBB67AE85;
inline constexpr int kPhiloxRounds = 10;

/// Four random words for one counter value.
PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key);

/// The words of the four tokens 4 * group .. 4 * group + 3, in this order:
///   key     = (seed mod 2^32, seed div 2^32)
///   counter = (group, 0, position mod 2^32, position div 2^32)
/// `position` is the index in the whole sequence (prompt and output) of the token that is being produced.
PhiloxCounter noise_words(uint64_t seed, int64_t position, uint32_t group);

/// The Gumbel noise of a word: -ln(-ln u) with u = (word + 1/2) / 2^32, computed in double with fixed_log.
/// Strictly increasing in `word`, from kMinGumbel to kMaxGumbel.
double gumbel_of_word(uint32_t word);

/// gumbel_of_word(noise_words(seed, position, token div 4)[token mod 4]).
double gumbel(uint64_t seed, int64_t position, int32_t token);

inline constexpr double kMinGumbel = -3.13;    ///< below gumbel_of_word(0)
inline constexpr double kMaxGumbel = 22.8739;  ///< above gumbel_of_word(2^32 - 1)

}  // namespace hadal::engine
