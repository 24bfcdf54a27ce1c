// Routes, keys, models, token routes and metrics over HTTP.

#include "api_fixture.h"

namespace hadal::server::testing {
namespace {

using namespace std::chrono_literals;

class ApiRoutes : public ApiTest {};

const std::vector<std::string> kGetRoutes{"/",        "/v1/models", "/v1/models/tiny",
                                          "/healthz", "/readyz",    "/metrics"};
const std::vector<std::string> kPostRoutes{
    "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/messages/count_tokens",
    "/v1/responses",        "/tokenize",       "/detokenize"};

TEST_F(ApiRoutes, GetRoutesAnswer) {
  start();
  for (const std::string& path : kGetRoutes) {
    EXPECT_EQ(get(path).status, 200) << path;
    EXPECT_EQ(fetch(port(), make_request("HEAD", path)).status, 200) << path;
    const RawResponse wrong = post_text(path, "{}");
    EXPECT_EQ(wrong.status, 405) << path;
    EXPECT_EQ(wrong.headers.at("allow"), "GET, HEAD");
  }
  for (const std::string& path : kPostRoutes) {
    EXPECT_EQ(get(path).status, 405) << path;
    EXPECT_EQ(fetch(port(), make_request("DELETE", path)).status, 405) << path;
  }
  const Json models = Json::parse(get("/v1/models").body);
  EXPECT_EQ(models.at("object"), "list");
  EXPECT_EQ(models.at("data").at(0).at("id"), "tiny");
  // The same list is Anthropic's: one page of models with their times as text.
  EXPECT_EQ(models.at("data").at(0).at("type"), "model");
  EXPECT_EQ(models.at("data").at(0).at("created_at").get<std::string>().back(), 'Z');
  EXPECT_EQ(models.at("has_more"), false);
  EXPECT_EQ(models.at("first_id"), models.at("data").front().at("id"));
  EXPECT_EQ(models.at("last_id"), models.at("data").back().at("id"));
  EXPECT_EQ(Json::parse(get("/v1/models/DeepSeek-V4%2e1-Flash").body).at("id"), "DeepSeek-V4.1-Flash");
  EXPECT_EQ(get("/v1/models/other").status, 404);
  EXPECT_EQ(get("/v1/models/%zz").status, 404);
  EXPECT_EQ(get("/v1/models/%00").status, 404);
  EXPECT_NE(get("/").body.find("/v1/chat/completions"), std::string::npos);
}

TEST_F(ApiRoutes, UnknownPathsAre404InTheShapeOfTheProtocol) {
  start();
  for (const char* path : {"/v2", "/v1/models/", "//v1/models", "/v1%2fmodels", "/v1/chat/completions/",
                           "/metrics/", "/../metrics", "/v1/./models", "/healthz%00", "/drain", "/config"}) {
    const RawResponse response = get(path);
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_EQ(Json::parse(response.body).at("error").at("code").get<std::string>().substr(0, 3),
              std::string(path) == "/v1/models/" ? "not" : "not");
  }
  const Json anthropic = Json::parse(get("/v1/messages/unknown").body);
  EXPECT_EQ(anthropic.at("type"), "error");
  EXPECT_EQ(anthropic.at("error").at("type"), "not_found_error");
}

TEST_F(ApiRoutes, TheKeyGuardsEveryRouteButTheProbes) {
  api_options.api_key = "sk-right";
  start();
  std::vector<std::string> guarded = kGetRoutes;
  guarded.insert(guarded.end(), {"/nothing", "//healthz", "/healthz/", "/readyz%2f", "/v1/../healthz"});
  for (const std::string& path : guarded) {
    const bool is_probe = path == "/healthz" || path == "/readyz";
    EXPECT_EQ(get(path).status, is_probe ? 200 : 401) << path;
    EXPECT_EQ(fetch(port(), make_request("OPTIONS", path)).status, is_probe ? 405 : 401) << path;
  }
  for (const std::string& path : kPostRoutes) {
    const RawResponse response = post_text(path, "{}");
    EXPECT_EQ(response.status, 401) << path;
    EXPECT_EQ(response.headers.at("www-authenticate"), "Bearer");
  }
  const std::vector<std::string> right{"Authorization: Bearer sk-right\r\n",
                                       "authorization: bearer sk-right\r\n", "x-api-key: sk-right\r\n",
                                       "X-Api-Key: sk-right\r\nAuthorization: Bearer sk-right\r\n"};
  for (const std::string& headers : right) {
    EXPECT_EQ(get("/v1/models", headers).status, 200) << headers;
  }
  const std::vector<std::string> wrong{"Authorization: Bearer sk-wrong\r\n",
                                       "Authorization: Bearer sk-righ\r\n",
                                       "Authorization: Bearer sk-rightt\r\n",
                                       "Authorization: Bearer sk-rightsk-right\r\n",
                                       "Authorization: Bearer \r\n",
                                       "Authorization: sk-right\r\n",
                                       "Authorization: Basic sk-right\r\n",
                                       "x-api-key:\r\n",
                                       "x-api-key: wrong\r\nAuthorization: Bearer sk-right\r\n",
                                       "x-api-key: sk-right\r\nAuthorization: Bearer wrong\r\n",
                                       "x-api-key: sk-right\r\nx-api-key: wrong\r\n",
                                       "Authorization: Bearer sk-right\r\nAuthorization: Bearer wrong\r\n"};
  for (const std::string& headers : wrong) {
    EXPECT_EQ(get("/v1/models", headers).status, 401) << headers;
  }
  EXPECT_EQ(Json::parse(post_text("/v1/messages", "{}").body).at("error").at("type"), "authentication_error");
}

TEST_F(ApiRoutes, TheKeySeparatesWhatIsCached) {
  api_options.api_key = "sk-right";
  start();
  const std::string body = R"({"model":"tiny","prompt":"Hello","cache_salt":"sk-other"})";
  const std::string request =
      make_request("POST", "/v1/completions", body, "Authorization: Bearer sk-right\r\n");
  EXPECT_EQ(fetch(port(), request).status, 200);
  EXPECT_EQ(engine->requests().at(0).cache_tenant, "sk-right");
  EXPECT_EQ(engine->requests().at(0).cache_salt, "sk-other");
}

TEST_F(ApiRoutes, AWrongKeyIsRefusedBeforeTheBodyIsRead) {
  api_options.api_key = "sk-right";
  start();
  RawClient client(port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 50000000\r\n\r\n");
  EXPECT_EQ(client.read_response().status, 401);
}

TEST_F(ApiRoutes, CorsIsOffUnlessAllowed) {
  start();
  EXPECT_FALSE(
      get("/v1/models", "Origin: https://a.example\r\n").headers.contains("access-control-allow-origin"));
  const std::string preflight =
      make_request("OPTIONS", "/v1/chat/completions", {},
                   "Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n");
  EXPECT_EQ(fetch(port(), preflight).status, 405);
}

TEST_F(ApiRoutes, CorsAnswersTheAllowedOrigin) {
  api_options.cors_origin = "https://a.example";
  api_options.api_key = "k";
  start();
  const std::string preflight =
      make_request("OPTIONS", "/v1/chat/completions", {},
                   "Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n");
  const RawResponse allowed = fetch(port(), preflight);
  EXPECT_EQ(allowed.status, 204);
  EXPECT_EQ(allowed.headers.at("access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(get("/v1/models", "Origin: https://a.example\r\nx-api-key: k\r\n")
                .headers.at("access-control-allow-origin"),
            "https://a.example");
  EXPECT_FALSE(get("/v1/models", "Origin: https://b.example\r\nx-api-key: k\r\n")
                   .headers.contains("access-control-allow-origin"));
}

TEST_F(ApiRoutes, RequestIdsAreEchoedIfSane) {
  start();
  EXPECT_EQ(get("/healthz", "x-request-id: abc-123_x.y:z\r\n").headers.at("x-request-id"), "abc-123_x.y:z");
  for (const std::string& odd :
       {std::string("a b"), std::string("<script>"), std::string(129, 'x'), std::string("\xc3\xa9")}) {
    EXPECT_TRUE(
        get("/healthz", "x-request-id: " + odd + "\r\n").headers.at("x-request-id").starts_with("req_"));
  }
  const std::string first = get("/healthz").headers.at("x-request-id");
  EXPECT_NE(first, get("/healthz").headers.at("x-request-id"));
}

TEST_F(ApiRoutes, WithoutAModelRequestsWait) {
  loads_model = false;
  start();
  EXPECT_EQ(get("/healthz").status, 200);
  EXPECT_EQ(get("/readyz").status, 503);
  EXPECT_EQ(get("/metrics").status, 200);
  EXPECT_TRUE(Json::parse(get("/v1/models").body).at("data").empty());
  const RawResponse response = post("/v1/completions", {{"model", "tiny"}, {"prompt", "a"}});
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.headers.at("retry-after"), "1");
}

TEST_F(ApiRoutes, TokenizesAndDetokenizes) {
  start();
  const Json tokens =
      Json::parse(post("/tokenize", {{"prompt", "Hello <think> 世界"}, {"return_token_strs", true}}).body);
  EXPECT_EQ(tokens.at("tokens").at(0), 0);
  EXPECT_EQ(tokens.at("count"), tokens.at("tokens").size());
  EXPECT_EQ(tokens.at("token_strs").size(), tokens.at("tokens").size());
  EXPECT_EQ(
      Json::parse(post("/detokenize", {{"tokens", tokens["tokens"]}, {"skip_special_tokens", true}}).body)
          .at("prompt"),
      "Hello <think> 世界");
  const Json plain = Json::parse(post("/tokenize", {{"prompt", "a"}, {"add_special_tokens", false}}).body);
  EXPECT_EQ(plain.at("count"), 1);
  EXPECT_EQ(post("/tokenize", {{"prompt", 5}}).status, 400);
  EXPECT_EQ(post("/tokenize", Json::object()).status, 400);
  EXPECT_EQ(post("/tokenize", {{"prompt", "a"}, {"model", "other"}}).status, 404);
  EXPECT_EQ(post("/detokenize", {{"tokens", {-1}}}).status, 400);
  EXPECT_EQ(post("/detokenize", {{"tokens", {1 << 30}}}).status, 400);
  EXPECT_EQ(post("/detokenize", {{"tokens", "abc"}}).status, 400);
  EXPECT_EQ(post("/detokenize", Json::object()).status, 400);
}

TEST_F(ApiRoutes, MetricsAgreeWithUsage) {
  start();
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  for (int i = 0; i < 5; ++i) {
    const Json usage =
        Json::parse(
            post("/v1/completions",
                 {{"model", "tiny"}, {"prompt", std::string(static_cast<size_t>(i + 1), 'a')}, {"n", 2}})
                .body)
            .at("usage");
    prompt_tokens += usage.at("prompt_tokens").get<int64_t>();
    output_tokens += usage.at("completion_tokens").get<int64_t>();
  }
  post("/v1/completions", {{"model", "\"}\nevil 1"}, {"prompt", "a"}});
  EXPECT_EQ(metric("hadal_prompt_tokens_total"), static_cast<double>(prompt_tokens));
  EXPECT_EQ(metric("hadal_output_tokens_total"), static_cast<double>(output_tokens));
  EXPECT_EQ(metric(R"(hadal_http_responses_total{route="/v1/completions",code="200"})"), 5);
  EXPECT_EQ(metric(R"(hadal_http_responses_total{route="/v1/completions",code="404"})"), 1);
  EXPECT_EQ(metric(R"(hadal_requests_total{route="/v1/completions",finish="stop"})"), 10);
  EXPECT_EQ(metric("hadal_ttft_seconds_count"), 10);
  EXPECT_EQ(metric("hadal_inter_token_seconds_count"), static_cast<double>(output_tokens - 10));
  EXPECT_EQ(metric("hadal_running"), 0);
  EXPECT_EQ(metric("hadal_ready"), 1);
}

TEST_F(ApiRoutes, MetricsAreWellFormed) {
  start();
  post("/v1/completions", {{"model", "tiny"}, {"prompt", "a"}});
  const RawResponse response = get("/metrics");
  EXPECT_TRUE(response.headers.at("content-type").starts_with("text/plain; version=0.0.4"));
  std::map<std::string, std::string> types;
  std::istringstream lines(response.body);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    std::string name;
    std::string type;
    words >> first;
    if (first == "#") {
      std::string kind;
      words >> kind >> name >> type;
      if (kind == "TYPE") {
        EXPECT_FALSE(types.contains(name)) << name;
        types[name] = type;
        EXPECT_EQ(type == "counter", name.ends_with("_total")) << name;
      }
      continue;
    }
    std::string family = first.substr(0, first.find('{'));
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      const std::string base =
          family.substr(0, family.size() - std::min(family.size(), std::string(suffix).size()));
      if (family.ends_with(suffix) && types.contains(base) && types[base] == "histogram") {
        family = base;
      }
    }
    EXPECT_TRUE(types.contains(family)) << line;
    double value = -1;
    EXPECT_TRUE(words >> value) << line;
  }
}

}  // namespace
}  // namespace hadal::server::testing
