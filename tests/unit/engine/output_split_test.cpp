#include "engine/output_split.h"

#include <gtest/gtest.h>

namespace hadal::engine {
namespace {

TEST(SplitOutput, GivesOneTokenAtATimeWithTheUsageSoFar) {
  Output output;
  output.tokens = {{4, -1.0F, {}}, {5, -2.0F, {{5, -2.0F}}}, {6, -3.0F, {}}};
  output.usage = {.prompt_tokens = 7, .cached_tokens = 2, .completion_tokens = 13};
  output.finish = FinishReason::kStop;
  const auto parts = split_output(output);
  ASSERT_EQ(parts.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(parts[i].tokens.size(), 1U);
    EXPECT_EQ(parts[i].tokens[0].token, static_cast<int32_t>(4 + i));
    EXPECT_EQ(parts[i].usage.prompt_tokens, 7);
    EXPECT_EQ(parts[i].usage.cached_tokens, 2);
    EXPECT_EQ(parts[i].usage.completion_tokens, static_cast<int64_t>(11 + i));
    EXPECT_EQ(parts[i].finish, i == 2 ? std::optional(FinishReason::kStop) : std::nullopt);
  }
  EXPECT_EQ(parts[1].tokens[0].top.size(), 1U);
}

TEST(SplitOutput, LeavesShortOutputsAlone) {
  Output failed;
  failed.finish = FinishReason::kError;
  failed.error = Error{ErrorCode::kIo, "no disk"};
  const auto parts = split_output(failed);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].finish, FinishReason::kError);
  EXPECT_EQ(parts[0].error->message, "no disk");
}

}  // namespace
}  // namespace hadal::engine
