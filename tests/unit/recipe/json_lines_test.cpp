// The JSON-lines driver: whatever a line is, there is one JSON object in answer.

#include "recipe/json_lines.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace hadal::recipe {
namespace {

using nlohmann::json;

json answer(std::string_view line) {
  const std::string text = render_line(line, TokenizerSet{});
  EXPECT_TRUE(json::accept(text)) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  return json::parse(text, nullptr, false);
}

TEST(JsonLines, BadLinesAreAnsweredWithErrors) {
  const std::string_view lines[] = {
      "",
      "x",
      "null",
      "5",
      "[]",
      "{}",
      R"({"id":5})",
      R"({"id":"a"})",
      R"({"id":"a","protocol":"none","request":{}})",
      R"({"id":"a","protocol":"chat"})",
      R"({"id":"a","protocol":"chat","request_text":5})",
      R"({"id":"a","protocol":"chat","request":{},"options":5})",
      R"({"id":"a","protocol":"chat","request":{},"options":{"reasoning_content_behavior":"Maybe"}})",
      R"({"id":"a","protocol":"chat","request":{},"version":"v5"})",
      R"({"id":"a","messages":5,"settings":{}})",
      R"({"id":"a","messages":[{"role":"x"}],"version":"v41","settings":{}})",
      R"({"id":"a","messages":[{"role":"user"}],"version":"v9","settings":{}})",
      "{\"id\":\"\xFF\"}",
      R"({"id":"a","protocol":"chat","request":{"model":"DeepSeek-V4.1-Flash","messages":[{"role":"user","content":"x"}]},"prompt_tokens":-1,"context_limit":5})"};
  for (const std::string_view line : lines) {
    const json result = answer(line);
    EXPECT_TRUE(result.is_object() && result.contains("id") && result.contains("error"))
        << line << " -> " << result;
  }
  EXPECT_EQ(answer(R"({"id":"a"})")["id"], "a");
  EXPECT_TRUE(answer("{}")["id"].is_null());
}

TEST(JsonLines, DeepLinesAreRefused) {
  EXPECT_TRUE(answer(std::string(100'000, '[')).contains("error"));
  EXPECT_TRUE(answer("{\"id\":\"a\",\"schema\":" + std::string(10'000, '[') + std::string(10'000, ']') + "}")
                  .contains("error"));
}

TEST(JsonLines, RangesAreCountedInCodePoints) {
  const json result = answer(
      R"({"id":"a","protocol":"chat","version":"v41","request":{"model":"DeepSeek-V4.1-Flash","thinking":{"type":"disabled"},"messages":[{"role":"user","content":"日本😀"}]}})");
  ASSERT_TRUE(result.contains("result")) << result;
  EXPECT_EQ(result["result"]["prompt"], "<｜begin▁of▁sentence｜><｜User｜>日本😀<｜Assistant｜></think>");
  EXPECT_EQ(result["result"]["special_ranges"], (json{{0, 21}, {21, 29}, {32, 45}, {45, 53}}));
  EXPECT_FALSE(result["result"].contains("token_ids") && result["result"]["token_ids"].is_array());
}

}  // namespace
}  // namespace hadal::recipe
