// JSON Schemas that come with requests: checks, patterns, references, the strict form.

#include <gtest/gtest.h>

#include "recipe/json_text.h"
#include "recipe/schema/check.h"
#include "recipe/schema/regex_syntax.h"
#include "recipe/schema/strict.h"

namespace hadal::recipe {
namespace {

class Schema {
 public:
  explicit Schema(std::string text) : text_(std::move(text)) {
    const auto value = read_json(text_, arena_);
    EXPECT_TRUE(value) << text_.substr(0, 100);
    value_ = value ? *value : JsonValue();
  }
  std::string error() const {
    const auto checked = check_schema(value_);
    return checked ? "" : checked.error().message;
  }
  std::string strict() {
    const auto schema = strict_tool_parameters(&value_, arena_);
    return schema ? json_text(*schema) : "ERROR " + schema.error().message;
  }

 private:
  std::string text_;
  JsonArena arena_;
  JsonValue value_;
};

std::string error_of(const std::string& text) {
  return Schema(text).error();
}

TEST(SchemaCheck, TakesSchemas) {
  for (
      const char* text :
      {"true", "{}", R"({"type":["string","null"],"pattern":"^a","enum":[1,1.5,"x"]})",
       R"({"$defs":{"a":{"type":"object"}},"$ref":"#/$defs/a"})",
       R"({"anyOf":[{"$ref":"#"}],"unknown":{"type":5}})",
       R"({"$schema":"http://json-schema.org/draft-07/schema#","items":[{},true],"dependencies":{"a":["b"]}})",
       R"({"$id":"https://e.x/s","$defs":{"n":{"$id":"n","$anchor":"here","type":"number"}},"$ref":"n#here"})"}) {
    EXPECT_EQ(error_of(text), "") << text;
  }
}

TEST(SchemaCheck, RefusesWhatIsNone) {
  for (const char* text :
       {"5", "[]", R"({"type":"strin"})", R"({"type":["string","string"]})", R"({"required":["a","a"]})",
        R"({"minLength":-1})", R"({"minLength":1.5})", R"({"multipleOf":0})", R"({"properties":[]})",
        R"({"properties":{"a":5}})", R"({"anyOf":[]})", R"({"pattern":"("})",
        R"({"patternProperties":{"[":{}}})", R"({"$ref":"#/$defs/none"})",
        R"({"$ref":"https://elsewhere.example/s"})", R"({"$ref":"#nowhere"})", R"({"$ref":"a b"})",
        R"({"uniqueItems":1})", R"({"enum":{}})"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
}

TEST(SchemaCheck, HugeSchemasTakeLinearTime) {
  std::string names = R"({"enum":[)";
  std::string refs = R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"anyOf":[)";
  std::string required = R"({"required":[)";
  for (int i = 0; i < 100'000; ++i) {
    const char* comma = i == 0 ? "" : ",";
    names += fmt::format(R"({}"value{}")", comma, i);
    refs += fmt::format(R"({}{{"$ref":"#/$defs/a"}})", comma);
    required += fmt::format(R"({}"k{}")", comma, i);
  }
  EXPECT_EQ(error_of(names + "]}"), "");
  EXPECT_EQ(error_of(refs + "]}"), "");
  EXPECT_EQ(error_of(required + "]}"), "");
  EXPECT_NE(error_of(required + R"(,"k7"]})"), "");

  std::string deep = "{}";
  for (int i = 0; i < 60; ++i) {
    deep = R"({"allOf":[)" + deep + "]}";
  }
  EXPECT_EQ(error_of(deep), "");

  std::string ids = R"({"$defs":{)";
  for (int i = 0; i < 2000; ++i) {
    ids += fmt::format(R"({}"d{}":{{"$id":"s{}"}})", i == 0 ? "" : ",", i, i);
  }
  EXPECT_NE(error_of(ids + "}}"), "") << "more ids than are looked up";
}

TEST(Regex, TellsPatternsFromText) {
  for (const char* pattern : {"",        "a",          "^a$",           "a|",
                              "|",       "(a)",        "(?:a)",         "(?=a)b",
                              "(?!a)",   "(?<=a)b",    "(?<n>a)\\k<n>", "a*",
                              "a+?",     "a{2}",       "a{2,}",         "a{2,3}?",
                              "[a-z]",   "[^\\d\\-]",  "[]a]",          "\\d\\w\\s\\b\\.",
                              "\\u0041", "\\u{1F600}", "\\x41",         "\\p{L}",
                              "\\cA",    "日本",       "[\\]]",         "(a|b)*c"}) {
    EXPECT_TRUE(is_regex(pattern)) << pattern;
  }
  for (const char* pattern : {"(", ")", "(a", "a)", "[", "[a", "*", "+a", "a{3,2}", "(?a", "(?<n>", "\\",
                              "[z-a]", "\\u{110000}", "(?<1>a)", "(?P<n>a", "a**", "[]"}) {
    EXPECT_FALSE(is_regex(pattern)) << pattern;
  }
}

TEST(Regex, HostilePatternsTakeLinearTime) {
  EXPECT_TRUE(is_regex(std::string(100'000, '(') + std::string(100'000, ')')));
  EXPECT_FALSE(is_regex(std::string(100'000, '(')));
  EXPECT_FALSE(is_regex(std::string(100'000, '[')));
  std::string nested = "a";
  for (int i = 0; i < 10'000; ++i) {
    nested = "(" + nested + "+)+";
    if (nested.size() > 200'000) {
      break;
    }
  }
  EXPECT_TRUE(is_regex(nested));
}

TEST(StrictSchema, HasOneForm) {
  EXPECT_EQ(
      Schema(
          R"({"title":"T","properties":{"b":{"maxLength":3,"pattern":"a","type":"string"}},"type":"object"})")
          .strict(),
      R"({"type":"object","properties":{"b":{"type":"string","pattern":"a"}},"additionalProperties":false,"required":["b"]})");
  EXPECT_TRUE(Schema(R"({"type":"string"})").strict().starts_with("ERROR"));
  EXPECT_TRUE(Schema(R"({"type":"object","properties":{"a":{}}})").strict().starts_with("ERROR"));
  EXPECT_TRUE(Schema(R"({"type":"object","properties":{"a":{"type":"string"}},"required":[]})")
                  .strict()
                  .starts_with("ERROR"));
  EXPECT_TRUE(Schema(R"({"type":"object","additionalProperties":true})").strict().starts_with("ERROR"));
}

TEST(StrictSchema, KeepsTheDefinitionsThatItUses) {
  const std::string strict =
      Schema(R"({"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"required":["a"],
                                        "$defs":{"n":{"type":"number","title":"x"}}})")
          .strict();
  EXPECT_NE(strict.find(R"("a":{"$ref":"#/$defs/n"})"), std::string::npos) << strict;
  EXPECT_NE(strict.find(R"("$defs":{"n":{"type":"number"}})"), std::string::npos) << strict;
  EXPECT_EQ(error_of(strict), "");
}

}  // namespace
}  // namespace hadal::recipe
