// Values that are not JSON become JSON, whatever they are.

#include "recipe/parse/raw_value.h"

#include <random>

#include <gtest/gtest.h>

#include "recipe/prepared_request.h"

namespace hadal::recipe {
namespace {

std::string text_of(PieceQueue& queue) {
  std::string text;
  queue.cut();
  for (const Piece& piece : queue.take()) {
    text += piece.text;
  }
  return text;
}

std::string repaired(std::string_view value, bool* changed = nullptr) {
  UnitBuilder builder;
  builder.add_text(value);
  builder.finish();
  PieceQueue queue;
  queue.add(builder.take());
  RawValue raw(queue);
  while (!queue.at_end()) {
    const char byte = queue.byte();
    queue.advance();
    raw.feed(byte);
  }
  raw.finish();
  if (changed != nullptr) {
    *changed = raw.repaired();
  }
  return text_of(queue);
}

TEST(RawValue, PassesJsonOnAsItIs) {
  for (const std::string_view value :
       {"1", " -0.5e-3 ", "true", "null", "\"a\\n\\u00e9\\ud83d\\ude00\"", "[]", "{}",
        "[1, [2], {\"k\": \"v\"}]", "{\"a\": {\"b\": [true, false, null]}, \"c\": \"\\\\\"}",
        "[1.50,1E+5 , 0]\n", "\"\"", "{ } ", "[ [ ] ]"}) {
    bool changed = true;
    EXPECT_EQ(repaired(value, &changed), value);
    EXPECT_FALSE(changed) << value;
  }
}

TEST(RawValue, RepairsTheRest) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "null"},
      {"  ", "null"},
      {"hello", R"("hello")"},
      {"tru", R"("tru")"},
      {"1.", R"("1.")"},
      {"01", R"("01")"},
      {"- 1", R"("- 1")"},
      {"1 2", R"("1 2")"},
      {"say \"hi\"", R"("say \"hi\"")"},
      {R"("abc" def)", R"("abc\" def")"},
      {R"("abc)", R"("abc")"},
      {R"("a\)", R"("a\\")"},
      {R"("a\q")", R"("a\\q")"},
      {R"("a\u12")", R"("a\\u12")"},
      {R"("\ud83dx")", R"("\\ud83dx")"},
      {R"("\ud83d\n")", R"("\\ud83d\n")"},
      {R"("\udc00")", R"("\\udc00")"},
      {R"("\ud83d\ud83d\ude00")", R"("\\ud83d\ud83d\ude00")"},
      {"\"a\nb\"", R"("a\nb")"},
      {"[1, 2", "[1, 2]"},
      {"[1,", "[1]"},
      {"[1,]", "[1]"},
      {"[1, x]", R"([1, "x]"])"},
      {"[1 2]", R"([1 , "2]"])"},
      {"[1]2", R"([1, "]2"])"},
      {"[]2", R"(["]2"])"},
      {"{}2", R"({"}2": null})"},
      {R"({"a": 1} and more)", R"({"a": 1, "} and more": null})"},
      {R"({"a": 1,})", R"({"a": 1})"},
      {R"({"a": 1, "b"})", R"({"a": 1, "b": "}"})"},
      {R"({"a")", R"({"a": null})"},
      {R"({"a":)", R"({"a":null})"},
      {R"({"a": tru)", R"({"a": "tru"})"},
      {R"({"a)", R"({"a": null})"},
      {"{x: 1}", R"({"x: 1}": null})"},
      {"{'a': 1}", R"({"'a': 1}": null})"},
      {"[[[", "[[[]]]"},
      {"[1}", R"([1, "}"])"},
      {"[tru, 1]", R"(["tru, 1]"])"},
  };
  for (const auto& [value, expected] : cases) {
    bool changed = false;
    EXPECT_EQ(repaired(value, &changed), expected) << value;
    EXPECT_TRUE(changed) << value;
    EXPECT_TRUE(Json::accept(expected)) << expected;
  }
}

TEST(RawValue, NestsNoDeeperThanItsLimit) {
  const std::string deep(RawValue::kMaxDepth, '[');
  EXPECT_EQ(repaired(deep), deep + std::string(RawValue::kMaxDepth, ']'));
  const std::string deeper = repaired(deep + "[1");
  EXPECT_TRUE(Json::accept(deeper));
  EXPECT_NE(deeper.find("\"[1\""), std::string::npos);
}

TEST(RawValue, WhateverItReadsIsJson) {
  // Letters of JSON in any order are mostly not JSON; all of them must come out as JSON, nothing lost.
  constexpr std::string_view kLetters = "{}[]\",:\\ute0-19.x \n";
  std::mt19937 random(20261201);
  for (int round = 0; round < 200'000; ++round) {
    std::string value;
    for (size_t size = random() % 14; size > 0; --size) {
      value.push_back(kLetters[random() % kLetters.size()]);
    }
    bool changed = false;
    const std::string text = repaired(value, &changed);
    ASSERT_TRUE(Json::accept(text)) << value << " -> " << text;
    ASSERT_EQ(changed, text != value) << value << " -> " << text;
    ASSERT_EQ(changed, !Json::accept(value)) << value << " -> " << text;
  }
}

}  // namespace
}  // namespace hadal::recipe
