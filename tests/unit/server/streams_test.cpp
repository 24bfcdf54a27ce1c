// What happens to streams when clients or the server leave, stall or wait.

#include "api_fixture.h"

namespace hadal::server::testing {
namespace {

using namespace std::chrono_literals;

class Streams : public ApiTest {
 protected:
  /// A request that goes on until max_tokens.
  void write_forever(std::chrono::microseconds step, std::chrono::milliseconds prefill = 0ms,
                     size_t tokens_per_step = 1) {
    writer = [=](const engine::Request&) {
      Script script{text_and_eos("a b c d "), true};
      script.tokens.pop_back();  // no EOS
      script.step = step;
      script.prefill = prefill;
      script.tokens_per_step = tokens_per_step;
      return script;
    };
    context_limit = 100'000'000;
  }
  static std::string stream_request(int64_t max_tokens, std::string_view path = "/v1/completions") {
    const Json body{{"model", "tiny"}, {"prompt", "x"}, {"max_tokens", max_tokens}, {"stream", true}};
    return make_request("POST", path, body.dump());
  }
};

TEST_F(Streams, HeadersAndKeepAliveComeDuringALongPrefill) {
  http_options.keep_alive_interval = 100ms;
  write_forever(0us, 700ms);
  start();
  RawClient client(port());
  const auto begin = std::chrono::steady_clock::now();
  client.send(stream_request(3));
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 300ms);
  const std::string before = client.read_until("data: ");
  size_t comments = 0;
  for (size_t at = before.find(": keep-alive\n\n"); at != std::string::npos;
       at = before.find(": keep-alive\n\n", at + 1)) {
    ++comments;
  }
  EXPECT_GE(comments, 3U);
  EXPECT_LE(comments, 7U);
  EXPECT_NE(client.read_until("[DONE]").find("[DONE]"), std::string::npos);
}

TEST_F(Streams, ADisconnectCancelsTheRequest) {
  write_forever(1ms);
  start();
  for (const bool with_reset : {false, true}) {
    RawClient client(port());
    client.send(stream_request(1'000'000));
    client.read_until("data: ");
    EXPECT_EQ(engine->running(), 1);
    const auto begin = std::chrono::steady_clock::now();
    if (with_reset) {
      client.reset();
    } else {
      client.close();
    }
    EXPECT_TRUE(eventually([&] { return engine->running() == 0; }));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 500ms);
  }
  EXPECT_EQ(engine->stats().finished_cancelled_total, 2U);
  EXPECT_TRUE(eventually(
      [&] { return metric(R"(hadal_requests_total{route="/v1/completions",finish="disconnected"})") == 2; }));
  EXPECT_EQ(metric("hadal_http_disconnects_total"), 2);
}

TEST_F(Streams, ADisconnectDuringPrefillCancelsToo) {
  write_forever(0us, 60'000ms);
  start();
  for (const bool stream : {true, false}) {
    RawClient client(port());
    const Json body{{"model", "tiny"}, {"prompt", "x"}, {"stream", stream}};
    client.send(make_request("POST", "/v1/completions", body.dump()));
    EXPECT_TRUE(eventually([&] { return engine->running() == 1; }));
    client.close();
    EXPECT_TRUE(eventually([&] { return engine->running() == 0; }));
  }
}

TEST_F(Streams, AHalfClosedClientCountsAsGone) {
  write_forever(1ms);
  start();
  RawClient client(port());
  client.send(stream_request(1'000'000));
  client.read_until("data: ");
  client.shutdown_send();
  EXPECT_TRUE(eventually([&] { return engine->running() == 0; }));
}

TEST_F(Streams, AReaderThatStallsIsGivenUpAndBlocksNobody) {
  api_options.policy.max_stream_buffer_bytes = 200'000;
  write_forever(0us, 0ms, 50);
  start();
  RawClient stalled(port());
  stalled.shrink_receive_buffer();
  stalled.send(stream_request(50'000'000));
  stalled.read_until("data: ");
  // Another stream runs at its own pace meanwhile.
  RawClient reader(port());
  reader.send(stream_request(2000));
  const RawResponse response = reader.read_response();
  EXPECT_TRUE(response.is_complete);
  EXPECT_TRUE(eventually([&] { return engine->running() == 0; }));
  EXPECT_LT(engine->slowest_step(), 200ms);
  EXPECT_EQ(metric("hadal_http_slow_readers_total"), 1);
}

TEST_F(Streams, AWriteThatMakesNoProgressTimesOut) {
  http_options.write_timeout = 200ms;
  api_options.policy.max_stream_buffer_bytes = 1 << 30;
  write_forever(100us, 0ms, 50);
  start();
  RawClient stalled(port());
  stalled.shrink_receive_buffer();
  stalled.send(stream_request(50'000'000));
  stalled.read_until("data: ");
  EXPECT_TRUE(eventually([&] { return engine->running() == 0; }));
  EXPECT_GE(metric("hadal_http_timeouts_total"), 1);
}

TEST_F(Streams, ALargeAnswerThatNobodyReadsTimesOut) {
  http_options.write_timeout = 200ms;
  start();
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) {
    text += "deep sea ";
  }
  const Json body{{"prompt", text}, {"return_token_strs", true}};
  RawClient stalled(port());
  stalled.shrink_receive_buffer();
  stalled.send(make_request("POST", "/tokenize", body.dump()));
  EXPECT_TRUE(eventually([&] { return metric("hadal_http_timeouts_total") > 0; }));
  EXPECT_EQ(metric("hadal_http_disconnects_total"), 1);
  // A reader gets all of it.
  const RawResponse whole = post("/tokenize", body);
  EXPECT_TRUE(whole.is_complete);
  EXPECT_GT(whole.body.size(), 16U << 20);
}

