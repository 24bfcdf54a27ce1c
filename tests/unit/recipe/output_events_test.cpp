// Streams and whole answers of the three protocols. The names B.. are those of the public reports that the
// tests are about; each covers the kind of fault, not the one report.

#include <gtest/gtest.h>

#include "output_support.h"

namespace hadal::recipe::testing {
namespace {

constexpr Protocol kAll[] = {Protocol::kChat, Protocol::kMessages, Protocol::kResponses};
const Dsml kDsml{true};

std::vector<std::string> code_points(std::string_view text) {
  std::vector<std::string> all;
  for (const char byte : text) {
    if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80) {
      all.emplace_back();
    }
    all.back().push_back(byte);
  }
  return all;
}

/// The deltas of arguments in a stream.
std::vector<std::string> argument_deltas(Protocol protocol, const std::vector<Event>& events) {
  std::vector<std::string> deltas;
  for (const Event& event : events) {
    const Json data = Json::parse(event.data);
    if (protocol == Protocol::kChat && !data["choices"].empty()) {
      const Json& delta = data["choices"][0]["delta"];
      if (delta.contains("tool_calls") && !delta["tool_calls"][0].contains("id")) {
        deltas.push_back(delta["tool_calls"][0]["function"]["arguments"]);
      }
    } else if (protocol == Protocol::kMessages && data["type"] == "content_block_delta" &&
               data["delta"].contains("partial_json")) {
      deltas.push_back(data["delta"]["partial_json"]);
    } else if (protocol == Protocol::kResponses && data["type"] == "response.function_call_arguments.delta") {
      deltas.push_back(data["delta"]);
    }
  }
  return deltas;
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) {
    text += piece;
  }
  return text;
}

std::vector<std::string> names(const std::vector<Event>& events) {
  std::vector<std::string> all;
  for (const Event& event : events) {
    all.push_back(event.name);
  }
  return all;
}

std::string finish_of(Protocol protocol, const Json& response) {
  switch (protocol) {
    case Protocol::kChat:
      return response["choices"][0]["finish_reason"];
    case Protocol::kMessages:
      return response["stop_reason"];
    case Protocol::kResponses:
      break;
  }
  const Json& details = response["incomplete_details"];
  return response["status"].get<std::string>() +
         (details.is_null() ? "" : " " + details["reason"].get<std::string>());
}

// ---- all protocols

TEST(OutputReports, B01HalfOfAClosingTagNeverEndsUpInAnArgument) {
  const std::string text =
      kDsml.block(kDsml.invoke("f", kDsml.parameter("city", "Paris") + kDsml.parameter("n", "[1]", false)));
  for (const Protocol protocol : kAll) {
    const PreparedRequest request = request_for(protocol);
    for (size_t at = 0; at <= text.size(); ++at) {
      const Streamed streamed = stream(request, cut(text, {at}));
      EXPECT_EQ(joined(argument_deltas(protocol, streamed.events)), R"({"city": "Paris", "n": [1]})") << at;
    }
  }
}

TEST(OutputReports, B02ACallBeforeTheEndOfReasoningIsACall) {
  const std::string text = "plan " + kDsml.block(kDsml.invoke("f"));
  for (const Protocol protocol : kAll) {
    const Streamed streamed = stream(request_for(protocol, true), code_points(text));
    replay(protocol, streamed.events);
    EXPECT_EQ(joined(argument_deltas(protocol, streamed.events)), "{}");
    EXPECT_EQ(finish_of(protocol, streamed.response), protocol == Protocol::kChat       ? "tool_calls"
                                                      : protocol == Protocol::kMessages ? "tool_use"
                                                                                        : "completed");
  }
}

