#include "checkpoint/memory_plan.h"

#include <gmock/gmock.h>

#include "test_support.h"

namespace hadal::checkpoint {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

ModelConfig release() {
  auto config = load_model_config(data_path("flash-1017"));
  EXPECT_TRUE(config) << config.error().message;
  return *config;
}

TEST(MemoryPlan, ReproducesTheStateSizesOfTheRelease) {
  const StateSizes sizes = state_sizes(release().text, 6);
  EXPECT_EQ(sizes.compressed_entry, 288U);
  EXPECT_EQ(sizes.index_key, 68U);
  EXPECT_EQ(sizes.per_token, 890.0);
  EXPECT_EQ(sizes.window_key, 528U);
  EXPECT_EQ(sizes.windows, 43U * 70'752);  // 134 keys in each of 40 + 3 layers
  EXPECT_EQ(sizes.windows, 1'415'040U + 1'627'296U);
  EXPECT_EQ(sizes.open_groups, 86'016U);  // 3 layers x 7 tokens x 2 vectors of 512 floats
  EXPECT_EQ(sizes.engram_context, 12U);   // three ids
  EXPECT_EQ(sizes.per_sequence(), 3'128'352U + 12U);
}

TEST(MemoryPlan, KnowsTheFp8Variant) {
  ModelConfig config = release();
  config.text.use_fp4_sparse_kv = false;
  EXPECT_EQ(state_sizes(config.text, 6).per_token, 1490.0);
  EXPECT_EQ(compressed_state_bytes(config.text, 128), 190'720U);
}

TEST(MemoryPlan, CountsCompleteGroupsOnly) {
  const TextConfig text = release().text;
  EXPECT_EQ(compressed_state_bytes(text, 0), 0U);
  EXPECT_EQ(compressed_state_bytes(text, 1), 356U);            // layer 20 alone
  EXPECT_EQ(compressed_state_bytes(text, 2), 4U * 356 + 356);  // and one group in each of layers 2, 8, 14
  EXPECT_EQ(compressed_state_bytes(text, 128), 113'920U);
  EXPECT_EQ(compressed_state_bytes(text, 1 << 20), 890ULL << 20);
}

TEST(MemoryPlan, SeparatesWhatMayStayOnDisk) {
  const std::vector<Checkpoint::Part> parts = {
      {.name = "routed experts", .bytes = 288'800'000'000, .tensors = 92160},
      {.name = "engram tables", .bytes = 202'758'032'400, .tensors = 4},
      {.name = "other", .bytes = 1'000'000'000, .tensors = 3}};
  const auto plan = plan_memory(release(), parts, 131072, 4);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->resident_weights, 289'800'000'000U);
  EXPECT_EQ(plan->disk_weights, 202'758'032'400U);
  EXPECT_EQ(plan->state_bytes, 4U * (131072ULL * 890 + 3'128'364));
  EXPECT_EQ(plan->memory_bytes(), plan->resident_weights + plan->state_bytes);

  const auto lines = describe_plan(*plan, parts);
  EXPECT_THAT(lines, Contains(::testing::MatchesRegex("routed experts +288.8 GB  92160 tensors")));
  EXPECT_THAT(lines, Contains(::testing::MatchesRegex("weights in memory +289.8 GB")));
  EXPECT_THAT(lines, Contains(::testing::MatchesRegex("weights left on disk +202.8 GB  engram tables")));
  EXPECT_THAT(lines, Contains(::testing::MatchesRegex("state per token +890 B .*")));
  EXPECT_THAT(lines, Contains(::testing::MatchesRegex("state per sequence +3.13 MB .*")));
  EXPECT_THAT(lines,
              Contains(::testing::MatchesRegex("state in all +479.1 MB  4 sequences of 131072 tokens")));
  EXPECT_THAT(lines, Contains(::testing::MatchesRegex("memory in all +290.3 GB .*")));
}

TEST(MemoryPlan, AModelWithoutDraftsOrEngramNeedsLess) {
  const auto config = load_model_config(data_path("tiny-mini"));
  ASSERT_TRUE(config);
  const auto plan = plan_memory(*config, {}, 100, 1);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->state.windows, 3U * 16 * (64 + 2));
  EXPECT_EQ(plan->state.open_groups, 1U * 1 * 2 * 64 * 4);
  EXPECT_EQ(plan->state.engram_context, 0U);
  EXPECT_EQ(plan->state_bytes, 150U * ((32 + 4) + (32 + 2)) + plan->state.per_sequence());
}

TEST(MemoryPlan, RefusesImpossibleRequests) {
  const ModelConfig config = release();
  EXPECT_THAT(plan_memory(config, {}, 0, 1).error().message,
              HasSubstr("context length: found 0, expected 1 to 1048576"));
  EXPECT_THAT(plan_memory(config, {}, 1048577, 1).error().message,
              HasSubstr("context length: found 1048577"));
  EXPECT_THAT(plan_memory(config, {}, 1, 0).error().message, HasSubstr("number of sequences: found 0"));
  EXPECT_THAT(plan_memory(config, {}, 1, 1'000'001).error().message,
              HasSubstr("number of sequences: found 1000001"));
  ASSERT_TRUE(plan_memory(config, {}, 1048576, 1'000'000));
}

TEST(MemoryPlan, FormatsBytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(890), "890 B");
  EXPECT_EQ(format_bytes(62.5), "62.5 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(3128928), "3.13 MB");
  EXPECT_EQ(format_bytes(999'960), "1.00 MB");
  EXPECT_EQ(format_bytes(510286023000.0), "510.3 GB");
  EXPECT_EQ(format_bytes(1.5e18), "1500.0 PB");
}

}  // namespace
}  // namespace hadal::checkpoint
