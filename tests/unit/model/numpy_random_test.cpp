#include "model/numpy_random.h"

#include <gtest/gtest.h>

namespace hadal::model {
namespace {

// numpy 2: default_rng(seed).bit_generator.random_raw(4)
TEST(NumpyGenerator, DrawsWhatNumpyDraws) {
  const struct {
    uint32_t seed;
    uint64_t draws[4];
  } cases[] = {
      {0, {11749869230777074271U, 4976686463289251617U, 755828109848996024U, 304881062738325533U}},
      {1, {9441442522235856127U, 17532960557476522086U, 2659275481604167885U, 17499493567006797778U}},
      {10007, {15187255322829266483U, 959186003677246517U, 7126631698937927467U, 14663106486854050627U}},
      {140098, {13420388419549774097U, 10208617735032736636U, 6128116274024149523U, 16373808781820707998U}},
      {4294967295,
       {4647538520743280031U, 4041050679407036418U, 5299467714154781845U, 11418189674231792917U}}};
  for (const auto& test : cases) {
    NumpyGenerator generator(test.seed);
    for (const uint64_t expected : test.draws) {
      EXPECT_EQ(generator.next(), expected) << test.seed;
    }
  }
}

// default_rng(seed).integers(0, bound, size=4, dtype=int64)
TEST(NumpyGenerator, BoundsAsNumpyDoes) {
  const struct {
    uint32_t seed;
    uint64_t bound;
    uint64_t draws[4];
  } cases[] = {
      {10007, 46539438283891U, {38316048023122U, 2419938046656U, 17979836159674U, 36993668729195U}},
      {140098, 46539438283891U, {33858405369630U, 25755403400457U, 15460673601360U, 41309613242795U}},
      {10007, 2813719352304690U, {2316542910742718U, 146306589944668U, 1087039612406639U, 2236593423864253U}},
      {40028, 2884106327972100U, {2548883547642176U, 156099089165056U, 2282197656200775U, 587328105134667U}},
      {7, 4294967297U, {2684764586U, 3853503933U, 3331544672U, 967257516U}},
      {3,
       6917529027641081857U,
       {651137615030404517U, 1104998578845871980U, 5081458767915139891U, 786329497436903519U}},
      {5,
       9223372036854775807U,
       {7424841456459477715U, 7451938487489940729U, 4753039369592592095U, 2636052457199469114U}}};
  for (const auto& test : cases) {
    NumpyGenerator generator(test.seed);
    for (const uint64_t expected : test.draws) {
      EXPECT_EQ(generator.below(test.bound), expected) << test.seed << " " << test.bound;
    }
  }
}

}  // namespace
}  // namespace hadal::model
