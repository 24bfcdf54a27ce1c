// The output parser: what it makes of well-formed output.

#include <gtest/gtest.h>

#include "output_support.h"

namespace hadal::recipe::testing {
namespace {

const Dsml kV41{true};
const Dsml kV4{false};

ParserSettings stops(std::vector<std::string> sequences) {
  ParserSettings settings = tools();
  settings.options.stop_sequences = std::move(sequences);
  return settings;
}

TEST(OutputParser, SplitsReasoningFromContentAndDropsTheNewlinesBetween) {
  const Parsed parsed = parse_text(thinking_tools(), "\n\nfirst\n\nsecond\n\n</think>\n\nThe answer.\n");
  EXPECT_EQ(parsed.reasoning, "first\n\nsecond");
  EXPECT_EQ(parsed.content, "The answer.\n");
  EXPECT_EQ(parsed.order, "rc");
}

TEST(OutputParser, KeepsNewlinesAtTheStartOfWhatTheRequestBegan) {
  ParserSettings settings = thinking_tools();
  settings.options.thinking_initial_stage = ThinkingStage::kReasoningContinuation;
  EXPECT_EQ(parse_text(settings, "\nmore</think>\nx").reasoning, "\nmore");
  settings.options.thinking_initial_stage = ThinkingStage::kContentContinuation;
  EXPECT_EQ(parse_text(settings, "\nmore</think>\nx").content, "\nmore\nx");
}

TEST(OutputParser, RemovesAnEndOfReasoningWhereThereIsNone) {
  EXPECT_EQ(parse_text(tools(), "a</think>b</think>c").content, "abc");
}

TEST(OutputParser, ReasoningThatIsNeverClosedStaysReasoning) {
  const Parsed parsed = parse_text(thinking_tools(), "hmm\n");
  EXPECT_EQ(parsed.reasoning, "hmm\n");
  EXPECT_EQ(parsed.content, "");
}

TEST(OutputParser, ReadsCallsOfBothVersions) {
  for (const Dsml& dsml : {kV41, kV4}) {
    const std::string parameters =
        dsml.parameter("city", "Paris \"x\"\n") + dsml.parameter("days", "[1, {\"k\": null}]", false);
    const Parsed parsed =
        parse_text(tools(), "I look.\n\n" + dsml.block(dsml.invoke("get", parameters) + dsml.invoke("list")));
    EXPECT_EQ(parsed.content, "I look.");
    ASSERT_EQ(parsed.calls.size(), 2U);
    EXPECT_EQ(parsed.calls[0], (ParsedCall{"get", R"({"city": "Paris \"x\"\n", "days": [1, {"k": null}]})"}));
    EXPECT_EQ(parsed.calls[1], (ParsedCall{"list", "{}"}));
    EXPECT_EQ(parsed.order, "cTT");
  }
}

TEST(OutputParser, LeavesCallsAloneWhereNoneAreParsed) {
  ParserSettings settings = tools();
  settings.options.parse_tool_calls = false;
  const std::string text = "hi\n\n" + kV41.block(kV41.invoke("get"));
  EXPECT_EQ(parse_text(settings, text).content, text);
}

TEST(OutputParser, StartsInsideOfABlockWhenACallIsForced) {
  ParserSettings settings = tools();
  settings.options.starts_in_tool_calls = true;
  for (const std::string& text : {kV41.invoke("get") + kV41.close(), kV41.block(kV41.invoke("get"))}) {
    EXPECT_EQ(parse_text(settings, text).calls, (std::vector{ParsedCall{"get", "{}"}}));
  }
}

TEST(OutputParser, AStopSequenceEndsTheOutput) {
  const Parsed parsed = parse_text(stops({"STOP"}), "hello STOP world");
  EXPECT_EQ(parsed.content, "hello ");
  EXPECT_EQ(parsed.stop, "STOP");
}

TEST(OutputParser, TheStopSequenceThatIsCompleteFirstWins) {
  EXPECT_EQ(parse_text(stops({"abcd", "bc"}), "xxabcdyy").content, "xxa");
  EXPECT_EQ(parse_text(stops({"abc", "ab"}), "xabcx").stop, "ab");
  EXPECT_EQ(parse_text(stops({"b", "ab"}), "ab").content, "a");
  EXPECT_EQ(parse_text(stops({"ab", "b"}), "ab").content, "");
  EXPECT_EQ(parse_text(stops({"abac"}), "ababac").content, "ab");
}

TEST(OutputParser, StopSequencesAreForContentOnly) {
  ParserSettings settings = stops({"STOP"});
  settings.options.thinking_initial_stage = ThinkingStage::kReasoningStart;
  const Parsed parsed =
      parse_text(settings, "a STOP</think>" + kV41.block(kV41.invoke("f", kV41.parameter("k", "STOP"))));
  EXPECT_EQ(parsed.reasoning, "a STOP");
  EXPECT_EQ(parsed.calls.at(0).arguments, R"({"k": "STOP"})");
  EXPECT_EQ(parsed.stop, "");
}

TEST(OutputParser, IgnoresInputBehindAStopSequence) {
  OutputParser parser(stops({"X"}), nullptr);
  parser.push_text("aXb");
  parser.push_text("c");
  parser.finish();
  Parsed parsed;
  parsed.add(parser.take());
  EXPECT_EQ(parsed.content, "a");
}

// ---- token input

TEST(OutputParserTokens, OnlyTheSpecialTokenIsTheMarker) {
  std::vector<int32_t> plain;
  byte_tokenizer()->encode_plain("a</think>b", plain);
  EXPECT_EQ(parse_ids(thinking_tools(), plain).reasoning, "a</think>b");
  EXPECT_EQ(parse_ids(thinking_tools(), ids_of("a</think>b")).content, "b");
}

TEST(OutputParserTokens, AValueMayHoldTextThatSpellsItsEnd) {
  std::vector<int32_t> ids =
      ids_of(kV41.open() + "<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"k\" string=\"true\">");
  byte_tokenizer()->encode_plain("x</｜DSML｜ parameter>y</think>", ids);
  const std::vector<int32_t> rest = ids_of("</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n" + kV41.close());
  ids.insert(ids.end(), rest.begin(), rest.end());
  EXPECT_EQ(parse_ids(tools(), ids).calls.at(0).arguments, R"({"k": "x</｜DSML｜ parameter>y</think>"})");
}

TEST(OutputParserTokens, StopSequencesNeverMatchSpecialTokens) {
  const ParserSettings settings = stops({"<｜User｜>", "a</think>b"});
  EXPECT_EQ(parse_ids(settings, ids_of("x<｜User｜>y")).content, "x<｜User｜>y");
  EXPECT_EQ(parse_ids(settings, ids_of("xa</think>b")).content, "xab");
  std::vector<int32_t> plain;
  byte_tokenizer()->encode_plain("x<｜User｜>y", plain);
  EXPECT_EQ(parse_ids(settings, plain).content, "x");
}

TEST(OutputParserTokens, EndOfSentenceIsNoTextAtTheEnd) {
  std::vector<int32_t> ids = ids_of("Hello!");
  ids.push_back(ByteTokenizer::kEos);
  EXPECT_EQ(parse_ids(tools(), ids).content, "Hello!");
  ids.push_back('x');
  EXPECT_EQ(parse_ids(tools(), ids).content, "Hello!<｜end▁of▁sentence｜>x");
}

TEST(OutputParserTokens, AnUnfinishedCharacterWaitsAndEndsAsReplacement) {
  OutputParser parser(tools(), byte_tokenizer());
  Parsed parsed;
  for (const int32_t id : ids_of("é😀").empty() ? std::vector<int32_t>{} : ids_of("é😀")) {
    parser.push_tokens({&id, 1});
    const std::vector<Piece> pieces = parser.take();
    for (const Piece& piece : pieces) {
      EXPECT_TRUE(piece.text == "é" || piece.text == "😀") << piece.text;
    }
    parsed.add(pieces);
  }
  EXPECT_EQ(parsed.content, "é😀");
  EXPECT_EQ(parse_ids(tools(), {'a', 0xF0, 0x9F, 0x98}).content, "a\xEF\xBF\xBD");
  EXPECT_EQ(parse_ids(tools(), {'a', 0xF0, 'b'}).content,
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(parse_ids(tools(), {0xF0, ByteTokenizer::kThinkEnd, 'b'}).content,
            "\xEF\xBF\xBD"
            "b");
}

TEST(OutputParserTokens, UnknownIdsAreNothing) {
  EXPECT_EQ(parse_ids(tools(), {'a', ByteTokenizer::kUnknown, -5, 'b'}).content, "ab");
}

TEST(OutputParserTokens, CountsTheTokensThatShowAsReasoning) {
  OutputParser parser(thinking_tools(), byte_tokenizer());
  for (const int32_t id : ids_of("\nab\ncd\n</think>\n\nxyz")) {
    parser.push_tokens({&id, 1});
  }
  parser.finish();
  EXPECT_EQ(parser.num_reasoning_tokens(), 5U);  // ab, the newline between, cd
}

TEST(OutputParserTokens, PiecesNameTheTokensTheyShow) {
  OutputParser parser(tools(), byte_tokenizer());
  const std::vector<int32_t> ids = ids_of("\nab");
  parser.push_tokens(ids);
  const int32_t first_half = 0xC3;
  const int32_t second_half = 0xA9;
  parser.push_tokens({&first_half, 1});
  parser.push_tokens({&second_half, 1});
  parser.finish();
  const std::vector<Piece> pieces = parser.take();
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].token_begin, 1U);
  EXPECT_EQ(pieces[0].token_end, 3U);
  EXPECT_EQ(pieces[1].text, "é");
  EXPECT_EQ(pieces[1].token_begin, 3U);
  EXPECT_EQ(pieces[1].token_end, 5U);
}

// ---- JSON output mode

ParserSettings json_mode(std::vector<std::string> sequences = {}) {
  ParserSettings settings = stops(std::move(sequences));
  settings.options.parse_json_output = true;
  return settings;
}

TEST(OutputParserJson, ShowsTheJsonAndBlanksWhatIsAround) {
  EXPECT_EQ(parse_text(json_mode(), "Here: ```json\n{\"a\":1}\n```\nbye").content, " {\"a\":1} ");
  EXPECT_EQ(parse_text(json_mode(), "```\n[1]\n```").content, "[1]");
  EXPECT_EQ(parse_text(json_mode(), "Sure {\"a\":1}").content, " {\"a\":1}");
  EXPECT_EQ(parse_text(json_mode(), "\n\n{\"a\":\n1}").content, "{\"a\":\n1}");
}

TEST(OutputParserJson, KeepsTextWhereThereIsNoJson) {
  EXPECT_EQ(parse_text(json_mode(), "no json here").content, "no json here");
  const Parsed parsed = parse_text(json_mode(), "I call.\n\n" + kV41.block(kV41.invoke("f")));
  EXPECT_EQ(parsed.content, "I call.");
  EXPECT_EQ(parsed.calls.size(), 1U);
}

TEST(OutputParserJson, AFenceInsideOfAStringIsPartOfIt) {
  EXPECT_EQ(parse_text(json_mode(), "{\"a\":\"x\n```y\"}").content, "{\"a\":\"x\n```y\"}");
  EXPECT_EQ(parse_text(json_mode(), "```json\n{\"a\":\"\\\"x\n```y\"}\n```").content,
            "{\"a\":\"\\\"x\n```y\"}");
}

TEST(OutputParserJson, ShowsASecondBlock) {
  EXPECT_EQ(parse_text(json_mode(), "```json\n{\"a\":1}\n```\n```json\n{\"b\":2}\n```").content,
            "{\"a\":1} {\"b\":2}");
}

TEST(OutputParserJson, RecognizesCallsBehindWholeJson) {
  const Parsed parsed = parse_text(json_mode(), "{\"a\":1}\n\n" + kV41.block(kV41.invoke("f")));
  EXPECT_EQ(parsed.content, "{\"a\":1}");
  EXPECT_EQ(parsed.calls.size(), 1U);
  EXPECT_EQ(parse_text(json_mode(), "{\"a\":\"<｜DSML｜ calls>\"}").content, "{\"a\":\"<｜DSML｜ calls>\"}");
}

TEST(OutputParserJson, StopSequencesMatchInsideOfTheJson) {
  const Parsed parsed = parse_text(json_mode({"}"}), "a } b {\"a\":1}");
  EXPECT_EQ(parsed.content, " {\"a\":1");
  EXPECT_EQ(parsed.stop, "}");
}

}  // namespace
}  // namespace hadal::recipe::testing
