// previous_response_id and the routes of stored responses over HTTP.

#include <thread>

#include "api_fixture.h"

namespace hadal::server::testing {
namespace {

using namespace std::chrono_literals;

const std::string kResponses = "/v1/responses";
const std::string kAlice = "Authorization: Bearer alice\r\n";
const std::string kBob = "x-api-key: bob\r\n";

Json message(const std::string& text) {
  return {{"role", "user"}, {"content", text}};
}

Json request(const Json& input, const Json& more = Json::object()) {
  Json body{
      {"model", "tiny"}, {"input", input}, {"reasoning", {{"effort", "none"}}}, {"max_output_tokens", 60}};
  body.update(more);
  return body;
}

class StoredResponses : public ApiTest {
 protected:
  void answer_with(const std::string& text) {
    writer = [ids = text_and_eos(text)](const engine::Request&) {
      Script script;
      script.tokens = ids;
      return script;
    };
  }
  Json respond(const Json& body, std::string_view headers = {}) const {
    const RawResponse response = post(kResponses, body, headers);
    EXPECT_EQ(response.status, 200) << response.body;
    return Json::parse(response.body);
  }
  RawResponse remove(const std::string& id, std::string_view headers = {}) const {
    return fetch(port(), make_request("DELETE", kResponses + "/" + id, {}, headers));
  }
  std::vector<int32_t> last_prompt() const { return engine->requests().back().prompt; }
  /// A refusal that names a parameter.
  static void expect_error(const RawResponse& response, int status, const std::string& param,
                           const std::string& part) {
    EXPECT_EQ(response.status, status) << response.body;
    const Json error = Json::parse(response.body).at("error");
    EXPECT_EQ(error.at("param"), param) << response.body;
    EXPECT_NE(error.at("message").get<std::string>().find(part), std::string::npos) << response.body;
  }
};

TEST_F(StoredResponses, AreFoundByTheirId) {
  start();
  const Json answer = respond(request("Say hello"));
  EXPECT_EQ(answer.at("store"), true);
  EXPECT_TRUE(answer.at("previous_response_id").is_null());
  const std::string id = answer.at("id");
  const RawResponse found = get(kResponses + "/" + id);
  EXPECT_EQ(found.status, 200);
  EXPECT_EQ(Json::parse(found.body), answer);
  EXPECT_EQ(metric("hadal_stored_responses"), 1);
  EXPECT_EQ(metric("hadal_responses_stored_total"), 1);
  EXPECT_EQ(metric(R"(hadal_http_responses_total{route="/v1/responses/{id}",code="200"})"), 1);

  const RawResponse deleted = remove(id);
  EXPECT_EQ(deleted.status, 200);
  EXPECT_EQ(Json::parse(deleted.body), (Json{{"id", id}, {"object", "response"}, {"deleted", true}}));
  expect_error(get(kResponses + "/" + id), 404, "response_id", id);
  expect_error(remove(id), 404, "response_id", id);
  expect_error(get(kResponses + "/" + id + "/input_items"), 404, "response_id", id);
  EXPECT_EQ(metric("hadal_stored_responses"), 0);
}

TEST_F(StoredResponses, AStreamIsStoredAtItsEnd) {
  start();
  const RawResponse response = post(kResponses, request("Say hello", {{"stream", true}}));
  const Json completed = Json::parse(events(response).back());
  ASSERT_EQ(completed.at("type"), "response.completed");
  const Json answer = completed.at("response");
  EXPECT_EQ(answer.at("store"), true);
  EXPECT_EQ(Json::parse(get(kResponses + "/" + answer.at("id").get<std::string>()).body), answer);
}

TEST_F(StoredResponses, NotThoseThatAskNotTo) {
  start();
  const Json answer = respond(request("Say hello", {{"store", false}}));
  EXPECT_EQ(answer.at("store"), false);
  expect_error(get(kResponses + "/" + answer.at("id").get<std::string>()), 404, "response_id", "not found");
  EXPECT_EQ(metric("hadal_responses_stored_total"), 0);
}

TEST_F(StoredResponses, ACutOffAnswerIsStoredAsIncomplete) {
  start();
  const Json answer = respond(request("Say hello", {{"max_output_tokens", 1}}));
  EXPECT_EQ(answer.at("status"), "incomplete");
  const Json found = Json::parse(get(kResponses + "/" + answer.at("id").get<std::string>()).body);
  EXPECT_EQ(found.at("status"), "incomplete");
}

TEST_F(StoredResponses, AnAnswerThatTheClientLeftIsNotStored) {
  writer = [](const engine::Request&) {
    Script script;
    script.tokens = text_and_eos("a b c d");
    script.step = 20ms;
    script.repeats = true;
    return script;
  };
  start();
  {
    RawClient client(port());
    client.send(make_request("POST", kResponses,
                             request("x", {{"stream", true}, {"max_output_tokens", 900}}).dump()));
    client.read_until("response.output_text.delta");
  }
  EXPECT_TRUE(eventually([&] { return engine->running() == 0; }));
  EXPECT_EQ(metric("hadal_responses_stored_total"), 0);
}

TEST_F(StoredResponses, AFailedAnswerIsNotStored) {
  writer = [](const engine::Request&) {
    Script script;
    script.tokens = text_and_eos("ab");
    script.finish = engine::FinishReason::kError;
    script.error = Error{ErrorCode::kIo, "read failed"};
    return script;
  };
  start();
  post(kResponses, request("x", {{"stream", true}}));
  EXPECT_EQ(post(kResponses, request("x")).status, 500);
  EXPECT_EQ(metric("hadal_responses_stored_total"), 0);
}

TEST_F(StoredResponses, GoingOnEqualsSendingItAll) {
  start();
  Json items = Json::array();
  std::string previous;
  for (const std::string text : {"Who are you?", "And who am I?", "Go on."}) {
    const Json input = text == "Go on." ? Json(text) : Json::array({message(text)});
    Json body = request(input, {{"instructions", "Be brief in " + text}});
    if (!previous.empty()) {
      body["previous_response_id"] = previous;
    }
    const Json answer = respond(body);
    EXPECT_EQ(answer.at("previous_response_id"), previous.empty() ? Json() : Json(previous));
    const auto chained = last_prompt();
    items.push_back(message(text));
    respond(request(items, {{"instructions", "Be brief in " + text}, {"store", false}}));
    EXPECT_EQ(chained, last_prompt()) << text;  // with its own instructions and no others
    for (const Json& item : answer.at("output")) {
      items.push_back(item);
    }
    previous = answer.at("id");
  }
}

TEST_F(StoredResponses, ReasoningAndToolCallsGoOn) {
  const Json tools =
      Json::array({{{"type", "function"},
                    {"name", "weather"},
                    {"parameters", {{"type", "object"}, {"properties", {{"city", {{"type", "string"}}}}}}}}});
  answer_with(
      "I must look.</think>\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"weather\">\n"
      "<｜DSML｜parameter name=\"city\" string=\"true\">Paris</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
      "</｜DSML｜tool_calls>");
  start();
  const Json more{{"tools", tools}, {"reasoning", {{"effort", "high"}}}, {"max_output_tokens", 200}};
  const Json first = respond(request(Json::array({message("Weather in Paris?")}), more));
  std::vector<std::string> types;
  std::string call_id;
  for (const Json& item : first.at("output")) {
    types.push_back(item.at("type"));
    call_id = item.value("call_id", call_id);
  }
  ASSERT_EQ(types, (std::vector<std::string>{"reasoning", "function_call"})) << first;
  const Json output{{"type", "function_call_output"}, {"call_id", call_id}, {"output", "Sunny"}};

  Json body = request(Json::array({output}), more);
  body["previous_response_id"] = first.at("id");
  respond(body);
  const auto chained = last_prompt();
  Json all = Json::array({message("Weather in Paris?")});
  all.insert(all.end(), first["output"].begin(), first["output"].end());
  all.push_back(output);
  respond(request(all, more));
  EXPECT_EQ(chained, last_prompt());

  // What the items of before do not allow is refused as if they had been sent.
  body["input"] = Json::array({message("Never mind")});
  const RawResponse unanswered = post(kResponses, body);
  EXPECT_EQ(unanswered.status, 400);
  EXPECT_NE(unanswered.body.find("No tool output found"), std::string::npos) << unanswered.body;
  // Places in errors are those of the request.
  body["input"] = Json::array(
      {output, {{"role", "user"}, {"content", {{{"type", "input_image"}, {"image_url", "gopher://x"}}}}}});
  EXPECT_NE(post(kResponses, body).body.find("input[1]"), std::string::npos) << post(kResponses, body).body;
}

TEST_F(StoredResponses, WhatIsNotThereCannotBeGoneOnFrom) {
  start();
  const std::string id = respond(request("One")).at("id");
  Json body = request("Two");
  body["previous_response_id"] = id;
  const std::string second = respond(body).at("id");
  for (const std::string& unknown :
       {std::string("resp_none"), std::string(), std::string("x\r\ny"), id + "0"}) {
    body["previous_response_id"] = unknown;
    expect_error(post(kResponses, body), 400, "previous_response_id", "not found");
  }
  for (const Json& wrong : {Json(5), Json::array(), Json(true)}) {
    body["previous_response_id"] = wrong;
    expect_error(post(kResponses, body), 400, "previous_response_id", "not a string");
  }
  expect_error(post(kResponses, request("x", {{"store", "yes"}})), 400, "store", "not true or false");
  // An earlier link that is gone breaks the chain, and is named.
  remove(id);
  body["previous_response_id"] = second;
  expect_error(post(kResponses, body), 400, "previous_response_id", id);
  EXPECT_EQ(engine->requests().size(), 2U);
}

TEST_F(StoredResponses, ChainsAreBounded) {
  api_options.policy.max_chain_responses = 2;
  start();
  Json body = request("One");
  body["previous_response_id"] = respond(body).at("id");
  body["previous_response_id"] = respond(body).at("id");
  body["previous_response_id"] = respond(body).at("id");
  expect_error(post(kResponses, body), 400, "previous_response_id", "more than 2 responses");
}

TEST_F(StoredResponses, KeysDoNotSeeEachOther) {
  start();
  const std::string id = respond(request("One"), kAlice).at("id");
  EXPECT_EQ(get(kResponses + "/" + id, kAlice).status, 200);
  EXPECT_EQ(get(kResponses + "/" + id, "x-api-key: alice\r\n").status, 200);  // the same key
  for (const std::string& headers : {kBob, std::string()}) {
    expect_error(get(kResponses + "/" + id, headers), 404, "response_id", "not found");
    expect_error(get(kResponses + "/" + id + "/input_items", headers), 404, "response_id", "not found");
    expect_error(remove(id, headers), 404, "response_id", "not found");
    expect_error(post(kResponses + "/" + id + "/cancel", Json::object(), headers), 404, "response_id",
                 "not found");
    expect_error(post(kResponses, request("Two", {{"previous_response_id", id}}), headers), 400,
                 "previous_response_id", "not found");
  }
  EXPECT_EQ(get(kResponses + "/" + id, kAlice).status, 200);
}

TEST_F(StoredResponses, TheirRoutesAskForTheKey) {
  api_options.api_key = "secret";
  start();
  const std::string key = "Authorization: Bearer secret\r\n";
  const std::string id = respond(request("One"), key).at("id");
  const std::string path = kResponses + "/" + id;
  for (const std::string& wrong : {std::string(), kAlice, std::string("x-api-key: secret2\r\n")}) {
    EXPECT_EQ(get(path, wrong).status, 401);
    EXPECT_EQ(get(path + "/input_items", wrong).status, 401);
    EXPECT_EQ(remove(id, wrong).status, 401);
    EXPECT_EQ(post(path + "/cancel", Json::object(), wrong).status, 401);
  }
  EXPECT_EQ(get(path, key).status, 200);
}

TEST_F(StoredResponses, ListsInputItems) {
  start();
  const Json items =
      Json::array({message("One"), {{"type", "message"}, {"role", "assistant"}, {"content", "Two"}}});
  const std::string first = respond(request(items)).at("id");
  const Json answer = respond(request("Three", {{"previous_response_id", first}}));
  const std::string path = kResponses + "/" + answer.at("id").get<std::string>() + "/input_items";
  const Json list = Json::parse(get(path + "?order=asc").body);
  EXPECT_EQ(list.at("object"), "list");
  EXPECT_EQ(list.at("has_more"), false);
  std::string texts;
  for (const Json& item : list.at("data")) {
    EXPECT_EQ(item.at("type"), "message");
    EXPECT_TRUE(item.at("id").is_string());
    texts += item.at("content").at(0).at("text").get<std::string>() + "|";
  }
  EXPECT_EQ(texts, "One|Two|Hello world|Three|");
  EXPECT_EQ(list.at("first_id"), list["data"][0]["id"]);
  EXPECT_EQ(list.at("last_id"), list["data"][3]["id"]);
  // Newest first by default, in pages.
  Json page = Json::parse(get(path + "?limit=3").body);
  EXPECT_EQ(page.at("has_more"), true);
  EXPECT_EQ(page.at("data").at(0), list["data"][3]);
  page = Json::parse(get(path + "?limit=3&after=" + page.at("last_id").get<std::string>()).body);
  EXPECT_EQ(page.at("has_more"), false);
  ASSERT_EQ(page.at("data").size(), 1U);
  EXPECT_EQ(page["data"][0], list["data"][0]);
  expect_error(get(path + "?limit=0"), 400, "limit", "limit");
  expect_error(get(path + "?limit=101"), 400, "limit", "limit");
  expect_error(get(path + "?limit=-1"), 400, "limit", "limit");
  expect_error(get(path + "?order=up"), 400, "order", "order");
  expect_error(get(path + "?after=none"), 400, "after", "after");
}

TEST_F(StoredResponses, NothingCanBeCancelledOrStreamedAgain) {
  start();
  const std::string id = respond(request("One")).at("id");
  expect_error(post(kResponses + "/" + id + "/cancel", Json::object()), 400, "response_id", "Cannot cancel");
  expect_error(post(kResponses + "/resp_none/cancel", Json::object()), 404, "response_id", "not found");
  expect_error(get(kResponses + "/" + id + "?stream=true"), 400, "stream", "stream");
  expect_error(get(kResponses + "/" + id + "?starting_after=3"), 400, "starting_after", "starting_after");
  EXPECT_EQ(get(kResponses + "/" + id + "?stream=false").status, 200);
}

TEST_F(StoredResponses, PathsAreExact) {
  start();
  const std::string id = respond(request("One")).at("id");
  for (const std::string& path :
       std::vector<std::string>{"/v1/responses/", "/v1/responses//" + id, "/v1/responses/" + id + "/",
                                "/v1/responses/" + id + "/cancel/", "/v1/responses/" + id + "/output",
                                "//v1/responses/" + id, "/v1/responses%2F" + id}) {
    EXPECT_EQ(get(path).status, 404) << path;
  }
  EXPECT_EQ(get("/v1/responses/" + id + "/cancel").status, 405);
  EXPECT_EQ(post("/v1/responses/" + id, Json::object()).status, 405);
  EXPECT_EQ(fetch(port(), make_request("DELETE", "/v1/models")).status, 405);
  const RawResponse refused = fetch(port(), make_request("PUT", "/v1/responses/" + id));
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.headers.at("allow"), "GET, HEAD, DELETE");
}

TEST_F(StoredResponses, AreRefusedByNameWhereNothingIsStored) {
  stores_responses = false;
  start();
  EXPECT_EQ(respond(request("One")).at("store"), false);
  expect_error(post(kResponses, request("x", {{"store", true}})), 400, "store", "not stored");
  expect_error(post(kResponses, request("x", {{"previous_response_id", "resp_1"}})), 400,
               "previous_response_id", "not stored");
  expect_error(get(kResponses + "/resp_1"), 404, "response_id", "not found");
}

TEST_F(StoredResponses, AStoreThatFailsLeavesAnswersAlone) {
  store_options.path = "/proc/no-such-place/responses.db";
  start();
  const Json answer = respond(request("One"));
  EXPECT_EQ(answer.at("status"), "completed");
  EXPECT_EQ(get(kResponses + "/" + answer.at("id").get<std::string>()).status, 503);
  EXPECT_EQ(post(kResponses, request("Two", {{"previous_response_id", answer.at("id")}})).status, 503);
  EXPECT_GE(metric("hadal_response_store_failures_total"), 1);
  EXPECT_EQ(get("/healthz").status, 200);
}

TEST_F(StoredResponses, DeepBodiesAreReadInFull) {
  start();
  // As deep as the reader of the recipe goes: the fields beside it must still count.
  std::string schema = R"({"type":"object"})";
  for (int depth = 0; depth < 40; ++depth) {
    schema = R"({"type":"object","properties":{"a":)" + schema + "}}";
  }
  Json body = request("x", {{"store", false}, {"top_k", "many"}});
  body["tools"] = Json::array({{{"type", "function"}, {"name", "f"}, {"parameters", Json::parse(schema)}}});
  const RawResponse response = post(kResponses, body);
  EXPECT_EQ(response.status, 400) << response.body;
  EXPECT_NE(response.body.find("top_k"), std::string::npos) << response.body;
  // So must names that are spelled with escapes.
  const RawResponse escaped = post_text(kResponses, R"({"model":"tiny","input":"x","\u0074op_k":"many"})");
  EXPECT_NE(escaped.body.find("top_k"), std::string::npos) << escaped.body;
}

}  // namespace
}  // namespace hadal::server::testing