TEST(OutputReports, B03MalformedCallsAreShownOnceAndFinishHonestly) {
  const std::string text = kDsml.open() + "<｜DSML｜ invoke nam=\"f\">\n</｜DSML｜ invoke>\n" + kDsml.close();
  for (const Protocol protocol : kAll) {
    const Streamed streamed = stream(request_for(protocol), code_points(text));
    const std::string response = streamed.response.dump();
    const std::string once = "invoke nam=";
    EXPECT_NE(response.find(once), std::string::npos);
    EXPECT_EQ(response.find(once), response.rfind(once));
    EXPECT_TRUE(argument_deltas(protocol, streamed.events).empty());
    EXPECT_EQ(finish_of(protocol, streamed.response), protocol == Protocol::kChat       ? "stop"
                                                      : protocol == Protocol::kMessages ? "end_turn"
                                                                                        : "completed");
  }
  const auto generator =
      ResponseGenerator::create(request_for(Protocol::kChat), generator_options(), nullptr);
  generator->push_text(text);
  generator->finish(OutputFinish::kStop);
  EXPECT_EQ(generator->faults().stray_markers, 2U);
}

TEST(OutputReports, B03ACallThatTheModelDoesNotFinishIsNoWholeCall) {
  const std::string whole = kDsml.block(kDsml.invoke("f", kDsml.parameter("a", "rm -rf /tmp/x")));
  const std::string text = whole.substr(0, whole.find("tmp"));
  for (const Protocol protocol : kAll) {
    const Streamed streamed = stream(request_for(protocol), {text});
    replay(protocol, streamed.events);
    EXPECT_EQ(finish_of(protocol, streamed.response), protocol == Protocol::kChat ? "length"
                                                      : protocol == Protocol::kMessages
                                                          ? "max_tokens"
                                                          : "incomplete max_output_tokens");
  }
}

TEST(OutputReports, B04ALongArgumentStreams) {
  const std::string value(20'000, 'v');
  std::string raw = "[";
  for (int item = 0; item < 5000; ++item) {
    raw += item == 0 ? "10" : ", 10";
  }
  raw += "]";
  for (const bool string : {true, false}) {
    const std::string text =
        kDsml.block(kDsml.invoke("f", kDsml.parameter("k", string ? value : raw, string)));
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size(); at += 100) {
      pieces.push_back(text.substr(at, 100));
    }
    for (const Protocol protocol : kAll) {
      const auto generator = ResponseGenerator::create(request_for(protocol), generator_options(), nullptr);
      std::vector<std::string> deltas;
      int silent = 0;
      for (size_t index = 0; index < pieces.size(); ++index) {
        const std::vector<std::string> more = argument_deltas(protocol, generator->push_text(pieces[index]));
        deltas.insert(deltas.end(), more.begin(), more.end());
        silent = more.empty() ? silent + 1 : 0;
        EXPECT_LE(silent, 2) << "no delta for some pieces at " << index;
      }
      EXPECT_TRUE(Json::accept(joined(deltas)));
      EXPECT_EQ(Json::parse(joined(deltas))["k"], string ? Json(value) : Json::parse(raw));
    }
  }
}

TEST(OutputReports, B06ChunksNeverCutACharacter) {
  std::string value;
  for (int round = 0; round < 50; ++round) {
    value += "aé日😀";
  }
  const std::string text =
      value + "</think>" + value + kDsml.block(kDsml.invoke("f", kDsml.parameter("k", value)));
  for (const Protocol protocol : kAll) {
    // Every token is one byte of a character.
    const Streamed streamed = stream_ids(request_for(protocol, true), ids_of(text));
    for (const Event& event : streamed.events) {
      EXPECT_EQ(event.data.find("\xEF\xBF\xBD"), std::string::npos);
      EXPECT_TRUE(Json::accept(event.data)) << "not UTF-8: " << event.data;
    }
    EXPECT_EQ(joined(argument_deltas(protocol, streamed.events)), R"({"k": ")" + value + "\"}");
  }
}

TEST(OutputReports, B26NothingOfAStopStringReachesTheClient) {
  for (const Protocol protocol : kAll) {
    PreparedRequest request = request_for(protocol);
    request.parsing.stop_sequences = {"STOPHERE"};
    for (const Event& event : stream(request, {"a STO", "PH", "ERE", "more"}).events) {
      EXPECT_EQ(event.data.find("STO"), event.data.find("STOPHERE")) << event.data;
    }
    const Streamed streamed = stream(request, {"a STO", "PX"});
    EXPECT_NE(streamed.response.dump().find("a STOPX"), std::string::npos);
  }
}

