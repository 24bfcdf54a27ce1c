// However output is cut, what comes out is the same.

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "output_support.h"

namespace hadal::recipe::testing {
namespace {

const Dsml kDsml{true};
const Dsml kV4{false};

ParserSettings with(ParserSettings settings, bool json, std::vector<std::string> stops = {}) {
  settings.options.parse_json_output = json;
  settings.options.stop_sequences = std::move(stops);
  return settings;
}

std::vector<ParserSettings> all_settings() {
  std::vector<ParserSettings> all;
  for (const bool json : {false, true}) {
    for (const std::vector<std::string>& stops :
         {std::vector<std::string>{}, std::vector<std::string>{"STOP", "\n\n"},
          std::vector<std::string>{"}", "é"}}) {
      all.push_back(with(tools(), json, stops));
      all.push_back(with(thinking_tools(), json, stops));
    }
  }
  ParserSettings forced = tools();
  forced.options.starts_in_tool_calls = true;
  all.push_back(forced);
  ParserSettings no_tools = thinking_tools();
  no_tools.options.parse_tool_calls = false;
  all.push_back(no_tools);
  ParserSettings as_reference = thinking_tools();  // cuts matter there in JSON output mode only
  as_reference.as_reference = true;
  all.push_back(as_reference);
  return all;
}

std::vector<std::string> outputs() {
  const std::string odd = "line \"1\"\n\\ é日😀</｜DSM x <｜DSML｜ y";
  return {
      "\n\nthink\n\n</think>\n\nanswer é日😀\n",
      "plan\n</think>\n\nI call.\n\n" +
          kDsml.block(kDsml.invoke(
                          "get", kDsml.parameter("a", odd) + kDsml.parameter("b", "[1, {\"k\": 2}]", false)) +
                      kDsml.invoke("put")) +
          "\n",
      "a\n\n" + kV4.block(kV4.invoke("f", kV4.parameter("say \"x\" =\"y\" now", "1", false))) +
          "\n\ntail\n\n" + kV4.block(kV4.invoke("g")),
      "text STOSTOP \n more",
      "Here: ```json\n{\"a\": \"x\n```y}\"}\n```\nbye ```\n[1]\n```",
      "Sure {\"a\": [1, 2]} and\n\n" + kDsml.block(kDsml.invoke("f")),
      "<｜DSML｜ calls>\n <｜DSML｜ invoke nam=\"f\"> <｜DSML｜x </｜DSML｜ calls></think>\n",
      kDsml.open() +
          "<｜DSML｜ invoke name=\"f\"> junk <｜DSML｜ parameter name=\"a\">{\"q\": tru</｜DSML｜ "
          "parameter>" +
          "<｜DSML｜ parameter name=\"a\" string=\"true\">dropped</｜DSML｜ invoke>\n \n junk",
      kDsml.open() + "<｜DSML｜ invoke name=\"f\">" + kDsml.parameter("n", "{\"a\": 1,} x \\ud83d", false) +
          "</｜DS",
      "<｜DSML｜<｜DSML｜ calls>\n\n<</｜DSML｜</thi</think",
      "\xF0\x9F\x98 \xFF a\xC3",
      "\n\n\n\n<",
  };
}

void expect_same(const ParserSettings& settings, std::string_view text, const std::vector<size_t>& offsets,
                 const Parsed& whole) {
  EXPECT_EQ(parse_pieces(settings, cut(text, offsets)), whole)
      << Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace) << " cut at "
      << ::testing::PrintToString(offsets);
}

TEST(OutputSplits, OneCutAnywhereChangesNothing) {
  for (const ParserSettings& settings : all_settings()) {
    for (const std::string& text : outputs()) {
      const Parsed whole = parse_text(settings, text);
      for (size_t at = 0; at <= text.size(); ++at) {
        expect_same(settings, text, {at}, whole);
      }
    }
  }
}

TEST(OutputSplits, ByteByByteChangesNothing) {
  for (const ParserSettings& settings : all_settings()) {
    for (const std::string& text : outputs()) {
      std::vector<size_t> offsets;
      for (size_t at = 1; at < text.size(); ++at) {
        offsets.push_back(at);
      }
      expect_same(settings, text, offsets, parse_text(settings, text));
    }
  }
}

TEST(OutputSplits, RandomCutsOfRandomOutputChangeNothing) {
  const std::vector<std::string> parts = {"</think>",
                                          "\n",
                                          "\n\n",
                                          kDsml.open(),
                                          kV4.open(),
                                          kDsml.close(),
                                          kV4.close(),
                                          "<｜DSML｜ invoke name=\"get\">\n",
                                          "<｜DSML｜invoke name=\"put\">",
                                          "</｜DSML｜ invoke>\n",
                                          "<｜DSML｜ parameter name=\"a\" string=\"true\">",
                                          "<｜DSML｜ parameter name=\"n\" string=\"false\">",
                                          "<｜DSML｜parameter name=\"é\">",
                                          "</｜DSML｜ parameter>\n",
                                          "text",
                                          "日本😀",
                                          "STOP",
                                          "ST",
                                          "```json\n",
                                          "\n```",
                                          "{",
                                          "{\"a\": [1, 2]}",
                                          "]",
                                          "<",
                                          "</",
                                          "<｜DSML",
                                          "｜",
                                          "\"",
                                          "\\",
                                          "12.50",
                                          "true",
                                          " ",
                                          "<think>",
                                          "\xE6\x97",
                                          "\xFF"};
  const std::vector<ParserSettings> settings = all_settings();
  std::mt19937 random(20261201);
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    for (size_t count = 2 + random() % 14; count > 0; --count) {
      text += parts[random() % parts.size()];
    }
    const ParserSettings& chosen = settings[random() % settings.size()];
    const Parsed whole = parse_text(chosen, text);
    for (const ParsedCall& call : whole.calls) {
      EXPECT_TRUE(!call.complete || Json::accept(call.arguments)) << call.arguments << " from " << text;
    }
    for (int split = 0; split < 4; ++split) {
      std::vector<size_t> offsets;
      for (size_t count = random() % 8; count > 0; --count) {
        offsets.push_back(random() % (text.size() + 1));
      }
      std::sort(offsets.begin(), offsets.end());
      expect_same(chosen, text, offsets, whole);
    }
  }
}

