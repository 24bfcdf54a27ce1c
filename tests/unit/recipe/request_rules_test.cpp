// Where requests are read otherwise than by the reference package (docs/protocol-compatibility.md).

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "recipe/prepared_request.h"

namespace hadal::recipe {
namespace {

using nlohmann::json;

const char* const kV41 = "DeepSeek-V4.1-Flash";
const char* const kV4 = "DeepSeek-V4-Pro";

RequestResult<PreparedRequest> prepare(Protocol protocol, const char* body, const char* model = kV41,
                                       const ConversionOptions& options = {}) {
  json request = json::parse(body);
  request["model"] = model;
  return prepare_request(protocol, request.dump(), options);
}

PreparedRequest prepared(Protocol protocol, const char* body, const char* model = kV41,
                         const ConversionOptions& options = {}) {
  auto result = prepare(protocol, body, model, options);
  EXPECT_TRUE(result) << result.error().message << " " << body;
  return result ? std::move(*result) : PreparedRequest();
}

std::string refusal(Protocol protocol, const char* body, const ConversionOptions& options = {}) {
  const auto result = prepare(protocol, body, kV41, options);
  return result ? "ACCEPTED" : result.error().message;
}

bool ends_with(const PreparedRequest& request, std::string_view end) {
  return request.prompt.text.ends_with(end);
}
bool has(const PreparedRequest& request, std::string_view text) {
  return request.prompt.text.find(text) != std::string::npos;
}

TEST(ChatRules, DeveloperIsSystem) {
  const auto request = prepared(
      Protocol::kChat, R"({"messages":[{"role":"developer","content":"D"},{"role":"user","content":"x"}]})");
  EXPECT_TRUE(has(request, "\n\nD<｜User｜>x"));
}

TEST(ChatRules, MaxCompletionTokens) {
  EXPECT_EQ(
      prepared(Protocol::kChat, R"({"messages":[{"role":"user","content":"x"}],"max_completion_tokens":7})")
          .inference.max_tokens,
      7U);
  EXPECT_EQ(
      prepared(Protocol::kChat,
               R"({"messages":[{"role":"user","content":"x"}],"max_completion_tokens":7,"max_tokens":5})")
          .inference.max_tokens,
      5U);
}

TEST(ChatRules, RefusalPartsOfTheAssistantAreText) {
  EXPECT_TRUE(has(
      prepared(
          Protocol::kChat,
          R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]},{"role":"user","content":"y"}]})"),
      "</think>no<｜end▁of▁sentence｜>"));
}

TEST(ChatRules, BothRemindersStay) {
  EXPECT_TRUE(has(
      prepared(
          Protocol::kChat,
          R"({"messages":[{"role":"user","content":"x"},{"role":"latest_reminder","content":"one"},{"role":"latest_reminder","content":"two"}]})"),
      "<｜latest_reminder｜>one<｜latest_reminder｜>two"));
}

const char* const kLoop = R"({"messages":[{"role":"user","content":"x"},
  {"role":"assistant","content":"","reasoning_content":"why","tool_calls":[{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}},
                                                                          {"id":"a","type":"function","function":{"name":"f","arguments":"\"{\\\"k\\\": 1}\""}}]},
  {"role":"tool","tool_call_id":"a","content":"ra"},{"role":"tool","tool_call_id":"b","content":"rb"}]})";

TEST(ChatRules, ARunningToolLoopKeepsItsReasoning) {
  EXPECT_TRUE(has(prepared(Protocol::kChat, kLoop), "<think>why</think>"));
}

TEST(ChatRules, V4KeepsTheOrderOfCalls) {
  const auto request = prepared(Protocol::kChat, kLoop, kV4);
  EXPECT_LT(request.prompt.text.find("name=\"g\""), request.prompt.text.find("name=\"f\""));
  EXPECT_TRUE(has(request, "<tool_result>rb</tool_result>\n\n<tool_result>ra</tool_result>"));
}