TEST(OutputReports, B27MessagesNameTheStopSequence) {
  PreparedRequest request = request_for(Protocol::kMessages);
  request.parsing.stop_sequences = {"Y", "X"};
  const Streamed streamed = stream(request, {"abXcd"});
  EXPECT_EQ(streamed.response["content"][0]["text"], "ab");
  EXPECT_EQ(streamed.response["stop_reason"], "stop_sequence");
  EXPECT_EQ(streamed.response["stop_sequence"], "X");
  const Json delta = Json::parse(streamed.events.end()[-2].data);
  EXPECT_EQ(delta["delta"], (Json{{"stop_reason", "stop_sequence"}, {"stop_sequence", "X"}}));
}

TEST(OutputReports, B30ClientsRebuildTheFinalObject) {
  const std::string text = "hmm</think>Let me see é.\n\n" +
                           kDsml.block(kDsml.invoke("f", kDsml.parameter("k", "v\n")) + kDsml.invoke("g")) +
                           "bye";
  for (const Protocol protocol : kAll) {
    for (const bool thinking : {true, false}) {
      const Streamed streamed = stream(request_for(protocol, thinking), code_points(text));
      const Json replayed = replay(protocol, streamed.events);
      if (protocol == Protocol::kChat) {
        EXPECT_EQ(nlohmann::json(replayed["message"]),  // whatever the order of its keys
                  nlohmann::json(streamed.response["choices"][0]["message"]));
        EXPECT_EQ(replayed["usage"], streamed.response["usage"]);
      } else {
        EXPECT_EQ(replayed, streamed.response);
      }
    }
  }
}

TEST(OutputReports, B33ReasoningThatEatsTheBudgetIsReported) {
  for (const Protocol protocol : kAll) {
    const Streamed streamed =
        stream_ids(request_for(protocol, true), ids_of("thinking on"), OutputFinish::kLength);
    replay(protocol, streamed.events);
    EXPECT_EQ(finish_of(protocol, streamed.response), protocol == Protocol::kChat ? "length"
                                                      : protocol == Protocol::kMessages
                                                          ? "max_tokens"
                                                          : "incomplete max_output_tokens");
    const Json& usage = streamed.response["usage"];
    if (protocol == Protocol::kChat) {
      EXPECT_EQ(usage["completion_tokens_details"]["reasoning_tokens"], 11);
      EXPECT_EQ(streamed.response["choices"][0]["message"]["content"], "");
    } else if (protocol == Protocol::kResponses) {
      EXPECT_EQ(usage["output_tokens_details"]["reasoning_tokens"], 11);
    }
  }
}

TEST(OutputReports, B34ReasoningTokensAreThoseInFrontOfTheEndMarker) {
  const std::vector<int32_t> ids = ids_of("12345</think>answer");
  const Streamed chat = stream_ids(request_for(Protocol::kChat, true), ids);
  EXPECT_EQ(chat.response["usage"]["completion_tokens"], ids.size());
  EXPECT_EQ(chat.response["usage"]["completion_tokens_details"]["reasoning_tokens"], 5);
  // What spells the marker in ordinary tokens is not the marker, and counts as what it is.
  std::vector<int32_t> plain;
  byte_tokenizer()->encode_plain("a</think>b", plain);
  EXPECT_EQ(stream_ids(request_for(Protocol::kChat, true), plain)
                .response["usage"]["completion_tokens_details"]["reasoning_tokens"],
            10);
}

TEST(OutputReports, B46RoleMarkersInOutputAreShownAsWhatTheyAre) {
  const std::string text = "say <｜User｜> and <｜end▁of▁sentence｜> and <think>";
  std::vector<int32_t> plain;
  byte_tokenizer()->encode_plain(text, plain);
  for (const std::vector<int32_t>& ids : {plain, ids_of(text)}) {
    const Streamed streamed = stream_ids(request_for(Protocol::kChat), ids);
    EXPECT_EQ(streamed.response["choices"][0]["message"]["content"], text);
  }
}

