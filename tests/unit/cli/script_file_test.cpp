// How text of a script becomes pieces of token ids.

#include "cli/script_file.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal::cli {
namespace {

const tokenizer::Tokenizer& tiny_tokenizer() {
  static const auto tokenizer = *tokenizer::Tokenizer::load(HADAL_MODELS "/tiny/tokenizer.json");
  return *tokenizer;
}

std::string text_of(const std::vector<std::vector<int32_t>>& pieces) {
  std::string text;
  for (const auto& ids : pieces) {
    text += tiny_tokenizer().decode(ids);
  }
  return text;
}

TEST(ScriptPieces, EachHasItsOwnTokens) {
  const std::vector<std::string> pieces{"Hel", "lo", "", " wörld", "\n"};
  const auto ids = encode_pieces(pieces, tiny_tokenizer());
  ASSERT_EQ(ids.size(), pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::vector<int32_t> expected;
    tiny_tokenizer().encode_plain(pieces[i], expected);
    EXPECT_EQ(ids[i], expected) << i;
  }
  EXPECT_TRUE(encode_pieces({}, tiny_tokenizer()).empty());
}

TEST(ScriptPieces, ASpecialTokenIsOneForEveryCutAndComesWhenItIsComplete) {
  const std::string marked = "x｜DSML｜</think></think>y <think>a</thin> ｜DSML b<｜end▁of▁sentence｜>";
  std::vector<int32_t> whole;
  tiny_tokenizer().encode_with_special(marked, whole);
  const auto is_special = [](int32_t id) { return tiny_tokenizer().is_added_token(id); };
  std::vector<int32_t> expected;
  std::copy_if(whole.begin(), whole.end(), std::back_inserter(expected), is_special);
  ASSERT_GE(expected.size(), 4U);
  for (size_t first = 0; first <= marked.size(); ++first) {
    for (const size_t second :
         {first, std::min(first + 1, marked.size()), std::min(first + 9, marked.size())}) {
      const auto pieces = encode_pieces(
          {marked.substr(0, first), marked.substr(first, second - first), marked.substr(second)},
          tiny_tokenizer());
      std::vector<int32_t> special;
      for (const auto& ids : pieces) {
        std::copy_if(ids.begin(), ids.end(), std::back_inserter(special), is_special);
      }
      EXPECT_EQ(special, expected) << first << " " << second;
    }
  }
  const auto pieces = encode_pieces({"a</thi", "nk", ">b"}, tiny_tokenizer());
  EXPECT_EQ(tiny_tokenizer().decode(pieces[0]), "a");
  EXPECT_TRUE(pieces[1].empty());
  EXPECT_EQ(tiny_tokenizer().decode(pieces[2]), "</think>b");
  EXPECT_EQ(text_of(pieces), "a</think>b");
}

TEST(ScriptFile, ReadsEveryField) {
  const auto script = parse_script(
      "{\"pieces\": [\"a\"]}\r\n"
      "  \n"
      "{\"token_ids\": [[5, 6], []], \"finish\": \"length\", \"delay_ms\": 20, \"prompt_tokens\": 7}",
      "s", tiny_tokenizer());
  ASSERT_TRUE(script) << script.error().message;
  ASSERT_EQ(script->size(), 2U);
  EXPECT_EQ((*script)[0].finish, engine::FinishReason::kStop);
  EXPECT_EQ((*script)[0].prompt_tokens, std::nullopt);
  EXPECT_EQ((*script)[1].pieces, (std::vector<std::vector<int32_t>>{{5, 6}, {}}));
  EXPECT_EQ((*script)[1].finish, engine::FinishReason::kLength);
  EXPECT_EQ((*script)[1].delay, std::chrono::milliseconds(20));
  EXPECT_EQ((*script)[1].prompt_tokens, 7);
}

TEST(ScriptFile, NamesLineAndFieldOfAFault) {
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {"{\"pieces\": [\"a\", null]}", "s:2: pieces[1]: found null, expected a string"},
           {"{\"token_ids\": [[2048]]}",
            "s:2: token_ids[0][0]: found 2048, expected a whole number from 0 to 2047"},
           {"{\"pieces\": [], \"delay_ms\": 3600001}", "s:2: delay_ms: found 3600001"},
           {"{\"pieces\": [], \"more\": 1}", "s:2: more: unknown field"},
           {"nonsense", "s:2: not valid JSON"}}) {
    const auto script = parse_script("{\"pieces\": []}\n" + line, "s", tiny_tokenizer());
    ASSERT_FALSE(script) << line;
    EXPECT_THAT(script.error().message, testing::StartsWith(message));
  }
}

}  // namespace
}  // namespace hadal::cli
