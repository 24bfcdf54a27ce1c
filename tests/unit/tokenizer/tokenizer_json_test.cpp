// Damaged and foreign tokenizer.json files end in an error that says where, never in a crash.

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tokenizer/tokenizer.h"

namespace hadal::tokenizer {
namespace {

nlohmann::json tiny_json() {
  static const nlohmann::json loaded = [] {
    std::ifstream file(std::string(HADAL_MODELS) + "/tiny/tokenizer.json");
    return nlohmann::json::parse(file);
  }();
  return loaded;
}

/// The error of the tiny tokenizer after `change`; empty if it is accepted.
template <class Change>
std::string error_after(Change&& change) {
  nlohmann::json json = tiny_json();
  change(json);
  const auto parsed = Tokenizer::parse(json.dump(), "file.json");
  return parsed ? std::string() : parsed.error().message;
}

TEST(TokenizerJson, TheUnchangedFileIsAccepted) {
  EXPECT_EQ(error_after([](auto&) {}), "");
}

TEST(TokenizerJson, ErrorsNameTheFile) {
  for (const char* text :
       {"", "{", "[]", "null", "{}", R"({"model":5})", "\xff", "{\"model\":{\"type\":\"BPE\"}}"}) {
    const auto parsed = Tokenizer::parse(text, "file.json");
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find("file.json"), std::string::npos) << parsed.error().message;
  }
}

TEST(TokenizerJson, OtherKindsAreRefusedByName) {
  EXPECT_NE(error_after([](auto& j) { j["model"]["type"] = "Unigram"; }).find("Unigram"), std::string::npos);
  EXPECT_NE(
      error_after([](auto& j) { j["normalizer"] = {{"type", "BertNormalizer"}}; }).find("BertNormalizer"),
      std::string::npos);
  EXPECT_NE(error_after([](auto& j) { j["pre_tokenizer"] = {{"type", "Metaspace"}}; }).find("Metaspace"),
            std::string::npos);
  EXPECT_NE(error_after([](auto& j) { j["decoder"] = {{"type", "WordPiece"}}; }).find("WordPiece"),
            std::string::npos);
}

TEST(TokenizerJson, DamagedVocabulariesAreRefused) {
  EXPECT_NE(error_after([](auto& j) { j["model"]["vocab"]["a"] = -1; }), "");
  EXPECT_NE(error_after([](auto& j) { j["model"]["vocab"]["a"] = 2147483648U; }), "");
  EXPECT_NE(error_after([](auto& j) { j["model"]["vocab"]["a"] = "x"; }), "");
  EXPECT_NE(error_after([](auto& j) { j["model"]["vocab"]["a"] = j["model"]["vocab"]["b"]; }), "");
  EXPECT_NE(error_after([](auto& j) { j["model"]["vocab"].erase("a"); }), "");
  EXPECT_NE(error_after([](auto& j) { j["model"]["vocab"] = nlohmann::json::array(); }), "");
}

TEST(TokenizerJson, DamagedMergesAreRefused) {
  EXPECT_NE(error_after([](auto& j) { j["model"]["merges"].push_back("zzzz qqqq"); }), "");
  EXPECT_NE(error_after([](auto& j) { j["model"]["merges"].push_back(5); }), "");
  EXPECT_NE(error_after([](auto& j) { j["model"]["merges"].push_back("alone"); }), "");
}

TEST(TokenizerJson, DamagedAddedTokensAreRefused) {
  EXPECT_NE(error_after([](auto& j) { j["added_tokens"][0]["id"] = -3; }), "");
  EXPECT_NE(error_after([](auto& j) { j["added_tokens"][0]["content"] = ""; }), "");
  EXPECT_NE(error_after([](auto& j) { j["added_tokens"][0].erase("content"); }), "");
  EXPECT_NE(error_after([](auto& j) { j["added_tokens"] = 1; }), "");
}

TEST(TokenizerJson, AnInvalidPatternIsRefused) {
  const auto broken = [](auto& j) {
    for (auto& part : j["pre_tokenizer"]["pretokenizers"]) {
      if (part["type"] == "Split") {
        part["pattern"] = {{"Regex", "(((((["}};
        return;
      }
    }
  };
  EXPECT_NE(error_after(broken), "");
}

}  // namespace
}  // namespace hadal::tokenizer
