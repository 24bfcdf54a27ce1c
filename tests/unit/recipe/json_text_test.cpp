// Reading and writing JSON as requests and prompts need it.

#include "recipe/json_text.h"

#include <gtest/gtest.h>

#include "recipe/json_value.h"

namespace hadal::recipe {
namespace {

std::string read_and_write(std::string_view text, JsonStyle style = JsonStyle::kCompact) {
  JsonArena arena;
  const auto value = read_json(text, arena);
  return value ? json_text(*value, style) : "ERROR " + value.error().message;
}

TEST(JsonReader, TakesWhatTheStandardTakes) {
  EXPECT_EQ(read_and_write(" \t\r\n[1 , -2.50,true,false,null,\"\",{},[]]\n"),
            R"([1,-2.5,true,false,null,"",{},[]])");
  EXPECT_EQ(read_and_write(R"({"b":1,"a":2,"":3})"), R"({"b":1,"a":2,"":3})");
  EXPECT_EQ(read_and_write(R"("\u0041\u00e9\ud83d\ude00\/\"\\\b\f\n\r\t\u0000")"),
            "\"Aé😀/\\\"\\\\\\b\\f\\n\\r\\t\\u0000\"");
  EXPECT_EQ(read_and_write("\"\x7F\u2028\""), "\"\x7F\u2028\"");
  EXPECT_EQ(read_and_write("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(read_and_write("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(read_and_write("18446744073709551616"), "1.8446744073709552e+19");
  EXPECT_EQ(read_and_write("1e-400"), "0.0");
}

TEST(JsonReader, OfARepeatedKeyTheFirstPlaceAndTheLastValueCount) {
  EXPECT_EQ(read_and_write(R"({"a":1,"b":2,"a":3,"b":[],"a":4})"), R"({"a":4,"b":[]})");
  std::string many = "{";
  for (int i = 0; i < 100'000; ++i) {
    many += fmt::format("{}\"k{}\":{}", i == 0 ? "" : ",", i % 50'000, i);
  }
  many += '}';
  JsonArena arena;
  const auto value = read_json(many, arena);
  ASSERT_TRUE(value);
  ASSERT_EQ(value->members().size(), 50'000U);
  EXPECT_EQ(value->members()[7].key, "k7");
  EXPECT_EQ(value->members()[7].value.as_uint(), 50'007U);
}

TEST(JsonReader, RefusesWhatTheStandardRefuses) {
  const std::string_view texts[] = {"",
                                    " ",
                                    "nul",
                                    "nulll",
                                    "True",
                                    "NaN",
                                    "Infinity",
                                    "-Infinity",
                                    "-",
                                    "+1",
                                    "01",
                                    "1.",
                                    ".5",
                                    "1e",
                                    "1e+",
                                    "0x10",
                                    "1e400",
                                    "-1e999",
                                    "[1,]",
                                    "[,1]",
                                    "[1 2]",
                                    "[",
                                    "]",
                                    "{\"a\"}",
                                    "{\"a\":}",
                                    "{\"a\":1,}",
                                    "{a:1}",
                                    "{'a':1}",
                                    "{\"a\":1",
                                    "\"",
                                    "\"\\\"",
                                    "\"\\x\"",
                                    "\"\\u12g4\"",
                                    "\"\\u123\"",
                                    "\"\n\"",
                                    "\"\t\"",
                                    "1 1",
                                    "{}{}",
                                    "[1]x",
                                    "\"\\ud800\"",
                                    "\"\\udc00\"",
                                    "\"\\ud800\\u0041\"",
                                    "\"\\ud800x\"",
                                    "\"\\udc00\\ud800\"",
                                    "\"\xC0\xAF\"",
                                    "\"\xED\xA0\x80\"",
                                    "\"\xF4\x90\x80\x80\"",
                                    "\"\xFF\"",
                                    "\"\xE2\x82\"",
                                    "\xEF\xBB\xBF{}",
                                    std::string_view("\"a\0b\"", 5),
                                    std::string_view("{}\0", 3),
                                    "/**/1",
                                    "{\"a\":1 /*x*/}"};
  for (const std::string_view text : texts) {
    EXPECT_TRUE(read_and_write(text).starts_with("ERROR ")) << text << " -> " << read_and_write(text);
  }
}

TEST(JsonReader, KeepsItsLimits) {
  JsonArena arena;
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(read_json(nested(127), arena));
  EXPECT_FALSE(read_json(nested(128), arena));
  EXPECT_FALSE(read_json(std::string(10'000'000, '['), arena));
  EXPECT_FALSE(read_json(std::string(10'000'000, '{'), arena));
  std::string mixed;
  for (int i = 0; i < 100'000; ++i) {
    mixed += "{\"a\":[";
  }
  EXPECT_FALSE(read_json(mixed, arena));

  EXPECT_TRUE(read_json("[1,2,3]", arena, {.max_bytes = 7}));
  EXPECT_FALSE(read_json("[1,2,3] ", arena, {.max_bytes = 7}));
  EXPECT_TRUE(read_json("[1,2,3]", arena, {.max_values = 4}));
  EXPECT_FALSE(read_json("[1,2,3,4]", arena, {.max_values = 4}));
}

TEST(JsonReader, ErrorsNameTheByte) {
  EXPECT_NE(read_and_write("{\"a\":NaN}").find("5"), std::string::npos) << read_and_write("{\"a\":NaN}");
}

TEST(Utf8, FindsTheFirstByteThatIsWrong) {
  EXPECT_EQ(find_invalid_utf8("aé日😀\x7F"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("ab\x80"), 2U);
  EXPECT_EQ(find_invalid_utf8("ab\xE6\x97"), 2U);
  EXPECT_EQ(find_invalid_utf8("0123456789abcdef\xC1\x81"), 16U);
  EXPECT_EQ(find_invalid_utf8("\xED\x9F\xBF"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("\xED\xA0\x80"), 0U);
}

TEST(JsonWriter, NumbersOfEachStyle) {
  struct Case {
    double value;
    const char* v41;
    const char* v4;
  };
  const Case cases[] = {{1, "1.0", "1.0"},
                        {-0.0, "-0.0", "-0.0"},
                        {100000, "100000.0", "100000.0"},
                        {1e15, "1000000000000000.0", "1000000000000000.0"},
                        {1e16, "1e+16", "1e+16"},
                        {1.5e300, "1.5e+300", "1.5e+300"},
                        {0.0001, "0.0001", "0.0001"},
                        {0.00001, "1e-05", "0.00001"},
                        {0.000012, "1.2e-05", "0.000012"},
                        {1e-7, "1e-07", "1e-7"},
                        {5e-324, "5e-324", "5e-324"},
                        {0.1, "0.1", "0.1"}};
  for (const Case& c : cases) {
    std::string v41;
    append_json_double(v41, c.value, JsonStyle::kPromptV41);
    EXPECT_EQ(v41, c.v41);
    std::string v4;
    append_json_double(v4, c.value, JsonStyle::kPromptV4);
    EXPECT_EQ(v4, c.v4);
  }
}

TEST(JsonWriter, StylesOfLists) {
  const char* text = R"({"a":[1,2,{"b":"é/"}],"c":{}})";
  EXPECT_EQ(read_and_write(text, JsonStyle::kCompact), text);
  EXPECT_EQ(read_and_write(text, JsonStyle::kPromptV41), R"({"a": [1, 2, {"b": "é/"}], "c": {}})");
}

TEST(JsonWriter, EscapingGoesPieceByPiece) {
  std::string all;
  for (int c = 0; c < 128; ++c) {
    all += static_cast<char>(c);
  }
  std::string whole;
  append_json_escaped(whole, all);
  std::string pieces;
  for (const char c : all) {
    append_json_escaped(pieces, std::string_view(&c, 1));
  }
  EXPECT_EQ(whole, pieces);
  EXPECT_NE(whole.find("\\u001f"), std::string::npos);
  EXPECT_NE(whole.find("\\b\\t\\n\\u000b\\f\\r"), std::string::npos);
  EXPECT_EQ(read_and_write("\"" + whole + "\""), "\"" + whole + "\"");
}

}  // namespace
}  // namespace hadal::recipe