TEST(OutputSplits, TokensOneByOneAreAsAllAtOnce) {
  for (const std::string& text : outputs()) {
    const std::vector<int32_t> ids = ids_of(text);
    for (const ParserSettings& settings : all_settings()) {
      OutputParser parser(settings, byte_tokenizer());
      parser.push_tokens(ids);
      parser.finish();
      Parsed whole;
      whole.add(parser.take());
      whole.stop = parser.stop_sequence().value_or("");
      whole.cut_off = parser.call_cut_off();
      EXPECT_EQ(parse_ids(settings, ids), whole) << text;
    }
  }
}

TEST(OutputSplits, NothingIsLostButMarkup) {
  // Where there are no calls, no stop sequences and no JSON mode, all text comes out: all of it but ends of
  // reasoning, leading newlines, and calls tags that the end cut off.
  for (const std::string text : {"a <｜DSML｜ b <｜DSML｜ calls> c", "<｜DSML｜x\n\n<｜DSML｜y>",
                                 "\\<｜DSML<｜DSM</｜DSML｜ calls>"}) {
    EXPECT_EQ(parse_text(tools(), text).content, text);
  }
}

TEST(OutputSplits, NoProtocolDependsOnCuts) {
  std::mt19937 random(3);
  for (const Protocol protocol : {Protocol::kChat, Protocol::kMessages, Protocol::kResponses}) {
    for (const bool thinking : {false, true}) {
      PreparedRequest request = request_for(protocol, thinking);
      request.custom_tools = {"put"};
      for (const std::string& text : outputs()) {
        const auto without_usage = [](Json response) {
          response.erase("usage");
          return response;
        };
        const Json whole = without_usage(stream(request, {text}).response);
        for (int round = 0; round < 8; ++round) {
          std::vector<size_t> offsets;
          for (size_t count = random() % 12; count > 0; --count) {
            offsets.push_back(random() % (text.size() + 1));
          }
          std::sort(offsets.begin(), offsets.end());
          const Streamed streamed = stream(request, cut(text, offsets));
          EXPECT_EQ(without_usage(streamed.response), whole) << text;
          replay(protocol, streamed.events);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hadal::recipe::testing