TEST(OutputReports, B52ThinkingBlocksFollowTheRequest) {
  const std::string text = "thought</think>answer";
  const Streamed off = stream(request_for(Protocol::kMessages, false), {"answer"});
  for (const Event& event : off.events) {
    EXPECT_EQ(event.data.find("thinking"), std::string::npos);
  }
  for (const std::string& output :
       {text, std::string("</think>answer"), std::string("only thought"), std::string()}) {
    const Streamed on = stream(request_for(Protocol::kMessages, true), code_points(output));
    const Json message = replay(Protocol::kMessages, on.events);  // every start has its stop
    EXPECT_EQ(message["content"][0]["type"], "thinking");
    EXPECT_EQ(message["content"][0]["signature"], "id-1");
    EXPECT_EQ(message, on.response);
  }
}

// ---- Chat

TEST(ChatOutput, B05ChunksHaveCallsOnlyWhereThereAreCalls) {
  for (const Event& event : stream(request_for(Protocol::kChat), code_points("plain answer")).events) {
    EXPECT_EQ(event.data.find("tool_calls"), std::string::npos);
  }
}

TEST(ChatOutput, UsageComesInItsOwnChunkWhenAskedFor) {
  PreparedRequest request = request_for(Protocol::kChat);
  request.include_usage = true;
  const Streamed streamed = stream(request, {"a", "b"});
  const Json last = Json::parse(streamed.events.back().data);
  EXPECT_TRUE(last["choices"].empty());
  EXPECT_EQ(last["usage"]["completion_tokens"], 2);
  for (size_t index = 0; index + 1 < streamed.events.size(); ++index) {
    const Json chunk = Json::parse(streamed.events[index].data);
    EXPECT_TRUE(chunk.contains("usage") && chunk["usage"].is_null());
  }
}

TEST(ChatOutput, UsageComesWithTheFinishReasonOtherwise) {
  const Streamed streamed = stream(request_for(Protocol::kChat), {"a"});
  EXPECT_EQ(Json::parse(streamed.events.front().data).contains("usage"), false);
  EXPECT_EQ(Json::parse(streamed.events.back().data)["usage"]["total_tokens"], 101);
}

TEST(ChatOutput, ContentIsNullBesideCallsAndTheirIndexIsOfStreamsOnly) {
  const Json message = stream(request_for(Protocol::kChat), {kDsml.block(kDsml.invoke("f"))})
                           .response["choices"][0]["message"];
  EXPECT_TRUE(message["content"].is_null());
  EXPECT_FALSE(message["tool_calls"][0].contains("index"));
}

TEST(ChatOutput, ContentOnBothSidesOfCallsIsJoined) {
  const std::string text = "before\n\n" + kDsml.block(kDsml.invoke("f")) + "\n\nafter";
  const Streamed streamed = stream(request_for(Protocol::kChat), code_points(text));
  EXPECT_EQ(replay(Protocol::kChat, streamed.events)["message"]["content"], "before\n\nafter");
  EXPECT_EQ(streamed.response["choices"][0]["message"]["content"], "before\n\nafter");
}

TEST(ChatOutput, CallIdsTellOfEmptyReasoningAndDiffer) {
  const std::string calls = kDsml.block(kDsml.invoke("f") + kDsml.invoke("g"));
  const auto ids = [&](bool thinking, const std::string& text) {
    const Json response = stream(request_for(Protocol::kChat, thinking), {text}).response;
    std::vector<std::string> all;
    for (const Json& call : response["choices"][0]["message"]["tool_calls"]) {
      all.push_back(call["id"]);
    }
    return all;
  };
  const std::vector<std::string> plain = ids(false, calls);
  EXPECT_EQ(plain.at(0).size(), std::string("call_00_").size() + 24);
  EXPECT_TRUE(plain[0].starts_with("call_00_"));
  EXPECT_TRUE(plain[1].starts_with("call_01_"));
  EXPECT_NE(plain[0].substr(8), plain[1].substr(8));
  EXPECT_TRUE(ids(true, "</think>" + calls)[0].starts_with("call_00_ET_"));
  EXPECT_FALSE(ids(true, "hm</think>" + calls)[0].starts_with("call_00_ET_"));
  EXPECT_EQ(ids(false, calls), plain) << "a function of the seed";
}

