// The output parser: what becomes of output that a well-behaved model does not write. Nothing is lost but
// markup, and arguments of whole calls are valid JSON.

#include <gtest/gtest.h>

#include "output_support.h"

namespace hadal::recipe::testing {
namespace {

const Dsml kDsml{true};

std::string call_with(const std::string& parameters) {
  return kDsml.block(kDsml.invoke("f", parameters));
}

std::string arguments_of(const std::string& parameters) {
  const Parsed parsed = parse_text(tools(), call_with(parameters));
  EXPECT_EQ(parsed.calls.size(), 1U);
  EXPECT_TRUE(parsed.calls.at(0).complete);
  EXPECT_TRUE(Json::accept(parsed.calls.at(0).arguments)) << parsed.calls.at(0).arguments;
  return parsed.calls.at(0).arguments;
}

OutputFaults faults_of(const std::string& text) {
  OutputParser parser(tools(), nullptr);
  parser.push_text(text);
  parser.finish();
  return parser.faults();
}

TEST(MalformedOutput, TextBehindCallsIsContent) {
  const Parsed parsed = parse_text(tools(), call_with("") + "\n\ntail");
  EXPECT_EQ(parsed.content, "tail");
  EXPECT_EQ(parsed.order, "Tc");
  EXPECT_EQ(parse_text(tools(), call_with("") + "\n \n").content, "");
}

TEST(MalformedOutput, ASecondBlockIsMoreCalls) {
  EXPECT_EQ(parse_text(tools(), call_with("") + "\n\n" + call_with("")).calls.size(), 2U);
}

TEST(MalformedOutput, AMarkerWithoutACallIsText) {
  for (const std::string text : {"see <｜DSML｜x> and more", "<｜DSML｜ calls>\nno call",
                                 "<｜DSML｜ invoke nam=\"f\">\n</｜DSML｜ invoke>",
                                 "a\n\n<｜DSML｜ parameter name=\"a\" string=\"true\"> file.",
                                 "<｜DSML｜<｜DSML｜", "<｜DSML｜ invoke>x"}) {
    const Parsed parsed = parse_text(tools(), text);
    EXPECT_EQ(parsed.calls.size(), 0U);
    EXPECT_EQ(parsed.content + (text.ends_with("｜") ? "<｜DSML｜" : ""), text);
  }
  EXPECT_EQ(faults_of("see <｜DSML｜x> and <｜DSML｜y>").stray_markers, 2U);
  EXPECT_EQ(parse_text(thinking_tools(), "a <｜DSML｜x b</think>c").reasoning, "a <｜DSML｜x b");
}

TEST(MalformedOutput, ACallBehindAStrayMarkerIsACall) {
  const Parsed parsed = parse_text(tools(), "<｜DSML｜ says " + call_with(""));
  EXPECT_EQ(parsed.content, "<｜DSML｜ says ");
  EXPECT_EQ(parsed.calls.size(), 1U);
}

TEST(MalformedOutput, TextBetweenCallsIsContent) {
  const Parsed parsed = parse_text(tools(), kDsml.block(kDsml.invoke("a") + "junk" + kDsml.invoke("b")));
  EXPECT_EQ(parsed.content, "junk");
  EXPECT_EQ(parsed.order, "TcT");
}

TEST(MalformedOutput, TextWhereACallIsForcedIsContent) {
  ParserSettings settings = tools();
  settings.options.starts_in_tool_calls = true;
  EXPECT_EQ(parse_text(settings, "\nplain text").content, "plain text");
}

TEST(MalformedOutput, MissingEndsOfTagsEndWithTheNextTag) {
  const std::string begin = kDsml.open() + "<｜DSML｜ invoke name=\"a\">\n";
  const std::string parameter = "<｜DSML｜ parameter name=\"k\" string=\"true\">v";
  const std::vector<ParsedCall> one = {{"a", R"({"k": "v"})"}};
  EXPECT_EQ(parse_text(tools(), begin + parameter + "</｜DSML｜ invoke>\n" + kDsml.close()).calls, one);
  EXPECT_EQ(parse_text(tools(), begin + parameter + kDsml.close()).calls, one);
  EXPECT_EQ(parse_text(tools(), begin + parameter + "</｜DSML｜ parameter>\n" + kDsml.close()).calls, one);
  EXPECT_EQ(parse_text(tools(), begin + kDsml.invoke("b") + kDsml.close()).calls,
            (std::vector<ParsedCall>{{"a", "{}"}, {"b", "{}"}}));
}

TEST(MalformedOutput, AnyWordMayNameTheBlock) {
  const std::string text = "<｜DSML｜function_calls>" + kDsml.invoke("a") + "</｜DSML｜function_calls>x";
  const Parsed parsed = parse_text(tools(), text);
  EXPECT_EQ(parsed.calls.size(), 1U);
  EXPECT_EQ(parsed.content, "x");
}

TEST(MalformedOutput, ACutOffCallIsMarked) {
  const std::string text = call_with(kDsml.parameter("key", "value"));
  const size_t end_of_name = text.find("\"f\"") + 3;
  const size_t end_of_call = text.find("</｜DSML｜ invoke>");
  const auto inside_character = [&](size_t size) {
    return (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80;
  };
  for (size_t size = end_of_name; size < end_of_call + 9; ++size) {
    if (inside_character(size)) {
      continue;
    }
    const Parsed parsed = parse_text(tools(), text.substr(0, size));
    ASSERT_EQ(parsed.calls.size(), 1U) << text.substr(0, size);
    EXPECT_FALSE(parsed.calls[0].complete);
    EXPECT_TRUE(parsed.cut_off);
    EXPECT_TRUE(std::string(R"({"key": "value"})").starts_with(parsed.calls[0].arguments) ||
                parsed.calls[0].arguments.starts_with(R"({"key": "value)"))
        << parsed.calls[0].arguments;
  }
  for (size_t size = std::string("<｜DSML｜").size(); size < end_of_name; ++size) {
    if (!inside_character(size)) {
      EXPECT_EQ(parse_text(tools(), text.substr(0, size)), Parsed()) << "markup of " << text.substr(0, size);
    }
  }
  EXPECT_EQ(faults_of(text.substr(0, end_of_call)).cut_calls, 1U);
}

TEST(MalformedOutput, KeysAreWholeAndEscaped) {
  EXPECT_EQ(arguments_of(kDsml.parameter("shipping address", "Paris") + kDsml.parameter(" lead", "1", false)),
            R"({"shipping address": "Paris", " lead": 1})");
  EXPECT_EQ(arguments_of(kDsml.parameter("a\\b\n", "1", false)), R"({"a\\b\n": 1})");
  EXPECT_EQ(arguments_of(kDsml.parameter("say \"hi\" now", "1", false)), R"({"say \"hi\" now": 1})");
  EXPECT_EQ(arguments_of(kDsml.parameter("", "1", false)), R"({"": 1})");
  EXPECT_EQ(arguments_of("<｜DSML｜ parameter name=bare string=\"true\">x</｜DSML｜ parameter>"),
            R"({"bare": "x"})");
  EXPECT_EQ(arguments_of("<｜DSML｜ parameter name=\"a\" type=\"x\" string=\"true\">x</｜DSML｜ parameter>"),
            R"({"a": "x"})");
}

TEST(MalformedOutput, AParameterGivenTwiceCountsOnce) {
  const std::string parameters = kDsml.parameter("a", "1", false) + kDsml.parameter("a", "2", false) +
                                 kDsml.parameter("a", "x") + kDsml.parameter("b", "3", false);
  EXPECT_EQ(arguments_of(parameters), R"({"a": 1, "b": 3})");
  EXPECT_EQ(faults_of(call_with(parameters)).repeated_keys, 2U);
}

TEST(MalformedOutput, ValuesWithoutAKnownKindAreWhatTheyLookLike) {
  const auto with = [](const std::string& attributes, const std::string& value) {
    return arguments_of("<｜DSML｜ parameter name=\"a\"" + attributes + ">" + value +
                        "</｜DSML｜ parameter>");
  };
  EXPECT_EQ(with("", "x"), R"({"a": "x"})");
  EXPECT_EQ(with("", "[1, 2]"), R"({"a": [1, 2]})");
  EXPECT_EQ(with(" string=\"maybe\"", "5"), R"({"a": 5})");
  EXPECT_EQ(with(" string=\"maybe\"", "5 apples"), R"({"a": "5 apples"})");
}

TEST(MalformedOutput, RawValuesThatAreNotJsonAreRepaired) {
  const auto raw = [](const std::string& value) { return arguments_of(kDsml.parameter("a", value, false)); };
  EXPECT_EQ(raw(""), R"({"a": null})");
  EXPECT_EQ(raw("{bad"), R"({"a": {"bad": null}})");
  EXPECT_EQ(raw("hello"), R"({"a": "hello"})");
  EXPECT_EQ(faults_of(call_with(kDsml.parameter("a", "hello", false))).repaired_values, 1U);
  EXPECT_EQ(faults_of(call_with(kDsml.parameter("a", "[true]", false))).repaired_values, 0U);
}

TEST(MalformedOutput, CallsInReasoningAreCalls) {
  const Parsed parsed = parse_text(thinking_tools(), "plan\n\n" + call_with("") + "</think>ok");
  EXPECT_EQ(parsed.reasoning, "plan");
  EXPECT_EQ(parsed.content, "ok");
  EXPECT_EQ(parsed.order, "rTc");
}

TEST(MalformedOutput, InvalidUtf8BecomesReplacements) {
  EXPECT_EQ(parse_text(tools(), "a\xFF\xC3(\xE2\x82 \xED\xA0\x80 \xF4\x90\x80\x80z").content,
            "a\xEF\xBF\xBD\xEF\xBF\xBD(\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD "
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz");
}

TEST(MalformedOutput, NoKindOfNestingIsAProblem) {
  const std::string deep(100'000, '[');
  const std::string arguments = arguments_of(kDsml.parameter("a", deep, false));
  EXPECT_GE(arguments.size(), deep.size());
  std::string nested;
  for (int level = 0; level < 2000; ++level) {
    nested += kDsml.open() + "<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"k\" string=\"true\">";
  }
  const Parsed parsed = parse_text(tools(), nested);
  EXPECT_EQ(parsed.calls.size(), 1U);
}

TEST(MalformedOutput, AMegabyteOfArgumentAndTenThousandCallsAreFine) {
  std::string value(1 << 20, 'x');
  value[5000] = '<';
  EXPECT_EQ(arguments_of(kDsml.parameter("a", value)).size(),
            value.size() + std::string(R"({"a": ""})").size());
  std::string invokes;
  for (int call = 0; call < 10'000; ++call) {
    invokes += kDsml.invoke("f", kDsml.parameter("a", "1", false));
  }
  EXPECT_EQ(parse_text(tools(), kDsml.block(invokes)).calls.size(), 10'000U);
  std::string parameters;
  for (int key = 0; key < 10'000; ++key) {
    parameters += kDsml.parameter(std::to_string(key), "", true);
  }
  EXPECT_EQ(parse_text(tools(), call_with(parameters)).calls.size(), 1U);
}

TEST(MalformedOutput, ALongRowOfMarkersTakesLinearTime) {
  // Each may be the begin of a call; a parser that goes back to the first again and again would not end here.
  for (const std::string& part :
       {std::string("<｜DSML｜ calls>\n"), std::string("<｜DSML｜ "), std::string("\n"),
        std::string("</think"), std::string("<｜DSML｜ invoke name=\"")}) {
    std::string text;
    while (text.size() < (1U << 20)) {
      text += part;
    }
    EXPECT_EQ(parse_text(thinking_tools(), text).calls.size(), 0U);
  }
}

}  // namespace
}  // namespace hadal::recipe::testing
