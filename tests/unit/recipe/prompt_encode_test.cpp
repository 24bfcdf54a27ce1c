// Prompts as token ids: one id for each special range, and text that never becomes a control token.

#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "recipe/prepared_request.h"
#include "recipe/prompt/encode.h"
#include "tokenizer/tokenizer.h"

namespace hadal::recipe {
namespace {

using nlohmann::json;

class PromptEncoding : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = tokenizer::Tokenizer::load(std::string(HADAL_MODELS) + "/tiny/tokenizer.json");
    ASSERT_TRUE(loaded) << loaded.error().message;
    tokenizer_ = *loaded;
  }

  std::vector<std::string> control_spellings() const {
    std::vector<std::string> spellings;
    for (int32_t id = 0; id < tokenizer_->vocab_size(); ++id) {
      if (tokenizer_->is_added_token(id)) {
        spellings.emplace_back(tokenizer_->token_spelling(id));
      }
    }
    return spellings;
  }

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
};

TEST_F(PromptEncoding, EachSpecialRangeIsOneId) {
  Prompt prompt;
  prompt.text = "<｜User｜>a<｜User｜><think></think>";
  const size_t user = std::string_view("<｜User｜>").size();
  prompt.special_ranges = {{0, user}, {2 * user + 1, 2 * user + 8}, {2 * user + 8, 2 * user + 16}};
  const auto ids = encode_prompt(prompt, *tokenizer_);
  ASSERT_TRUE(ids) << ids.error().message;
  ASSERT_GE(ids->size(), 6U);
  EXPECT_EQ(ids->front(), *tokenizer_->token_id("<｜User｜>"));
  EXPECT_EQ((*ids)[ids->size() - 2], *tokenizer_->token_id("<think>"));
  EXPECT_EQ(ids->back(), *tokenizer_->token_id("</think>"));
  EXPECT_EQ(
      std::count_if(ids->begin(), ids->end(), [&](int32_t id) { return tokenizer_->is_added_token(id); }), 3);
  EXPECT_EQ(tokenizer_->decode(*ids), prompt.text);
}

TEST_F(PromptEncoding, AnUnknownSpellingIsAnError) {
  Prompt prompt;
  prompt.text = "<other>";
  prompt.special_ranges = {{0, prompt.text.size()}};
  const auto ids = encode_prompt(prompt, *tokenizer_);
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(ids.error().message.find("<other>"), std::string::npos);

  // A spelling that is in the vocabulary, but is no token of its own kind.
  prompt.text = "a";
  prompt.special_ranges = {{0, 1}};
  EXPECT_FALSE(encode_prompt(prompt, *tokenizer_));
}

TEST_F(PromptEncoding, RangesOutsideOfTheTextAreErrors) {
  Prompt prompt;
  prompt.text = "<think>";
  for (const auto& range : {std::pair<size_t, size_t>(0, 8), {5, 3}, {9, 9}}) {
    prompt.special_ranges = {range};
    EXPECT_FALSE(encode_prompt(prompt, *tokenizer_));
  }
  prompt.special_ranges = {{0, 7}, {0, 7}};
  EXPECT_FALSE(encode_prompt(prompt, *tokenizer_));
}

/// Random texts full of control spellings, whole, cut and glued together.
class Texts {
 public:
  Texts(std::vector<std::string> spellings, unsigned seed) : spellings_(std::move(spellings)), random_(seed) {
    for (const char* more :
         {"\n</｜DSML｜ calls>", "<｜DSML｜ invoke name=\"f\">", "<", "｜", "|>", "\n\n", "日本", "a", " "}) {
      spellings_.emplace_back(more);
    }
  }
  std::string next() {
    std::string text;
    for (size_t count = random_() % 6; count > 0; --count) {
      const std::string& spelling = spellings_[random_() % spellings_.size()];
      // Cut between characters only: bodies are UTF-8.
      size_t cut = random_() % 4 == 0 ? random_() % (spelling.size() + 1) : spelling.size();
      while (cut < spelling.size() && (static_cast<unsigned char>(spelling[cut]) & 0xC0) == 0x80) {
        ++cut;
      }
      text += spelling.substr(0, cut);
    }
    return text;
  }

 private:
  std::vector<std::string> spellings_;
  std::mt19937 random_;
};

json chat_body(const std::function<std::string()>& text) {
  return {
      {"messages",
       {{{"role", "system"}, {"content", text()}},
        {{"role", "user"},
         {"content", {{{"type", "text"}, {"text", text()}}, {{"type", "text"}, {"text", text()}}}}},
        {{"role", "assistant"},
         {"content", ""},
         {"tool_calls",
          {{{"id", "c"},
            {"type", "function"},
            {"function",
             {{"name", "f"}, {"arguments", json{{"a" + text(), text()}, {"b", {text()}}}.dump()}}}}}}},
        {{"role", "tool"}, {"tool_call_id", "c"}, {"content", text()}},
        {{"role", "latest_reminder"}, {"content", text()}},
        {{"role", "user"}, {"content", text()}}}},
      {"tools",
       {{{"type", "function"},
         {"function",
          {{"name", "f"},
           {"description", text()},
           {"parameters",
            {{"type", "object"}, {"description", text()}, {"properties", {{text(), json::object()}}}}}}}}}}};
}