TEST(ChatOutput, LogProbabilitiesGoWhereTheirTextGoes) {
  const auto generator =
      ResponseGenerator::create(request_for(Protocol::kChat, true), generator_options(), byte_tokenizer());
  std::vector<OutputTokenInfo> tokens;
  for (const int32_t id : ids_of("r\n</think>\nc😀")) {
    tokens.push_back({.token = id, .logprob = -0.1F, .top = {{id, -0.1F}, {0xF0, -2.5F}}});
  }
  for (const OutputTokenInfo& token : tokens) {
    generator->push_tokens({token});
  }
  generator->finish(OutputFinish::kStop);
  const Json logprobs = generator->response()["choices"][0]["logprobs"];
  ASSERT_EQ(logprobs["reasoning_content"].size(), 1U);
  ASSERT_EQ(logprobs["content"].size(), 5U);
  EXPECT_EQ(
      logprobs["reasoning_content"][0].dump(),
      R"({"token":"r","logprob":-0.1,"bytes":[114],"top_logprobs":[{"token":"r","logprob":-0.1,"bytes":[114]},)"
      R"({"token":"\\xf0","logprob":-2.5,"bytes":[240]}]})");
  EXPECT_EQ(logprobs["content"][1]["token"], "\\xf0");
}

TEST(ChatOutput, AnInfiniteLogProbabilityIsANumber) {
  const auto generator =
      ResponseGenerator::create(request_for(Protocol::kChat), generator_options(), byte_tokenizer());
  generator->push_tokens({{.token = 'a', .logprob = -std::numeric_limits<float>::infinity(), .top = {}}});
  generator->finish(OutputFinish::kStop);
  EXPECT_EQ(generator->response()["choices"][0]["logprobs"]["content"][0]["logprob"], -9999.0);
}

