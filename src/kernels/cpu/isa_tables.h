#pragma once
// The operator tables, one per instruction set. Only dispatch.cpp and their own sources see these.

#include "kernels/kernels.h"

namespace hadal::kernels {

namespace scalar {
extern const Kernels kTable;
}
namespace avx2 {
extern const Kernels kTable;
}
namespace avx512 {
extern const Kernels kTable;
}

}  // namespace hadal::kernels
