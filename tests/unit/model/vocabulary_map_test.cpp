#include "model/vocabulary_map.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace hadal::model {
namespace {

using nlohmann::json;

json read_json(const std::string& name) {
  std::ifstream in(std::string(HADAL_MODEL_DATA) + "/engram/" + name);
  EXPECT_TRUE(in.is_open()) << name;
  return json::parse(in);
}

TEST(NormalizeTokenText, FollowsTheRule) {
  const struct {
    std::string text;
    std::string expected;
  } cases[] = {
      {"", ""},
      {"Hello", "hello"},
      {" Hello ", "hello"},
      {"a \t\r\n b", "a b"},
      {" ", " "},
      {"\n", " "},
      {"\r\n\t  ", " "},
      {"\u3000", " "},  // NFKC makes it a space
      {"\u00a0\u2003", " "},
      {"\u0085", ""},  // White_Space that is not collapsed
      {"\u2028", ""},
      {"\u2029x\u000b", "x"},
      {"a\u0085 \u2028b", "a\u0085 \u2028b"},
      {"\u00c9cole", "ecole"},
      {"E\u0301COLE", "ecole"},
      {"\u0301", ""},
      {" \u0301", " "},
      {"\u212b", "a"},       // ANGSTROM SIGN
      {"\ufb01ne", "fine"},  // ligature
      {"\u2460", "1"},
      {"\uff21\uff42", "ab"},
      {"\u0130", "i"},                   // its dot is a mark
      {"\u03a3\u03a3", "\u03c3\u03c3"},  // no final-sigma rule
      {"\u1e9e", "\u00df"},
      {"\u00df", "\u00df"},
      {"\uac00", "\u1100\u1161"},                                      // decomposed Hangul
      {"\u0939\u093f\u0928\u094d\u0926\u0940", "\u0939\u0928\u0926"},  // spacing marks go too
      {"1\u20dd", "1"},                                                // enclosing mark
      {"\U0001d400", "a"},
      {"\U00010400", "\U00010428"},
      {"\ufdfa",
       "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064a\u0647 \u0648\u0633\u0644\u0645"},
      {"\u4f60\u597d", "\u4f60\u597d"},
      {std::string("a\0B", 3), std::string("a\0b", 3)},
      {"\xff\x80x", "\ufffd\ufffdx"},
      {"\xe4\xbd", "\ufffd\ufffd"},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(normalize_token_text(test.text), test.expected) << test.text;
  }
}

TEST(NormalizeTokenText, LongRunsOfMarksAreLinear) {
  std::string text = "a";
  for (int count = 0; count < 1'000'000; ++count) {
    text += "\u0301";
  }
  EXPECT_EQ(normalize_token_text(text + "B"), "ab");
}

/// A vocabulary in which a token's bytes and spelling are given.
class FakeTokenizer : public tokenizer::Tokenizer {
 public:
  struct Token {
    std::string text;      // as decoded
    std::string spelling;  // as in the vocabulary
  };
  explicit FakeTokenizer(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  void encode_plain(std::string_view, std::vector<int32_t>&) const override {}
  void encode_with_special(std::string_view, std::vector<int32_t>&) const override {}
  std::string decode(std::span<const int32_t> ids, bool) const override {
    return tokens_[static_cast<size_t>(ids[0])].text;
  }
  std::string_view token_bytes(int32_t id) const override { return tokens_[static_cast<size_t>(id)].text; }
  std::string_view token_spelling(int32_t id) const override {
    return tokens_[static_cast<size_t>(id)].spelling;
  }
  std::optional<int32_t> token_id(std::string_view) const override { return std::nullopt; }
  bool is_added_token(int32_t) const override { return false; }
  bool is_special_token(int32_t) const override { return false; }
  int32_t vocab_size() const override { return size_ > 0 ? size_ : static_cast<int32_t>(tokens_.size()); }
  int32_t size_ = 0;

 private:
  std::vector<Token> tokens_;
};

TEST(VocabularyMap, TokensThatReadAlikeShareAnId) {
  const FakeTokenizer tokenizer({{"Hello", "Hello"},
                                 {" hello", "\u0120hello"},
                                 {"x", "x"},
                                 {"\ufffd", "\u00e5"},  // half a code point: told apart by spelling
                                 {"\ufffd", "\u00e6"},
                                 {"\u0301", "\u00cc\u0123"},  // nothing is left of it: told apart by text
                                 {"\u0302", "\u00cc\u0124"},
                                 {" ", "\u0120"},
                                 {"\n", "\u010a"},
                                 {"HE\u0301LLO\t", "x"}});
  const auto map = build_vocabulary_map(tokenizer);
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(*map, (std::vector<int32_t>{0, 0, 1, 2, 3, 4, 5, 6, 6, 0}));
}

TEST(VocabularyMap, RefusesAnAbsurdVocabulary) {
  FakeTokenizer tokenizer({});
  tokenizer.size_ = (1 << 24) + 1;
  const auto map = build_vocabulary_map(tokenizer);
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().code, ErrorCode::kUnsupported);
}

void expect_map(const std::string& tokenizer_file, const std::vector<int32_t>& expected) {
  const auto tokenizer = tokenizer::Tokenizer::load(tokenizer_file);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto map = build_vocabulary_map(**tokenizer);
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(*map, expected);
}

TEST(VocabularyMap, OfTheEmbeddedModel) {
  const auto expected = read_json("vocabulary_maps.json")["models/tiny"].get<std::vector<int32_t>>();
  EXPECT_EQ(*std::max_element(expected.begin(), expected.end()) + 1, 1599);
  expect_map(std::string(HADAL_MODELS) + "/tiny/tokenizer.json", expected);
}

TEST(VocabularyMap, OfTheSmallRandomCheckpoints) {
  const auto expected = read_json("vocabulary_maps.json")["reference"].get<std::vector<int32_t>>();
  EXPECT_EQ(*std::max_element(expected.begin(), expected.end()) + 1, 1639);
  expect_map(std::string(HADAL_MODEL_DATA) + "/engram/reference_tokenizer.json", expected);
}

TEST(VocabularyMap, OfTheRelease) {
#ifndef HADAL_REAL_TOKENIZER
  GTEST_SKIP() << "configure with -DHADAL_REAL_TOKENIZER=FILE to check the whole published map";
#else
  const auto tokenizer = tokenizer::Tokenizer::load(HADAL_REAL_TOKENIZER);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto begin = std::chrono::steady_clock::now();
  const auto map = build_vocabulary_map(**tokenizer);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(map) << map.error().message;
  RecordProperty("seconds", std::to_string(seconds.count()));
  ASSERT_EQ(map->size(), 129280U);
  EXPECT_EQ(*std::max_element(map->begin(), map->end()) + 1, 99092);
  const json release = read_json("release.json");
  for (const auto& [id, compressed] : release["token_map_sample"].items()) {
    EXPECT_EQ(map->at(std::stoul(id)), compressed.get<int32_t>()) << id;
  }
  // FNV-1a over the published map as little-endian int32.
  uint64_t hash = 0xcbf29ce484222325;
  for (const int32_t value : *map) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ (static_cast<uint32_t>(value) >> shift & 0xff)) * 0x100000001b3;
    }
  }
  EXPECT_EQ(hash, 0x6b5cfa68a5f57ba6U);
#endif
}

}  // namespace
}  // namespace hadal::model
