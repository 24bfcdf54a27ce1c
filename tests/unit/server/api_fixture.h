#pragma once
// The whole service over a fake engine and the tokenizer of the tiny model.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fake_engine.h"
#include "raw_client.h"
#include "server/api.h"
#include "server/sqlite_response_store.h"

namespace hadal::server::testing {

using Json = nlohmann::json;

/// The tokenizer of models/tiny, loaded once.
std::shared_ptr<const tokenizer::Tokenizer> tiny_tokenizer();

/// Ids of ordinary text, and the EOS id behind them.
std::vector<int32_t> text_and_eos(std::string_view text);

class ApiTest : public ::testing::Test {
 protected:
  ApiTest();
  ~ApiTest() override;

  /// Starts everything with the options below, which tests change first.
  void start();
  uint16_t port() const { return server->port(); }

  RawResponse post(std::string_view path, const Json& body, std::string_view headers = {}) const;
  RawResponse post_text(std::string_view path, std::string_view body, std::string_view headers = {}) const;
  RawResponse get(std::string_view path, std::string_view headers = {}) const;
  /// Data of the events of a stream, without comments and event names.
  static std::vector<std::string> events(const RawResponse& response);
  /// Value of a line of /metrics that begins with `name` and a space; -1 if there is none.
  double metric(const std::string& name) const;
  /// Waits up to five seconds for a condition.
  template <class Condition>
  static bool eventually(Condition condition) {
    for (int i = 0; i < 500; ++i) {
      if (condition()) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  HttpServerOptions http_options;
  ApiOptions api_options;
  engine::EngineOptions engine_options;
  int64_t context_limit = 1000;
  bool loads_model = true;
  bool stores_responses = true;
  ResponseStoreOptions store_options;
  FakeEngine::Writer writer;  ///< default: "Hello world" and EOS

  std::unique_ptr<FakeEngine> engine;
  std::unique_ptr<Api> api;
  std::unique_ptr<HttpServer> server;
};

}  // namespace hadal::server::testing