TEST(ChatRules, ArgumentsInAStringAreDecoded) {
  EXPECT_TRUE(has(prepared(Protocol::kChat, kLoop),
                  "<｜DSML｜ parameter name=\"k\" string=\"false\">1</｜DSML｜ parameter>"));
}

TEST(ChatRules, OneCallAtMost) {
  const auto request = prepared(
      Protocol::kChat,
      R"({"messages":[{"role":"user","content":"x"}],"parallel_tool_calls":false,"tools":[{"type":"function","function":{"name":"f"}}]})");
  ASSERT_TRUE(request.constraint);
  EXPECT_TRUE(request.constraint->at_most_one_call);
}

TEST(ChatRules, AnEmptyTurnToContinueIsPromptedAsItIsParsed) {
  const auto request =
      prepared(Protocol::kChat,
               R"({"messages":[{"role":"assistant","content":"","reasoning_content":"r","prefix":true}]})");
  EXPECT_TRUE(ends_with(request, "<｜Assistant｜><think>r"));
  EXPECT_EQ(request.parsing.thinking_initial_stage, ThinkingStage::kReasoningContinuation);
}

TEST(ChatRules, ReplacedImagesAreSaid) {
  const auto request = prepared(
      Protocol::kChat,
      R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/a.png"}}]}]})",
      kV4);
  EXPECT_TRUE(has(request, "[Unsupported Image]"));
  ASSERT_EQ(request.notices.size(), 1U);
  EXPECT_NE(request.notices[0].find("1 image"), std::string::npos);
}

TEST(MessagesRules, ErrorsHaveTheProtocolsShape) {
  const auto result = prepare(Protocol::kMessages, R"({"max_tokens":5,"messages":[]})");
  ASSERT_FALSE(result);
  const json body = json::parse(result.error().body);
  EXPECT_EQ(body["type"], "error");
  EXPECT_EQ(body["error"]["type"], "invalid_request_error");
  EXPECT_EQ(body["error"]["message"], result.error().message);
}

TEST(MessagesRules, AnyForcesACall) {
  const char* body =
      R"({"max_tokens":5,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"custom","name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"any","disable_parallel_tool_use":true}})";
  const auto thinking = prepared(Protocol::kMessages, body);
  ASSERT_TRUE(thinking.constraint);
  EXPECT_EQ(thinking.constraint->kind, OutputConstraint::Kind::kToolCallRequired);
  EXPECT_TRUE(thinking.constraint->at_most_one_call);
  EXPECT_FALSE(thinking.parsing.starts_in_tool_calls);
  EXPECT_TRUE(ends_with(thinking, "<｜Assistant｜><think>"));

  ConversionOptions options;
  options.default_thinking_mode = false;
  const auto direct = prepared(Protocol::kMessages, body, kV41, options);
  EXPECT_TRUE(direct.parsing.starts_in_tool_calls);
  EXPECT_TRUE(has(direct, "</think>\n\n<｜DSML｜ calls>"));
}

TEST(MessagesRules, TheLastTurnIsContinued) {
  const auto request = prepared(
      Protocol::kMessages,
      R"({"max_tokens":5,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"The answer is"}]})");
  EXPECT_TRUE(ends_with(request, "</think>The answer is"));
  EXPECT_EQ(request.parsing.thinking_initial_stage, ThinkingStage::kContentContinuation);
}

TEST(MessagesRules, ResultsOfOneTurnMayBeSplit) {
  const auto request =
      prepared(Protocol::kMessages, R"({"max_tokens":5,"messages":[{"role":"user","content":"x"},
    {"role":"assistant","content":[{"type":"redacted_thinking","data":"q"},{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"ra","is_error":true}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"error: rb","is_error":true}]}]})");
  EXPECT_TRUE(has(request, "<tool_result>Error: ra</tool_result>\n\n<tool_result>error: rb</tool_result>"));
}

