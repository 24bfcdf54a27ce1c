#include <string>

#include <gtest/gtest.h>

#include "kernels/kernels.h"

namespace hadal::kernels {
namespace {

TEST(Dispatch, NamesMatchTheirTables) {
  EXPECT_STREQ(isa_name(Isa::kScalar), "scalar");
  EXPECT_STREQ(isa_name(Isa::kAvx2), "avx2");
  EXPECT_STREQ(isa_name(Isa::kAvx512), "avx512");
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    EXPECT_STREQ(kernels_for(isa).name, isa_name(isa));
  }
}

TEST(Dispatch, PicksTheLargestSupportedSet) {
  const Isa best = detect_isa();
  EXPECT_TRUE(isa_supported(best));
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (static_cast<int>(isa) > static_cast<int>(best)) {
      EXPECT_FALSE(isa_supported(isa)) << isa_name(isa);
    }
  }
}

TEST(Dispatch, EveryTableIsComplete) {
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    const Kernels& table = kernels_for(isa);
    // All members behind the name are function pointers of one size.
    const auto* entries = reinterpret_cast<void* const*>(&table);
    for (size_t i = 0; i < sizeof(Kernels) / sizeof(void*); ++i) {
      EXPECT_NE(entries[i], nullptr) << isa_name(isa) << ", entry " << i;
    }
  }
}

}  // namespace
}  // namespace hadal::kernels