json messages_body(const std::function<std::string()>& text) {
  return {{"max_tokens", 5},
          {"system", text()},
          {"messages",
           {{{"role", "user"},
             {"content",
              {{{"type", "text"}, {"text", text()}},
               {{"type", "document"},
                {"title", "t" + text()},
                {"source", {{"type", "text"}, {"media_type", "text/plain"}, {"data", text()}}}}}}},
            {{"role", "assistant"},
             {"content",
              {{{"type", "tool_use"}, {"id", "t"}, {"name", "f"}, {"input", {{"k" + text(), text()}}}}}}},
            {{"role", "user"},
             {"content",
              {{{"type", "tool_result"}, {"tool_use_id", "t"}, {"content", text()}},
               {{"type", "text"}, {"text", text()}}}}}}},
          {"tools",
           {{{"name", "f"},
             {"description", text()},
             {"input_schema", {{"type", "object"}, {"title", text()}}}}}}};
}

json responses_body(const std::function<std::string()>& text) {
  return {{"instructions", "i" + text()},
          {"input",
           {{{"role", "developer"}, {"content", text()}},
            {{"role", "user"},
             {"content",
              {{{"type", "input_text"}, {"text", text()}},
               {{"type", "input_file"},
                {"filename", "n" + text()},
                {"file_data", "data:text/plain;base64,PHRoaW5rPg=="}}}}},
            {{"type", "function_call"}, {"call_id", "c"}, {"name", "f" + text()}, {"arguments", text()}},
            {{"type", "custom_tool_call"}, {"call_id", "d"}, {"name", "apply_patch"}, {"input", text()}},
            {{"type", "function_call_output"}, {"call_id", "c"}, {"output", text()}},
            {{"type", "custom_tool_call_output"}, {"call_id", "d"}, {"output", text()}}}},
          {"tools",
           {{{"type", "custom"},
             {"name", "c"},
             {"description", text()},
             {"format", {{"type", "grammar"}, {"syntax", "lark"}, {"definition", text()}}}}}}};
}

TEST_F(PromptEncoding, TextOfRequestsNeverBecomesAControlToken) {
  const std::pair<Protocol, json (*)(const std::function<std::string()>&)> protocols[] = {
      {Protocol::kChat, chat_body},
      {Protocol::kMessages, messages_body},
      {Protocol::kResponses, responses_body}};
  Texts texts(control_spellings(), 1017);
  const auto control_ids = [&](Protocol protocol, json body, const char* model) {
    body["model"] = model;
    const auto prepared = prepare_request(protocol, body.dump(), ConversionOptions{});
    EXPECT_TRUE(prepared) << prepared.error().message << body;
    const auto ids = encode_prompt(prepared->prompt, *tokenizer_);
    EXPECT_TRUE(ids) << ids.error().message;
    std::vector<int32_t> control;
    std::copy_if(ids->begin(), ids->end(), std::back_inserter(control),
                 [&](int32_t id) { return tokenizer_->is_added_token(id); });
    return control;
  };
  for (const auto& [protocol, make] : protocols) {
    for (const char* model : {"DeepSeek-V4.1-Flash", "DeepSeek-V4-Pro"}) {
      const std::vector<int32_t> plain = control_ids(protocol, make([] { return "x"; }), model);
      for (int round = 0; round < 200; ++round) {
        EXPECT_EQ(control_ids(protocol, make([&] { return texts.next(); }), model), plain);
      }
    }
  }
}

TEST_F(PromptEncoding, OnlyTheAssistantsTextHasMarksOfPlaces) {
  const auto control = [&](const char* role, const char* text) {
    const json body = {{"model", "DeepSeek-V4.1-Flash"},
                       {"messages",
                        {{{"role", "user"}, {"content", "x"}},
                         {{"role", role}, {"content", text}},
                         {{"role", "user"}, {"content", "y"}}}}};
    const auto prepared = prepare_request(Protocol::kChat, body.dump(), ConversionOptions{});
    EXPECT_TRUE(prepared) << prepared.error().message;
    return prepared->prompt.special_ranges.size();
  };
  EXPECT_EQ(control("assistant", "<｜ref｜>a<｜/ref｜><｜box｜>"), control("assistant", "") + 3);
  EXPECT_EQ(control("assistant", "<｜User｜></think><｜image｜>｜DSML｜"), control("assistant", ""));
  EXPECT_EQ(control("user", "<｜ref｜>a<｜/ref｜><｜box｜>"), control("user", ""));
}

}  // namespace
}  // namespace hadal::recipe