TEST(MessagesRules, DocumentsAndSearchResultsAreShown) {
  const auto request = prepared(Protocol::kMessages, R"({"max_tokens":5,"messages":[{"role":"user","content":[
    {"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"DATA"}},
    {"type":"search_result","source":"https://s","title":"S","content":[{"type":"text","text":"FOUND"}]}]}]})");
  EXPECT_TRUE(has(request, "<document>\n<title>T</title>\nDATA\n</document>"));
  EXPECT_TRUE(
      has(request, "<search_result>\n<source>https://s</source>\n<title>S</title>\nFOUND\n</search_result>"));
  EXPECT_TRUE(request.notices.empty());
}

TEST(MessagesRules, OutputFormatConstrains) {
  const auto request = prepared(
      Protocol::kMessages,
      R"({"max_tokens":5,"top_k":4,"messages":[{"role":"user","content":"x"}],"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}})");
  ASSERT_TRUE(request.constraint);
  EXPECT_EQ(request.constraint->kind, OutputConstraint::Kind::kJson);
  EXPECT_EQ(request.constraint->schema, R"({"type":"object"})");
  EXPECT_EQ(request.inference.top_k, 4U);
}

TEST(ResponsesRules, WhatNeedsStoredResponsesIsRefused) {
  for (const char* field : {R"("previous_response_id":"r")", R"("conversation":"c")",
                            R"("prompt":{"id":"p"})", R"("background":true)"}) {
    EXPECT_NE(refusal(Protocol::kResponses, (R"({"input":"x",)" + std::string(field) + "}").c_str())
                  .find("not supported"),
              std::string::npos)
        << field;
  }
  EXPECT_NE(refusal(Protocol::kResponses,
                    R"({"input":[{"role":"user","content":"x"},{"type":"item_reference","id":"i"}]})")
                .find("input[1]"),
            std::string::npos);
  EXPECT_EQ(refusal(Protocol::kResponses, R"({"input":[{"type":"file_search_call"}]})"),
            "Input items array must not be empty");
}

TEST(ResponsesRules, WhatIsLeftOutIsSaid) {
  const auto request = prepared(
      Protocol::kResponses,
      R"({"input":[{"role":"user","content":"x"},{"type":"mcp_list_tools"}],"tools":[{"type":"mcp"},{"type":"web_search"}]})");
  EXPECT_EQ(request.notices.size(), 3U);

  json many = {{"model", kV41}, {"input", json::array({{{"role", "user"}, {"content", "x"}}})}};
  for (int i = 0; i < 10'000; ++i) {
    many["input"].push_back({{"type", "zz"}});
  }
  const auto bounded = prepare_request(Protocol::kResponses, many.dump(), {});
  ASSERT_TRUE(bounded);
  EXPECT_LT(bounded->notices.size(), 40U);
}

TEST(ResponsesRules, SummariesStandInForReasoning) {
  const char* body =
      R"({"input":[{"role":"user","content":"x"},{"type":"reasoning","summary":[{"type":"summary_text","text":"SUM"}]},
    {"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"r"}],"tools":[{"type":"function","name":"f"}]})";
  EXPECT_TRUE(has(prepared(Protocol::kResponses, body), "<think>SUM</think>"));
  ConversionOptions options;
  options.reasoning_content_behavior = ConversionOptions::ReasoningContent::kReject;
  EXPECT_NE(refusal(Protocol::kResponses, body, options).find("reasoning_text"), std::string::npos);
}

TEST(ResponsesRules, AllowedToolsLimitWhatMayBeCalled) {
  const char* tools =
      R"("tools":[{"type":"function","name":"f"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}])";
  const auto request = prepared(
      Protocol::kResponses,
      (R"({"input":"x","reasoning":{"effort":"none"},"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f","namespace":"n"}]},)" +
       std::string(tools) + "}")
          .c_str());
  ASSERT_TRUE(request.constraint);
  const json callable = json::parse(request.constraint->schema);
  ASSERT_EQ(callable.size(), 1U);
  EXPECT_EQ(callable[0]["function"]["name"], "n::f");
  EXPECT_EQ(request.constraint->kind, OutputConstraint::Kind::kToolCallRequired);
  EXPECT_TRUE(has(request, "{\"name\": \"f\""));
  EXPECT_NE(
      refusal(
          Protocol::kResponses,
          (R"({"input":"x","tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"zz"}]},)" +
           std::string(tools) + "}")
              .c_str()),
      "ACCEPTED");
}

