#pragma once
// SHA-256 (FIPS 180-4).

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace hadal {

using Sha256Digest = std::array<uint8_t, 32>;

Sha256Digest sha256(std::string_view bytes);

/// The digest as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace hadal
