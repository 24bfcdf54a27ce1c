// Token ids and texts against Hugging Face `tokenizers` (tests/data/tokenizer/make_cases.py), and what must
// hold for any text.

#include "tokenizer/tokenizer.h"

#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tokenizer/json_lines.h"

namespace hadal::tokenizer {
namespace {

std::shared_ptr<const Tokenizer> tiny() {
  static const auto loaded = Tokenizer::load(std::string(HADAL_MODELS) + "/tiny/tokenizer.json");
  EXPECT_TRUE(loaded) << loaded.error().message;
  return *loaded;
}

std::vector<int32_t> plain(std::string_view text) {
  std::vector<int32_t> ids;
  tiny()->encode_plain(text, ids);
  return ids;
}

std::vector<int32_t> with_special(std::string_view text) {
  std::vector<int32_t> ids;
  tiny()->encode_with_special(text, ids);
  return ids;
}

std::vector<nlohmann::json> cases() {
  std::vector<nlohmann::json> all;
  std::ifstream file(std::string(HADAL_TEST_DATA) + "/tokenizer/cases.jsonl");
  for (std::string line; std::getline(file, line);) {
    all.push_back(nlohmann::json::parse(line));
  }
  EXPECT_GT(all.size(), 400U);
  return all;
}

TEST(Tokenizer, GivesTheIdsOfTheReferenceLibrary) {
  for (const auto& c : cases()) {
    const auto text = c["text"].get<std::string>();
    EXPECT_EQ(with_special(text), c["ids"].get<std::vector<int32_t>>()) << c["id"];
    EXPECT_EQ(plain(text), c["plain"].get<std::vector<int32_t>>()) << c["id"];
  }
}

TEST(Tokenizer, DecodesAsTheReferenceLibrary) {
  for (const auto& c : cases()) {
    EXPECT_EQ(tiny()->decode(c["ids"].get<std::vector<int32_t>>()), c["decoded"].get<std::string>())
        << c["id"];
  }
}

TEST(Tokenizer, EncodingAppendsAndLeavesWhatWasThere) {
  std::vector<int32_t> ids = {7};
  tiny()->encode_plain("Hello", ids);
  EXPECT_EQ(ids.front(), 7);
  EXPECT_EQ(std::vector<int32_t>(ids.begin() + 1, ids.end()), plain("Hello"));
}

TEST(Tokenizer, PlainTextThatSpellsATokenNeverBecomesIt) {
  for (int32_t id = 0; id < tiny()->vocab_size(); ++id) {
    if (!tiny()->is_added_token(id)) {
      continue;
    }
    const std::string spelling(tiny()->token_bytes(id));
    EXPECT_EQ(with_special(spelling), std::vector<int32_t>{id}) << spelling;
    for (const int32_t part : plain("a" + spelling + "b")) {
      EXPECT_FALSE(tiny()->is_added_token(part)) << spelling;
    }
  }
}

TEST(Tokenizer, ValidTextComesBack) {
  std::mt19937 random(3);
  const std::string pieces[] = {"a",         " ", "\n", "Zebra",        "é", "中", "文", "😀",
                                "e\xcc\x81", "1", "'s", "\xef\xbf\xbd", "\t"};
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (size_t i = random() % 60; i > 0; --i) {
      text += pieces[random() % std::size(pieces)];
    }
    EXPECT_EQ(tiny()->decode(plain(text)), text);
  }
}

TEST(Tokenizer, InvalidUtf8IsReadAsReplacementCharacters) {
  EXPECT_EQ(plain("a\xff"
                  "b"),
            plain("a\xef\xbf\xbd"
                  "b"));
  EXPECT_EQ(plain("\xe4\xb8"), plain("\xef\xbf\xbd"));  // a cut-off character is one invalid part
  EXPECT_EQ(plain("\xed\xa0\x80").empty(), false);      // a surrogate
  EXPECT_EQ(with_special("x\xc0\xaf"), with_special("x\xef\xbf\xbd\xef\xbf\xbd"));
}

TEST(IncrementalDecoder, JoinsToTheWholeTextAndNeverCutsACharacter) {
  for (const auto& c : cases()) {
    const auto ids = c["ids"].get<std::vector<int32_t>>();
    IncrementalDecoder decoder(tiny());
    std::string joined;
    for (const int32_t id : ids) {
      const std::string piece = decoder.push(id);
      // Every piece is valid UTF-8 of its own.
      EXPECT_NO_THROW((void)nlohmann::json(piece).dump()) << c["id"];
      joined += piece;
    }
    joined += decoder.finish();
    EXPECT_EQ(joined, tiny()->decode(ids)) << c["id"];
  }
}

TEST(IncrementalDecoder, ShowsAnUnfinishedCharacterAtTheEndAsReplacement) {
  const auto ids = plain("😀");
  ASSERT_GT(ids.size(), 1U);
  IncrementalDecoder decoder(tiny());
  std::string text;
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    text += decoder.push(ids[i]);
  }
  EXPECT_EQ(text, "");
  EXPECT_EQ(decoder.finish(), "\xef\xbf\xbd");
}

TEST(Tokenizer, UnknownIdsGiveNothing) {
  EXPECT_EQ(tiny()->decode(std::vector<int32_t>{-1, 1 << 30, tiny()->vocab_size()}), "");
  EXPECT_EQ(tiny()->token_bytes(-5), "");
  EXPECT_FALSE(tiny()->token_id("no such token"));
}

TEST(Tokenizer, LongRunsKeepTheirIds) {
  // What a quadratic or recursive merge would not survive; the ids of a run are those of its reference
  // prefix.
  for (const std::string unit : {"a", "\xcc\x81", " ", "1", "中", "ab"}) {
    std::string text;
    while (text.size() < 300'000) {
      text += unit;
    }
    EXPECT_EQ(tiny()->decode(plain(text)), text);
  }
}

TEST(TokenizerLines, AddIdsAndTextAndReportBadLines) {
  EXPECT_EQ(tokenize_line(*tiny(), R"({"id":1,"text":"Hello"})", false),
            nlohmann::ordered_json({{"id", 1}, {"text", "Hello"}, {"ids", plain("Hello")}}).dump());
  for (const char* bad :
       {"", "{", "[]", R"({"id":4})", R"({"id":4,"text":5})", "{\"id\":4,\"text\":\"\xff\"}"}) {
    const auto answer = nlohmann::json::parse(tokenize_line(*tiny(), bad, false));
    EXPECT_TRUE(answer.contains("error")) << bad;
  }
  const auto back = nlohmann::json::parse(detokenize_line(*tiny(), R"({"id":"x","ids":[668,3]})"));
  EXPECT_EQ(back["text"], tiny()->decode(std::vector<int32_t>{668, 3}));
  EXPECT_TRUE(nlohmann::json::parse(detokenize_line(*tiny(), R"({"id":"x","ids":[1.5]})")).contains("error"));
}

}  // namespace
}  // namespace hadal::tokenizer