TEST(ResponsesRules, AnyCustomTool) {
  const auto request = prepared(
      Protocol::kResponses,
      R"({"input":"x","tools":[{"type":"custom","name":"sql","description":"Runs SQL.","format":{"type":"grammar","syntax":"lark","definition":"start: WORD"}}]})");
  EXPECT_EQ(request.custom_tools, std::set<std::string>{"sql"});
  EXPECT_TRUE(has(request, "Runs SQL."));
  EXPECT_TRUE(has(request, "start: WORD"));
}

TEST(ResponsesRules, TextFilesAreShown) {
  const auto request = prepared(
      Protocol::kResponses,
      R"({"input":[{"role":"user","content":[{"type":"input_file","filename":"a.txt","file_data":"data:text/plain;base64,aGVsbG8="},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,aGVsbG8="}]}]})");
  EXPECT_TRUE(has(request, "<document>\n<title>a.txt</title>\nhello\n</document>\n\n[Unsupported Document]"));
  EXPECT_EQ(request.notices.size(), 1U);
}

TEST(AllRules, AListIsNoRequest) {
  for (const auto protocol : {Protocol::kChat, Protocol::kMessages, Protocol::kResponses}) {
    const auto result = prepare_request(protocol, R"([{"model":"DeepSeek-V4.1-Flash"}])", {});
    ASSERT_FALSE(result);
    EXPECT_TRUE(result.error().stage_parse);
    EXPECT_EQ(result.error().status_code, 400);
  }
}

TEST(AllRules, ErrorsOfReadingNameThePlace) {
  EXPECT_NE(
      refusal(
          Protocol::kChat,
          R"({"messages":[{"role":"user","content":"x"},{"role":"user","content":[{"type":"text","text":5}]}]})")
          .find("messages[1].content[0].text"),
      std::string::npos);
  EXPECT_NE(refusal(Protocol::kMessages, R"({"max_tokens":"5","messages":[]})").find("max_tokens"),
            std::string::npos);
  EXPECT_NE(refusal(Protocol::kResponses, R"({"input":[{"type":"function_call","call_id":5}]})")
                .find("input[0].call_id"),
            std::string::npos);
}

TEST(AllRules, FieldsWithoutEffectAreListed) {
  const auto request = prepared(
      Protocol::kChat, R"({"messages":[{"role":"user","content":"x"}],"logit_bias":{"5":1},"frobnicate":1})");
  EXPECT_EQ(request.ignored_fields, (std::vector<std::string>{"frobnicate", "logit_bias"}));
}

TEST(MaxTokens, MustFitTheContextTogetherWithThePrompt) {
  const auto request =
      prepared(Protocol::kChat, R"({"messages":[{"role":"user","content":"x"}],"max_tokens":100})");
  EXPECT_EQ(resolve_max_tokens(request, 10, 1000).value(), 100U);
  EXPECT_EQ(resolve_max_tokens(request, 900, 1000).value(), 100U);
  for (const uint64_t prompt_tokens : {901U, 1001U}) {
    const auto overflow = resolve_max_tokens(request, prompt_tokens, 1000);
    ASSERT_FALSE(overflow);
    EXPECT_NE(overflow.error().message.find(std::to_string(prompt_tokens)), std::string::npos);
    EXPECT_NE(overflow.error().message.find("1000"), std::string::npos);
  }
}

TEST(MaxTokens, OfNobodysChoiceAreWhatTheContextLeaves) {
  const auto request = prepared(Protocol::kChat, R"({"messages":[{"role":"user","content":"x"}]})");
  EXPECT_EQ(resolve_max_tokens(request, 950, 1000).value(), 50U);
}

}  // namespace
}  // namespace hadal::recipe
