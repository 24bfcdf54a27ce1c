// Bodies that nobody should send: each is refused with an error in the protocol's shape, in bounded time, and
// text of a request never becomes a control token.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "recipe/prepared_request.h"
#include "recipe/prompt/encode.h"
#include "tokenizer/tokenizer.h"

namespace hadal::recipe {
namespace {

using nlohmann::json;

RequestResult<PreparedRequest> prepare(Protocol protocol, const std::string& body) {
  return prepare_request(protocol, body, ConversionOptions{});
}

std::string chat_with(const std::string& member) {
  return R"({"model":"DeepSeek-V4.1-Flash","messages":[{"role":"user","content":"unheard"}],)" + member + "}";
}

TEST(HostileRequest, UnreadableBodiesAreRefused) {
  const std::string nested = std::string(10'000, '[') + std::string(10'000, ']');
  const std::vector<std::string> bodies = {
      "",
      "null",
      "[]",
      "5",
      "\"x\"",
      "{",
      "{\"model\":\"\xff\"}",
      "{\"model\":\"\\ud800\"}",
      "{\"model\":NaN}",
      std::string("{\"model\":\"a\0b\"", 16),
      nested,
      "{\"model\":" + nested + "}",
      chat_with("\"x\":" + std::string(10'000, '{')),
  };
  for (const auto protocol : {Protocol::kChat, Protocol::kMessages, Protocol::kResponses}) {
    for (const auto& body : bodies) {
      const auto prepared = prepare(protocol, body);
      ASSERT_FALSE(prepared) << body.substr(0, 60);
      EXPECT_EQ(prepared.error().status_code, 400);
      EXPECT_TRUE(json::accept(prepared.error().body)) << prepared.error().body;
    }
  }
}

TEST(HostileRequest, NumbersOutOfRangeAreRefused) {
  for (const char* value : {"-1", "0", "1.5", "\"5\"", "9223372036854775808", "1e400", "true", "[]"}) {
    EXPECT_FALSE(prepare(Protocol::kChat, chat_with("\"max_tokens\":" + std::string(value)))) << value;
  }
  for (const char* value : {"-0.1", "2.1", "\"1\"", "1e400", "null_"}) {
    EXPECT_FALSE(prepare(Protocol::kChat, chat_with("\"temperature\":" + std::string(value)))) << value;
  }
  for (const char* member : {"\"n\":2", "\"n\":0", "\"top_logprobs\":21", "\"seed\":-1", "\"seed\":1e30",
                             "\"top_p\":0", "\"stop\":[\"\"]", "\"stop\":5"}) {
    EXPECT_FALSE(prepare(Protocol::kChat, chat_with(member))) << member;
  }
}

TEST(HostileRequest, TheLastOfRepeatedKeysCounts) {
  const auto prepared =
      prepare(Protocol::kChat, chat_with(R"("messages":[{"role":"user","content":"second"}])"));
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_NE(prepared->prompt.text.find("second"), std::string::npos);
  EXPECT_EQ(prepared->prompt.text.find("unheard"), std::string::npos);
}

TEST(HostileRequest, ManyMessagesAndToolsTakeLinearRoom) {
  json body = {{"model", "DeepSeek-V4.1-Flash"}, {"messages", json::array()}, {"tools", json::array()}};
  for (int i = 0; i < 20'000; ++i) {
    body["messages"].push_back(
        {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", "m" + std::to_string(i)}});
  }
  for (int i = 0; i < 2'000; ++i) {
    body["tools"].push_back({{"type", "function"}, {"function", {{"name", "f" + std::to_string(i)}}}});
  }
  const auto prepared = prepare(Protocol::kChat, body.dump());
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_NE(prepared->prompt.text.find("m19999"), std::string::npos);
  EXPECT_NE(prepared->prompt.text.find("\"f1999\""), std::string::npos);
}

TEST(HostileRequest, TextOfARequestNeverBecomesAControlToken) {
  const auto tokenizer = tokenizer::Tokenizer::load(std::string(HADAL_MODELS) + "/tiny/tokenizer.json");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  std::string spellings;
  for (int32_t id = 0; id < (*tokenizer)->vocab_size(); ++id) {
    if ((*tokenizer)->is_added_token(id)) {
      spellings += std::string((*tokenizer)->token_bytes(id)) + " ";
    }
  }
  const auto count_special = [&](const std::string& system, const std::string& user,
                                 const std::string& tool) {
    json body = {{"model", "DeepSeek-V4.1-Flash"},
                 {"messages",
                  {{{"role", "system"}, {"content", system}},
                   {{"role", "user"}, {"content", user}},
                   // (grounding marks such as <box> are the model's own words in an assistant's turn)
                   {{"role", "assistant"},
                    {"content", "a"},
                    {"tool_calls",
                     {{{"id", "a"},
                       {"type", "function"},
                       {"function", {{"name", "f"}, {"arguments", "{\"x\":1}"}}}}}}},
                   {{"role", "tool"}, {"tool_call_id", "a"}, {"content", tool}},
                   {{"role", "user"}, {"content", "go on"}}}},
                 {"tools", {{{"type", "function"}, {"function", {{"name", "f"}, {"description", tool}}}}}}};
    const auto prepared = prepare(Protocol::kChat, body.dump());
    EXPECT_TRUE(prepared) << prepared.error().message;
    const auto ids = encode_prompt(prepared->prompt, **tokenizer);
    EXPECT_TRUE(ids) << ids.error().message;
    return std::count_if(ids->begin(), ids->end(),
                         [&](int32_t id) { return (*tokenizer)->is_added_token(id); });
  };
  EXPECT_EQ(count_special(spellings, spellings, spellings), count_special("s", "u", "t"));
}

}  // namespace
}  // namespace hadal::recipe
