// The operators compiled for scalar; see kernels.h.

#include "kernels/cpu/isa_tables.h"
#include "kernels/cpu/scales.h"
#include "kernels/quantize.h"

namespace hadal::kernels::scalar {
namespace {

// clang-format off: each of these uses what the ones before it define
#include "kernels/cpu/vec_scalar.h"
#include "kernels/cpu/linear.inl"
#include "kernels/cpu/elementwise.inl"
#include "kernels/cpu/attention.inl"
// clang-format on

}  // namespace

const Kernels kTable = {
    .name = "scalar",
#include "kernels/cpu/table.inl"
};

}  // namespace hadal::kernels::scalar
