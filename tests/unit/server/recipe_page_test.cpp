// The demo page and the two routes behind it. tests/e2e/test_recipe_page.py uses the page in a browser.

#include <array>
#include <fstream>

#include "api_fixture.h"
#include "recipe/json_lines.h"
#include "server/recipe_routes.h"

namespace hadal::server::testing {
namespace {

const std::string kHello = R"({"model":"tiny","messages":[{"role":"user","content":"Hi"}]})";

class RecipePage : public ApiTest {
 protected:
  Json render(const Json& question) const { return Json::parse(post("/recipe/render", question).body); }
  Json parse(const Json& question) const { return Json::parse(post("/recipe/parse", question).body); }
  static std::string message_of(const RawResponse& response) {
    return Json::parse(response.body).at("error").at("message").get<std::string>();
  }
};

TEST_F(RecipePage, IsOneFileUnderAPolicyThatAllowsNothingElse) {
  start();
  const RawResponse page = get("/recipe");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.at("content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.headers.at("x-content-type-options"), "nosniff");
  const std::string& policy = page.headers.at("content-security-policy");
  EXPECT_TRUE(policy.starts_with("default-src 'none'; style-src 'sha256-")) << policy;
  for (const char* part :
       {"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "connect-src 'self'"}) {
    EXPECT_NE(policy.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  for (const char* part :
       {"http:", "https:", "src=\"", "href=\"", "innerHTML", "@STYLE@", "@SCRIPT@", "@FORMATS@"}) {
    EXPECT_EQ(page.body.find(part), std::string::npos) << part;
  }
  EXPECT_NE(page.body.find("data-formats=\"v4 v41\""), std::string::npos);
  EXPECT_EQ(fetch(port(), make_request("HEAD", "/recipe")).status, 200);
  EXPECT_EQ(post_text("/recipe", "{}").status, 405);
  EXPECT_EQ(get("/recipe/render").status, 405);
  EXPECT_EQ(get("/recipe/").status, 404);
  EXPECT_NE(get("/").body.find("/recipe"), std::string::npos);
}

TEST_F(RecipePage, OpensWithoutAKeyButAnswersNothing) {
  api_options.api_key = "sk-right";
  start();
  EXPECT_EQ(get("/recipe").status, 200);
  const Json question{{"protocol", "chat"}, {"request_text", kHello}};
  EXPECT_EQ(post("/recipe/render", question).status, 401);
  EXPECT_EQ(post("/recipe/parse", question, "x-api-key: sk-wrong\r\n").status, 401);
  EXPECT_EQ(post("/recipe/render", question, "x-api-key: sk-right\r\n").status, 200);
}

TEST_F(RecipePage, OpensWhileTheModelIsLoading) {
  loads_model = false;
  start();
  EXPECT_NE(get("/recipe").body.find("data-formats=\"\""), std::string::npos);
  EXPECT_EQ(post("/recipe/render", {{"protocol", "chat"}, {"request_text", kHello}}).status, 503);
}

TEST_F(RecipePage, CanBeSwitchedOff) {
  api_options.recipe_page = false;
  start();
  EXPECT_EQ(get("/recipe").status, 404);
  EXPECT_EQ(post("/recipe/render", {{"protocol", "chat"}, {"request_text", kHello}}).status, 404);
  EXPECT_EQ(post("/recipe/parse", {{"protocol", "chat"}, {"text", ""}}).status, 404);
  EXPECT_EQ(get("/").body.find("/recipe"), std::string::npos);
}

TEST_F(RecipePage, SwitchedOffItAsksForTheKeyAsUnknownPathsDo) {
  api_options.recipe_page = false;
  api_options.api_key = "sk-right";
  start();
  EXPECT_EQ(get("/recipe").status, 401);
}

TEST_F(RecipePage, RendersAsTheFilterOfTheCommandLineDoes) {
  start();
  const std::string body =
      R"({"model":"DeepSeek-V4.1-Flash","messages":[{"role":"user","content":"Hi \u00e9"}],"seed":9223372036854775807})";
  const Json line =
      Json::parse(recipe::render_line(Json{{"id", "1"}, {"protocol", "chat"}, {"request_text", body}}.dump(),
                                      {tiny_tokenizer(), tiny_tokenizer()}));
  const Json answer = render({{"protocol", "chat"}, {"request_text", body}});
  for (const auto& [name, value] : line.at("result").items()) {
    EXPECT_EQ(answer.at("result").at(name), value) << name;
  }
  EXPECT_FALSE(answer.contains("refusal"));
}

TEST_F(RecipePage, SaysWhatEveryTokenIs) {
  start();
  // The tiny vocabulary has no token for this character but for its bytes.
  const std::string body = R"({"model":"tiny","messages":[{"role":"user","content":"\u00e9<think>"}]})";
  const Json result = render({{"protocol", "chat"}, {"request_text", body}}).at("result");
  const size_t num_tokens = result.at("token_ids").size();
  ASSERT_EQ(result.at("token_texts").size(), num_tokens);
  std::vector<std::string> special;
  for (const Json& index : result.at("special_tokens")) {
    special.push_back(result.at("token_texts").at(index.get<size_t>()));
  }
  EXPECT_EQ(special.size(), result.at("special_ranges").size());
  EXPECT_EQ(special.front(), "<｜begin▁of▁sentence｜>");
  EXPECT_NE(result.at("token_texts").dump().find(R"("\\xC3","\\xA9")"), std::string::npos)
      << result.at("token_texts");
}

TEST_F(RecipePage, LongPromptsKeepTheirConversation) {
  start();
  const std::string text(5000, 'x');
  const Json body{{"model", "tiny"}, {"messages", {{{"role", "user"}, {"content", text}}}}};
  const Json result = render({{"protocol", "chat"}, {"request_text", body.dump()}}).at("result");
  EXPECT_EQ(result.at("conversation").at("messages").at(0).at("content"), text);
}

TEST_F(RecipePage, TheFormatStandsInForTheOneOfTheName) {
  start();
  for (const char* model : {"tiny", "DeepSeek-V4.1-Flash"}) {
    const std::string body =
        Json{{"model", model}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}}.dump();
    for (const char* format : {"v4", "v41"}) {
      const Json answer = render({{"protocol", "chat"}, {"request_text", body}, {"format", format}});
      EXPECT_EQ(answer.at("result").at("model_version"), format);
    }
    EXPECT_EQ(render({{"protocol", "chat"}, {"request_text", body}}).at("result").at("model_version"), "v41");
  }
}

TEST_F(RecipePage, OffersNoFormatThatTheTokenizerCannotSpell) {
  std::ifstream file(HADAL_MODELS "/tiny/tokenizer.json");
  const Json whole = Json::parse(file);
  const auto formats = [&](std::string_view missing) {
    Json changed = whole;
    Json& added = changed["added_tokens"];
    for (size_t i = added.size(); i-- > 0;) {
      if (added[i]["content"] == missing) {
        added[i]["content"] = "<|something else|>";
      }
    }
    auto tokenizer = tokenizer::Tokenizer::parse(changed.dump(), "changed");
    EXPECT_TRUE(tokenizer) << tokenizer.error().message;
    ModelService model;
    model.tokenizer = *tokenizer;
    model.names = {"tiny"};
    const std::string page = recipe_page(&model).body;
    const size_t begin = page.find("data-formats=\"") + 14;
    return page.substr(begin, page.find('"', begin) - begin);
  };
  EXPECT_EQ(formats("nothing"), "v4 v41");
  EXPECT_EQ(formats("<｜System｜>"), "v4");
  EXPECT_EQ(formats("<｜User｜>"), "");
}

TEST_F(RecipePage, ErrorsAreThoseOfTheRoutesForAnswers) {
  start();
  const std::vector<std::array<std::string, 3>> cases{
      {"chat", "/v1/chat/completions", "{"},
      {"chat", "/v1/chat/completions", R"({"model":"nobody","messages":[{"role":"user","content":"Hi"}]})"},
      {"messages", "/v1/messages", R"({"model":"tiny","max_tokens":5,"messages":[]})"},
      {"responses", "/v1/responses", R"({"model":"tiny","input":7})"}};
  for (const auto& [protocol, path, body] : cases) {
    const RawResponse real = post_text(path, body);
    ASSERT_GE(real.status, 400) << body;
    const Json error = render({{"protocol", protocol}, {"request_text", body}}).at("error");
    EXPECT_EQ(error.at("status_code"), real.status) << body;
    EXPECT_EQ(error.at("body"), real.body) << body;
  }
  // One that can be read, and has no room in the context.
  const std::string body =
      Json{{"model", "tiny"}, {"max_tokens", 5000}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}}
          .dump();
  const Json answer = render({{"protocol", "chat"}, {"request_text", body}});
  EXPECT_TRUE(answer.contains("result"));
  const RawResponse real = post_text("/v1/chat/completions", body);
  EXPECT_EQ(answer.at("refusal").at("status_code"), real.status);
  EXPECT_EQ(answer.at("refusal").at("body"), real.body);
}

TEST_F(RecipePage, QuestionsThatCannotBeReadNameTheMember) {
  start();
  const std::vector<std::pair<Json, std::string>> render_cases{
      {Json::object(), "protocol"},
      {{{"protocol", "smtp"}, {"request_text", ""}}, "protocol"},
      {{{"protocol", 5}, {"request_text", ""}}, "protocol"},
      {{{"protocol", "chat"}}, "request_text"},
      {{{"protocol", "chat"}, {"request_text", Json::object()}}, "request_text"},
      {{{"protocol", "chat"}, {"request_text", "{}"}, {"format", "v5"}}, "format"},
      {{{"protocol", "chat"}, {"request_text", "{}"}, {"colour", 1}}, "colour"}};
  for (const auto& [question, name] : render_cases) {
    const RawResponse response = post("/recipe/render", question);
    EXPECT_EQ(response.status, 400) << question;
    EXPECT_TRUE(message_of(response).starts_with(name + ":")) << response.body;
  }
  const Json good{{"protocol", "chat"}, {"text", "Hi"}};
  const std::vector<std::pair<std::string, Json>> parse_cases{{"protocol", nullptr},
                                                              {"text", nullptr},
                                                              {"text", 5},
                                                              {"thinking", "yes"},
                                                              {"tool_calls", 1},
                                                              {"tokens_per_piece", -1},
                                                              {"tokens_per_piece", 1.5},
                                                              {"finish", "exhausted"},
                                                              {"request_text", 1},
                                                              {"colour", 1}};
  for (const auto& [name, value] : parse_cases) {
    Json question = good;
    question[name] = value;
    const RawResponse response = post("/recipe/parse", question);
    EXPECT_EQ(response.status, 400) << question;
    EXPECT_TRUE(message_of(response).starts_with(name + ":")) << response.body;
  }
  EXPECT_EQ(post_text("/recipe/render", "[]").status, 400);
  EXPECT_EQ(post_text("/recipe/parse", std::string(100'000, '[')).status, 400);
}

TEST_F(RecipePage, TakesNoMoreThanCanBeRead) {
  start();
  const std::string large((2 << 20) + 1, ' ');
  EXPECT_EQ(post_text("/recipe/render", large).status, 413);
  EXPECT_EQ(post_text("/recipe/parse", large).status, 413);
  std::string text;
  for (int i = 0; i < 50'000; ++i) {
    text += "a ";
  }
  const RawResponse many = post("/recipe/parse", {{"protocol", "chat"}, {"text", text}});
  EXPECT_EQ(many.status, 400);
  EXPECT_TRUE(message_of(many).starts_with("tokens_per_piece:")) << many.body;
  for (const int tokens : {0, 100}) {
    const Json answer =
        parse({{"protocol", "chat"}, {"text", text}, {"thinking", false}, {"tokens_per_piece", tokens}});
    EXPECT_EQ(answer.at("response").at("choices").at(0).at("message").at("content"), text);
  }
  // A megabyte is rendered, and with it each of its tokens.
  const std::string long_text(1 << 20, 'x');
  const Json body{{"model", "tiny"}, {"messages", {{{"role", "user"}, {"content", long_text}}}}};
  const Json answer = render({{"protocol", "chat"}, {"request_text", body.dump()}});
  EXPECT_EQ(answer.at("result").at("token_texts").size(), answer.at("result").at("token_ids").size());
  EXPECT_TRUE(answer.contains("refusal"));  // the context of this server has 1000 tokens
}

TEST_F(RecipePage, ParsesAnOutputForEveryProtocol) {
  start();
  const std::string text = "Hm</think>Hello";
  for (const bool whole : {false, true}) {
    Json question{{"text", text}, {"thinking", true}, {"tokens_per_piece", whole ? 0 : 1}};
    question["protocol"] = "chat";
    Json answer = parse(question);
    const Json& message = answer.at("response").at("choices").at(0).at("message");
    EXPECT_EQ(message.at("reasoning_content"), "Hm");
    EXPECT_EQ(message.at("content"), "Hello");
    question["protocol"] = "messages";
    answer = parse(question);
    EXPECT_EQ(answer.at("response").at("content").at(1).at("text"), "Hello");
    EXPECT_EQ(answer.at("events").at(0).at("name"), "message_start");
    question["protocol"] = "responses";
    answer = parse(question);
    EXPECT_EQ(answer.at("response").at("output").at(1).at("content").at(0).at("text"), "Hello");
    for (const Json& event : answer.at("events")) {
      EXPECT_EQ(Json::parse(event.at("data").get<std::string>()).at("type"), event.at("name"));
    }
  }
}

TEST_F(RecipePage, AnOutputCanAnswerARequest) {
  start();
  Json question{{"protocol", "chat"}, {"text", "Hello STOP there"}, {"thinking", false}};
  question["request_text"] =
      R"({"model":"tiny","stop":["STOP"],"stream":true,"messages":[{"role":"user","content":"Hi"}]})";
  const Json choice = parse(question).at("response").at("choices").at(0);
  EXPECT_EQ(choice.at("message").at("content"), "Hello ");
  EXPECT_EQ(choice.at("finish_reason"), "stop");
  question["request_text"] = R"({"model":"tiny"})";
  EXPECT_EQ(parse(question).at("error").at("status_code"), 400);
}

TEST_F(RecipePage, WarnsOfOddOutput) {
  start();
  const std::string text =
      "x<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"a\" string=\"true\">b";
  const Json answer =
      parse({{"protocol", "chat"}, {"text", text}, {"thinking", false}, {"tool_calls", true}});
  EXPECT_EQ(answer.at("warnings").at(0), "1 call(s) cut off by the end of the output");
  EXPECT_TRUE(parse({{"protocol", "chat"}, {"text", text}, {"thinking", false}}).at("warnings").empty());
}

}  // namespace
}  // namespace hadal::server::testing