TEST_F(Streams, RequestsEndAtTheirDeadline) {
  http_options.request_timeout = 300ms;
  api_options.policy.request_timeout_seconds = 0.3;
  write_forever(1ms);
  start();
  const RawResponse whole =
      post("/v1/completions", {{"model", "tiny"}, {"prompt", "x"}, {"max_tokens", 1'000'000}});
  EXPECT_EQ(whole.status, 504);
  EXPECT_NE(whole.body.find("0.3 seconds"), std::string::npos) << whole.body;
  RawClient client(port());
  client.send(stream_request(1'000'000));
  const RawResponse streamed = client.read_response();
  EXPECT_TRUE(streamed.is_complete);
  EXPECT_NE(events(streamed).back().find("0.3 seconds"), std::string::npos);
  EXPECT_EQ(engine->running(), 0);
}

TEST_F(Streams, PipelinedRequestsBehindAStreamWaitForIt) {
  start();
  RawClient client(port());
  client.send(stream_request(50) + make_request("GET", "/healthz") + stream_request(50) +
              make_request("GET", "/v1/models"));
  const RawResponse first = client.read_response();
  EXPECT_TRUE(first.is_complete);
  EXPECT_EQ(events(first).back(), "[DONE]");
  EXPECT_EQ(client.read_response().body, "ok\n");
  EXPECT_EQ(events(client.read_response()).back(), "[DONE]");
  EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(Streams, AConnectionServesManyStreams) {
  start();
  RawClient client(port());
  for (int i = 0; i < 100; ++i) {
    client.send(stream_request(50));
    const RawResponse response = client.read_response();
    ASSERT_TRUE(response.is_complete) << i;
    ASSERT_EQ(events(response).back(), "[DONE]");
  }
}

TEST_F(Streams, Http10StreamsEndWithTheConnection) {
  start();
  RawClient client(port());
  std::string request = stream_request(50);
  request.replace(request.find("HTTP/1.1"), 8, "HTTP/1.0");
  client.send(request);
  const RawResponse response = client.read_response();
  EXPECT_FALSE(response.headers.contains("transfer-encoding"));
  EXPECT_TRUE(response.is_complete);
  EXPECT_EQ(events(response).back(), "[DONE]");
}

TEST_F(Streams, DrainingFinishesStreamsAndRefusesNewRequests) {
  write_forever(2ms);
  start();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->send(stream_request(100));
  }
  for (const auto& client : clients) {
    client->read_until("data: ");
  }
  RawClient kept(port());
  kept.send(make_request("GET", "/healthz"));
  EXPECT_EQ(kept.read_response().status, 200);
  api->drain();
  server->drain();
  EXPECT_TRUE(kept.is_closed_within(1s));
  EXPECT_EQ(get("/readyz").status, 503);
  EXPECT_EQ(get("/healthz").status, 200);
  const RawResponse refused = fetch(port(), stream_request(5));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  for (const auto& client : clients) {
    EXPECT_TRUE(client->read_until("[DONE]\n\n").ends_with("[DONE]\n\n"));
    EXPECT_TRUE(client->is_closed_within(2s));
  }
  EXPECT_TRUE(eventually([&] { return server->stats().exchanges == 0; }));
}

TEST_F(Streams, DestroyingTheServerCancelsWhatRuns) {
  write_forever(1ms);
  http_options.network_threads = 2;
  start();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->send(stream_request(1'000'000));
    clients.back()->read_until("data: ");
  }
  server.reset();
  EXPECT_TRUE(eventually([&] { return engine->running() == 0; }));
}

TEST_F(Streams, ManyClientsAtOnce) {
  http_options.network_threads = 2;
  write_forever(50us);
  start();
  std::vector<std::thread> threads;
  std::atomic<int> complete{0};
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 10; ++round) {
        RawClient client(port());
        client.send(stream_request(20 + i));
        if ((i + round) % 5 == 0) {
          client.read_until("data: ");
          continue;  // leaves
        }
        const RawResponse response = client.read_response();
        complete += response.is_complete && events(response).size() == static_cast<size_t>(21 + i) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(complete.load(), 128);
  EXPECT_TRUE(eventually([&] { return engine->running() == 0; }));
}

}  // namespace
}  // namespace hadal::server::testing