TEST(ChatOutput, TheEndComesWithTheStopSequence) {
  PreparedRequest request = request_for(Protocol::kChat);
  request.parsing.stop_sequences = {"X"};
  const auto generator = ResponseGenerator::create(request, generator_options(), nullptr);
  EXPECT_FALSE(generator->finished());
  const std::vector<Event> events = generator->push_text("aXb", 3);
  EXPECT_TRUE(generator->finished());
  EXPECT_EQ(Json::parse(events.back().data)["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(generator->push_text("c").empty());
  EXPECT_TRUE(generator->finish(OutputFinish::kLength).empty());
  EXPECT_EQ(generator->response()["usage"]["completion_tokens"], 3);
}

TEST(OutputOfCalls, TextBehindThemIsKeptWhereAClientMaySendItBack) {
  const std::string text = "before\n\n" + kDsml.block(kDsml.invoke("f")) + "late";
  for (const Protocol protocol : kAll) {
    const auto generator = ResponseGenerator::create(request_for(protocol), generator_options(), nullptr);
    generator->push_text(text);
    generator->finish(OutputFinish::kStop);
    const bool chat = protocol == Protocol::kChat;
    EXPECT_EQ(generator->response().dump().find("late") != std::string::npos, chat);
    EXPECT_EQ(generator->faults().dropped_text_bytes, chat ? 0U : 4U);
  }
}

// ---- Messages

TEST(MessagesOutput, PingFollowsTheFirstBlockStart) {
  const std::vector<std::string> expected = {"message_start",       "content_block_start", "ping",
                                             "content_block_delta", "content_block_stop",  "message_delta",
                                             "message_stop"};
  EXPECT_EQ(names(stream(request_for(Protocol::kMessages), {"a"}).events), expected);
}

TEST(MessagesOutput, ANumberThatNoDoubleHoldsDoesNotLoseTheInput) {
  const std::string text = kDsml.block(kDsml.invoke("f", kDsml.parameter("n", "1e999", false)));
  EXPECT_EQ(stream(request_for(Protocol::kMessages), {text}).response["content"][0]["input"],
            (Json{{"arguments", R"({"n": 1e999})"}}));
}

TEST(MessagesOutput, APrefilledAnswerHasNoThinkingBlock) {
  PreparedRequest request = request_for(Protocol::kMessages, true);
  request.parsing.thinking_initial_stage = ThinkingStage::kContentContinuation;
  const Streamed streamed = stream(request, {"\ngoes on"});
  EXPECT_EQ(streamed.response["content"], (Json::array({{{"type", "text"}, {"text", "\ngoes on"}}})));
}

// ---- Responses

TEST(ResponsesOutput, EventsComeInOrder) {
  const std::vector<std::string> expected = {"response.created",
                                             "response.in_progress",
                                             "response.output_item.added",
                                             "response.content_part.added",
                                             "response.output_text.delta",
                                             "response.output_text.done",
                                             "response.content_part.done",
                                             "response.output_item.done",
                                             "response.output_item.added",
                                             "response.function_call_arguments.delta",
                                             "response.function_call_arguments.done",
                                             "response.output_item.done",
                                             "response.completed"};
  const Streamed streamed =
      stream(request_for(Protocol::kResponses), {"a\n\n" + kDsml.block(kDsml.invoke("f"))});
  EXPECT_EQ(names(streamed.events), expected);
  EXPECT_EQ(streamed.response["output"][0]["phase"], "commentary");
}

TEST(ResponsesOutput, ToolsAreShownByTheirKind) {
  PreparedRequest request = request_for(Protocol::kResponses);
  request.custom_tools = {"apply_patch"};
  request.tool_search = true;
  request.namespace_tool_map = {{"mcp::get", {"mcp", "get"}}};
  const std::string text = kDsml.block(kDsml.invoke("apply_patch", kDsml.parameter("input", "*** \"é\n\\")) +
                                       kDsml.invoke("apply_patch", kDsml.parameter("other", "x")) +
                                       kDsml.invoke("tool_search", kDsml.parameter("query", "weather")) +
                                       kDsml.invoke("mcp::get") + kDsml.invoke("mcp::put"));
  const Streamed streamed = stream(request, code_points(text));
  const Json replayed = replay(Protocol::kResponses, streamed.events);
  EXPECT_EQ(replayed, streamed.response);
  const Json& output = streamed.response["output"];
  EXPECT_EQ(output[0]["type"], "custom_tool_call");
  EXPECT_EQ(output[0]["input"], "*** \"é\n\\");
  EXPECT_EQ(output[1]["input"], R"({"other": "x"})");
  EXPECT_EQ(output[2]["type"], "tool_search_call");
  EXPECT_EQ(output[2]["arguments"], (Json{{"query", "weather"}}));
  EXPECT_EQ(output[3]["namespace"], "mcp");
  EXPECT_EQ(output[3]["name"], "get");
  EXPECT_EQ(output[4]["name"], "mcp::put");
  EXPECT_FALSE(output[4].contains("namespace"));
}

TEST(ResponsesOutput, EchoesTheRequest) {
  PreparedRequest request = request_for(Protocol::kResponses);
  request.echo = {{"instructions", "Be brief."}, {"temperature", 0.3}, {"top_p", nullptr}, {"user", "u"}};
  const Json response = stream(request, {"a"}).response;
  EXPECT_EQ(response["instructions"], "Be brief.");
  EXPECT_EQ(response["temperature"], 0.3);
  EXPECT_EQ(response["top_p"], 1.0);
  EXPECT_EQ(response["user"], "u");
  EXPECT_EQ(response["tool_choice"], "auto");
}

TEST(ResponsesOutput, TimeOfCompletionIsThatOfTheClock) {
  GeneratorOptions options = generator_options();
  options.clock = [] { return int64_t{1700000042}; };
  const auto generator = ResponseGenerator::create(request_for(Protocol::kResponses), options, nullptr);
  generator->push_text("a");
  generator->finish(OutputFinish::kStop);
  EXPECT_EQ(generator->response()["created_at"], 1700000000);
  EXPECT_EQ(generator->response()["completed_at"], 1700000042);
}

}  // namespace
}  // namespace hadal::recipe::testing
