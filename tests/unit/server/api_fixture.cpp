#include "api_fixture.h"

#include <cstdlib>

namespace hadal::server::testing {

std::shared_ptr<const tokenizer::Tokenizer> tiny_tokenizer() {
  static const auto loaded = [] {
    auto tokenizer = tokenizer::Tokenizer::load(HADAL_MODELS "/tiny/tokenizer.json");
    if (!tokenizer) {
      ADD_FAILURE() << tokenizer.error().message;
      std::abort();
    }
    return *tokenizer;
  }();
  return loaded;
}

std::vector<int32_t> text_and_eos(std::string_view text) {
  std::vector<int32_t> ids;
  tiny_tokenizer()->encode_with_special(text, ids);
  ids.push_back(1);
  return ids;
}

ApiTest::ApiTest() {
  api_options.version = "test";
  writer = [](const engine::Request&) { return Script{text_and_eos("Hello world")}; };
}

ApiTest::~ApiTest() {
  server.reset();
  engine.reset();
}

void ApiTest::start() {
  engine = std::make_unique<FakeEngine>(writer, engine_options);
  api = std::make_unique<Api>(api_options, stores_responses ? open_response_store(store_options) : nullptr);
  auto started = HttpServer::start(http_options, *api);
  ASSERT_TRUE(started) << started.error().message;
  server = std::move(*started);
  api->set_http_stats([running = server.get()] { return running->stats(); });
  if (loads_model) {
    ModelService model;
    model.engine = engine.get();
    model.tokenizer = tiny_tokenizer();
    model.names = {"tiny", "DeepSeek-V4.1-Flash"};
    model.created_unix_seconds = 1'700'000'000;
    model.vocab_size = model.tokenizer->vocab_size();
    model.context_limit = context_limit;
    model.eos_token_id = 1;
    model.bos_token_id = 0;
    model.reserved_token_ids = {5};
    model.fingerprint = "fp_test";
    api->set_model(std::move(model));
  }
}

RawResponse ApiTest::post(std::string_view path, const Json& body, std::string_view headers) const {
  return post_text(path, body.dump(), headers);
}

RawResponse ApiTest::post_text(std::string_view path, std::string_view body, std::string_view headers) const {
  return fetch(port(), make_request("POST", path, body, headers));
}

RawResponse ApiTest::get(std::string_view path, std::string_view headers) const {
  return fetch(port(), make_request("GET", path, {}, headers));
}

std::vector<std::string> ApiTest::events(const RawResponse& response) {
  std::vector<std::string> data;
  for (size_t line = 0; line < response.body.size();) {
    const size_t end = response.body.find('\n', line);
    const std::string_view text = std::string_view(response.body).substr(line, end - line);
    if (text.starts_with("data: ")) {
      data.emplace_back(text.substr(6));
    }
    line = end == std::string::npos ? response.body.size() : end + 1;
  }
  return data;
}

double ApiTest::metric(const std::string& name) const {
  const std::string text = "\n" + get("/metrics").body;
  const size_t line = text.find("\n" + name + " ");
  return line == std::string::npos ? -1 : std::stod(text.substr(line + name.size() + 2));
}

}  // namespace hadal::server::testing
