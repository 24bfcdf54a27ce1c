#include "kernels/cpu/scales.h"

namespace hadal::kernels {
namespace {

constexpr ScaleTable make_table() {
  ScaleTable table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t exponent = byte + 8 > 255 ? 255 : byte + 8;
    table.values[byte] = __builtin_bit_cast(float, exponent << 23U);
  }
  return table;
}

}  // namespace

constinit const ScaleTable kScaleTimes256 = make_table();

}  // namespace hadal::kernels
