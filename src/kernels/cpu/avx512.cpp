// The operators compiled for avx512; see kernels.h.

#include <immintrin.h>

#include "kernels/cpu/isa_tables.h"
#include "kernels/cpu/scales.h"
#include "kernels/quantize.h"

namespace hadal::kernels::avx512 {
namespace {

// clang-format off: each of these uses what the ones before it define
#include "kernels/cpu/vec_avx512.h"
#include "kernels/cpu/linear.inl"
#include "kernels/cpu/elementwise.inl"
#include "kernels/cpu/attention.inl"
// clang-format on

}  // namespace

const Kernels kTable = {
    .name = "avx512",
#include "kernels/cpu/table.inl"
};

}  // namespace hadal::kernels::avx512
