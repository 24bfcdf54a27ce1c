// POST /v1/completions over HTTP, with a scripted engine.

#include "api_fixture.h"

namespace hadal::server::testing {
namespace {

using engine::FinishReason;

class Completions : public ApiTest {
 protected:
  /// The engine answers with this text; one token a step.
  void answer_with(std::string text) {
    writer = [text = std::move(text)](const engine::Request&) { return Script{text_and_eos(text)}; };
  }
  RawResponse complete(const Json& fields) const {
    Json body{{"model", "tiny"}, {"prompt", "Once"}};
    body.update(fields);
    return post("/v1/completions", body);
  }
  void expect_refused(const Json& fields, const std::string& param, const std::string& part = "") const {
    const RawResponse response = complete(fields);
    EXPECT_EQ(response.status, 400) << fields << response.body;
    const Json error = Json::parse(response.body).at("error");
    EXPECT_EQ(error.at("param"), param) << fields << response.body;
    EXPECT_NE(error.at("message").get<std::string>().find(part), std::string::npos) << response.body;
  }
};

TEST_F(Completions, AnswersAPrompt) {
  start();
  const RawResponse response = complete({{"max_tokens", 50}});
  ASSERT_EQ(response.status, 200) << response.body;
  const Json answer = Json::parse(response.body);
  EXPECT_EQ(answer.at("object"), "text_completion");
  EXPECT_EQ(answer.at("model"), "tiny");
  EXPECT_EQ(answer.at("choices").size(), 1U);
  EXPECT_EQ(answer["choices"][0].at("text"), "Hello world");
  EXPECT_EQ(answer["choices"][0].at("finish_reason"), "stop");
  EXPECT_TRUE(answer["choices"][0].at("logprobs").is_null());
  const auto tokens = static_cast<int64_t>(text_and_eos("Hello world").size());
  EXPECT_EQ(answer.at("usage").at("completion_tokens"), tokens);
  const auto prompt = engine->requests().at(0).prompt;
  EXPECT_EQ(prompt.front(), 0);  // BOS
  EXPECT_EQ(answer["usage"].at("prompt_tokens"), prompt.size());
  EXPECT_EQ(answer["usage"].at("total_tokens"), prompt.size() + static_cast<size_t>(tokens));
}

TEST_F(Completions, StreamsWhatItAnswersWhole) {
  answer_with("Grüße, 世界! 👍 done");
  start();
  const std::string whole = Json::parse(complete({{"max_tokens", 100}}).body)["choices"][0]["text"];
  const RawResponse response =
      complete({{"max_tokens", 100}, {"stream", true}, {"stream_options", {{"include_usage", true}}}});
  EXPECT_TRUE(response.is_complete);
  EXPECT_TRUE(response.headers.at("content-type").starts_with("text/event-stream"));
  const auto data = events(response);
  ASSERT_GE(data.size(), 3U);
  EXPECT_EQ(data.back(), "[DONE]");
  std::string text;
  for (size_t i = 0; i + 2 < data.size(); ++i) {
    const Json chunk = Json::parse(data[i]);
    text += chunk.at("choices").at(0).at("text");
    EXPECT_TRUE(chunk.at("usage").is_null());
    EXPECT_EQ(chunk["choices"][0].at("finish_reason").is_null(), i + 3 != data.size());
  }
  EXPECT_EQ(text, whole);
  EXPECT_EQ(text, "Grüße, 世界! 👍 done");
  const Json last = Json::parse(data[data.size() - 2]);
  EXPECT_TRUE(last.at("choices").empty());
  EXPECT_EQ(last.at("usage").at("completion_tokens"), text_and_eos(text).size());
}

TEST_F(Completions, TakesTokenIdsAndListsAndN) {
  start();
  complete({{"prompt", {11, 12, 13}}});
  EXPECT_EQ(engine->requests().at(0).prompt, (std::vector<int32_t>{11, 12, 13}));
  const Json answer =
      Json::parse(complete({{"prompt", Json::parse("[[20], [21, 22]]")}, {"n", 3}, {"seed", 7}}).body);
  ASSERT_EQ(answer.at("choices").size(), 6U);
  EXPECT_EQ(answer["choices"][5].at("index"), 5);
  EXPECT_EQ(answer.at("usage").at("prompt_tokens"), 3);  // each prompt once
  const auto requests = engine->requests();
  ASSERT_EQ(requests.size(), 7U);
  EXPECT_EQ(requests[1].sampling.seed, 7U);  // the first answer does not depend on n
  EXPECT_NE(requests[2].sampling.seed, 7U);
  EXPECT_EQ(requests[4].sampling.seed, 7U);
  EXPECT_EQ(requests[4].prompt, (std::vector<int32_t>{21, 22}));
}

TEST_F(Completions, PassesSamplingParameters) {
  start();
  complete({{"max_tokens", 5},
            {"temperature", 0.25},
            {"top_p", 0.5},
            {"top_k", 40},
            {"seed", 9},
            {"ignore_eos", true},
            {"stop_token_ids", {3, 4}}});
  const auto sampling = engine->requests().at(0).sampling;
  EXPECT_EQ(sampling.max_tokens, 5);
  EXPECT_EQ(sampling.temperature, 0.25);
  EXPECT_EQ(sampling.top_p, 0.5);
  EXPECT_EQ(sampling.top_k, 40);
  EXPECT_EQ(sampling.seed, 9U);
  EXPECT_TRUE(sampling.ignore_eos);
  EXPECT_EQ(sampling.stop_token_ids, (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(sampling.top_logprobs, -1);
  complete({{"top_k", 0}});
  EXPECT_EQ(engine->requests().at(1).sampling.top_k, -1);
  EXPECT_EQ(engine->requests().at(1).sampling.max_tokens, 16);
}

TEST_F(Completions, StopSequencesNeverReachTheClient) {
  answer_with("one STOPHERE two");
  start();
  for (const bool stream : {false, true}) {
    const RawResponse response =
        complete({{"max_tokens", 100}, {"stop", {"STOPHERE", "zzz"}}, {"stream", stream}});
    std::string text;
    if (stream) {
      EXPECT_EQ(response.body.find("STO"), std::string::npos) << response.body;
      for (const std::string& data : events(response)) {
        text += data == "[DONE]" ? "" : Json::parse(data)["choices"][0]["text"].get<std::string>();
      }
    } else {
      const Json answer = Json::parse(response.body);
      text = answer["choices"][0]["text"];
      EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
    }
    EXPECT_EQ(text, "one ");
  }
  // What only begins like a stop sequence comes out in the end.
  const Json answer = Json::parse(complete({{"max_tokens", 100}, {"stop", "twoX"}}).body);
  EXPECT_EQ(answer["choices"][0]["text"], "one STOPHERE two");
}

TEST_F(Completions, AStopSequenceEndsTheEngineRequest) {
  writer = [](const engine::Request&) {
    Script script{text_and_eos("ab END "), true};
    script.step = std::chrono::milliseconds(1);
    return script;
  };
  start();
  const RawResponse response = complete({{"max_tokens", 900}, {"stop", "END"}});
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(eventually([&] { return engine->running() == 0; }));
  EXPECT_EQ(engine->stats().finished_cancelled_total, 1U);
  EXPECT_LT(Json::parse(response.body)["usage"]["completion_tokens"], 20);
}

TEST_F(Completions, EndsAtMaxTokens) {
  start();
  const Json answer = Json::parse(complete({{"max_tokens", 1}}).body);
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 1);
}

TEST_F(Completions, EchoRepeatsThePrompt) {
  start();
  EXPECT_EQ(Json::parse(complete({{"echo", true}, {"prompt", "Say: "}}).body)["choices"][0]["text"],
            "Say: Hello world");
  const auto data = events(complete({{"echo", true}, {"prompt", "Say: "}, {"stream", true}}));
  std::string text;
  for (size_t i = 0; i + 1 < data.size(); ++i) {
    text += Json::parse(data[i])["choices"][0]["text"];
  }
  EXPECT_EQ(text, "Say: Hello world");
}

TEST_F(Completions, ReportsLogprobs) {
  start();
  const Json logprobs = Json::parse(complete({{"logprobs", 2}}).body)["choices"][0]["logprobs"];
  const size_t count = text_and_eos("Hello world").size() - 1;  // EOS has no text
  EXPECT_EQ(logprobs.at("tokens").size(), count);
  EXPECT_EQ(logprobs.at("token_logprobs").at(0), -0.5);
  EXPECT_EQ(logprobs.at("top_logprobs").at(0).size(), 2U);
  EXPECT_EQ(logprobs.at("text_offset").at(0), 0);
  std::string text;
  for (const Json& token : logprobs["tokens"]) {
    text += token;
  }
  EXPECT_EQ(text, "Hello world");

  const auto data = events(complete({{"logprobs", 2}, {"stream", true}}));
  Json streamed = Json::array();
  for (size_t i = 0; i + 1 < data.size(); ++i) {
    const Json part = Json::parse(data[i])["choices"][0]["logprobs"];
    for (const Json& token : part.is_null() ? Json::array() : part.at("tokens")) {
      streamed.push_back(token);
    }
  }
  EXPECT_EQ(streamed, logprobs["tokens"]);
}

TEST_F(Completions, LogprobsDoNotGiveStopSequencesAway) {
  answer_with("one STOPHERE two");
  start();
  const RawResponse response = complete({{"max_tokens", 100}, {"stop", "STOPHERE"}, {"logprobs", 0}});
  EXPECT_EQ(response.body.find("STOP"), std::string::npos) << response.body;
  const Json logprobs = Json::parse(response.body)["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"].size(), logprobs["token_logprobs"].size());
}

TEST_F(Completions, HoldsTheContextLimit) {
  context_limit = 40;
  start();
  const std::vector<int32_t> prompt(30, 11);
  EXPECT_EQ(complete({{"prompt", prompt}, {"max_tokens", 10}}).status, 200);
  const RawResponse over = complete({{"prompt", prompt}, {"max_tokens", 11}});
  EXPECT_EQ(over.status, 400);
  const Json error = Json::parse(over.body)["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_NE(error["message"].get<std::string>().find("40 tokens"), std::string::npos);
  EXPECT_NE(error["message"].get<std::string>().find("30 in the prompt, 11 in the completion"),
            std::string::npos);
  EXPECT_EQ(complete({{"prompt", std::vector<int32_t>(40, 11)}}).status, 400);
  EXPECT_EQ(complete({{"prompt", std::vector<int32_t>(39, 11)}}).status, 200);
  EXPECT_EQ(engine->requests().back().sampling.max_tokens, 1);  // the default gives way
}

TEST_F(Completions, RefusesWrongValuesByName) {
  start();
  const Json huge = 9223372036854775808ULL;
  for (const Json& bad : std::vector<Json>{0, -1, huge, 1.5, "5", true, Json::array(), Json::object()}) {
    expect_refused({{"max_tokens", bad}}, "max_tokens");
  }
  for (const Json& bad : std::vector<Json>{0, -1, huge, 1.5, "1", 129}) {
    expect_refused({{"n", bad}}, "n");
  }
  for (const Json& bad : std::vector<Json>{-1, huge, 0.5, "x"}) {
    expect_refused({{"seed", bad}}, "seed");
  }
  for (const Json& bad : std::vector<Json>{-0.1, 2.1, "hot", Json::array()}) {
    expect_refused({{"temperature", bad}}, "temperature");
  }
  for (const Json& bad : std::vector<Json>{0, -1, 1.1, "x"}) {
    expect_refused({{"top_p", bad}}, "top_p");
  }
  for (const Json& bad : std::vector<Json>{-2, 1.5, huge, "x"}) {
    expect_refused({{"top_k", bad}}, "top_k");
  }
  for (const Json& bad : std::vector<Json>{-1, 21, true, 1.5}) {
    expect_refused({{"logprobs", bad}}, "logprobs");
  }
  expect_refused({{"stop", ""}}, "stop");
  expect_refused({{"stop", 5}}, "stop");
  expect_refused({{"stop", {"a", 5}}}, "stop");
  expect_refused({{"stop", std::vector<std::string>(17, "a")}}, "stop", "17");
  expect_refused({{"stream", "yes"}}, "stream");
  expect_refused({{"stream_options", {{"include_usage", true}}}}, "stream_options");
  for (const Json& bad : std::vector<Json>{nullptr,
                                           5,
                                           Json::object(),
                                           Json::array(),
                                           {-1},
                                           {1.5},
                                           {1 << 30},
                                           {"a", 5},
                                           Json::parse("[[]]"),
                                           Json::parse("[[[1]]]"),
                                           {5}}) {
    expect_refused({{"prompt", bad}}, "prompt");
  }
  expect_refused({{"prompt", std::vector<std::string>(129, "a")}}, "prompt", "129");
  EXPECT_EQ(engine->requests().size(), 0U);
}

TEST_F(Completions, RefusesWhatItDoesNotDoByName) {
  start();
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, Json>>{{"suffix", "end"},
                                                 {"best_of", 3},
                                                 {"logit_bias", {{"-5", 1}}},
                                                 {"presence_penalty", 2.5},
                                                 {"frequency_penalty", "some"},
                                                 {"repetition_penalty", 0},
                                                 {"min_p", 1.1},
                                                 {"min_tokens", 0.5},
                                                 {"allowed_token_ids", {-1}},
                                                 {"length_penalty", 2},
                                                 {"guided_regex", "a+"},
                                                 {"response_format", {{"type", "json_object"}}}}) {
    expect_refused({{name, value}}, name);
  }
  expect_refused({{"echo", true}, {"logprobs", 1}}, "echo", "logprobs");
  // Values that change nothing, and fields that nobody knows, are taken.
  EXPECT_EQ(complete({{"presence_penalty", 0},
                      {"logit_bias", Json::object()},
                      {"best_of", 1},
                      {"suffix", nullptr},
                      {"min_p", nullptr},
                      {"user", "me"},
                      {"unheard_of", 5}})
                .status,
            200);
}

TEST_F(Completions, IgnoresUnsupportedFieldsIfToldTo) {
  api_options.policy.ignore_unsupported = true;
  start();
  EXPECT_EQ(complete({{"guided_regex", "a+"}}).status, 200);
}

TEST_F(Completions, HostileBodiesAreRefused) {
  start();
  for (const std::string& body : std::vector<std::string>{
           "", "nonsense", "[]", "5", "null", "\"text\"", R"({"model":"tiny","prompt":"a")",
           R"({"model":"tiny"})", R"({"prompt":"a"})", R"({"model":5,"prompt":"a"})",
           std::string(100'000, '['),
           "{\"model\":\"tiny\",\"prompt\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
           R"({"model":"tiny","prompt":"a","temperature":1e400})",
           R"({"model":"tiny","prompt":"a","temperature":NaN})",
           "{\"model\":\"tiny\",\"prompt\":\"\xff\xfe\"}", R"({"model":"tiny","prompt":"\ud800"})",
           std::string("{\"model\":\"tiny\",\"prompt\":\"a\0b\"}", 31)}) {
    const RawResponse response = post_text("/v1/completions", body);
    EXPECT_EQ(response.status, 400) << body.substr(0, 80);
    EXPECT_TRUE(Json::parse(response.body).at("error").contains("message"));
    EXPECT_LT(response.body.size(), 1000U);
  }
  // The last of repeated keys counts.
  EXPECT_EQ(post_text("/v1/completions", R"({"model":"x","model":"tiny","prompt":"a"})").status, 200);
  // One huge key.
  EXPECT_EQ(post_text("/v1/completions",
                      R"({"model":"tiny","prompt":"a",")" + std::string(1'000'000, 'k') + "\":1}")
                .status,
            200);
}

TEST_F(Completions, UnknownModelsAreNotFound) {
  start();
  const RawResponse response = complete({{"model", "gpt\"\n-5"}});
  EXPECT_EQ(response.status, 404);
  const Json error = Json::parse(response.body)["error"];
  EXPECT_EQ(error["code"], "model_not_found");
  EXPECT_EQ(error["param"], "model");
  EXPECT_EQ(complete({{"model", "DeepSeek-V4.1-Flash"}}).status, 200);
}

TEST_F(Completions, AFullQueueAnswers429) {
  engine_options.max_waiting = 0;
  start();
  const RawResponse response = complete(Json::object());
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.headers.at("retry-after"), "1");
}

TEST_F(Completions, EngineFaultsAreToldWithoutDetails) {
  writer = [](const engine::Request&) {
    Script script{text_and_eos("ab")};
    script.finish = FinishReason::kError;
    script.error = Error{ErrorCode::kIo, "/secret/path/model.safetensors: read failed"};
    return script;
  };
  start();
  const RawResponse whole = complete(Json::object());
  EXPECT_EQ(whole.status, 500);
  EXPECT_EQ(whole.body.find("secret"), std::string::npos);
  const RawResponse streamed = complete({{"stream", true}});
  EXPECT_EQ(streamed.status, 200);
  EXPECT_TRUE(streamed.is_complete);
  EXPECT_EQ(streamed.body.find("secret"), std::string::npos);
  EXPECT_TRUE(Json::parse(events(streamed).back()).contains("error"));
  EXPECT_EQ(streamed.body.find("[DONE]"), std::string::npos);
}

}  // namespace
}  // namespace hadal::server::testing
