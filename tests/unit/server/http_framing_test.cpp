// The HTTP server alone, before a service that echoes: framing, limits and time-outs against hostile bytes.

#include <atomic>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "raw_client.h"
#include "server/http_server.h"

namespace hadal::server {
namespace {

using namespace std::chrono_literals;
using testing::fetch;
using testing::make_request;
using testing::RawClient;
using testing::RawResponse;

/// Answers with what it was asked.
class EchoService final : public HttpService {
 public:
  std::optional<HttpResponse> check(HttpRequest& request) override {
    if (request.path == "/forbidden") {
      return refuse(request, 401, "no");
    }
    return std::nullopt;
  }
  bool is_quick(const HttpRequest& request) const override { return request.body.empty(); }
  Answer handle(HttpRequest& request) override {
    handled.fetch_add(1);
    HttpResponse response;
    response.body = request.method + " " + request.path + " " + request.query + " " +
                    std::to_string(request.body.size()) + " " + request.body.substr(0, 40);
    return response;
  }
  HttpResponse refuse(const HttpRequest&, int status, std::string message) override {
    HttpResponse response;
    response.status = status;
    response.body = message;
    return response;
  }
  void decorate(const HttpRequest&, HttpResponse&) override {}
  void finished(const ExchangeSummary&) override { finished_exchanges.fetch_add(1); }

  std::atomic<int> handled{0};
  std::atomic<int> finished_exchanges{0};
};

class HttpFraming : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.header_timeout = 400ms;
    options_.body_timeout = 400ms;
    options_.idle_timeout = 600ms;
    options_.max_body_bytes = 100'000;
    options_.max_header_bytes = 8192;
    restart();
  }
  void restart() {
    server_.reset();
    auto started = HttpServer::start(options_, service_);
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
  }
  uint16_t port() const { return server_->port(); }
  RawResponse ask(std::string_view request) const { return fetch(port(), request); }
  /// The server still answers, and nothing of what was sent before reached the service as a request.
  void expect_alive() const { EXPECT_EQ(ask(make_request("GET", "/alive")).status, 200); }

  HttpServerOptions options_;
  EchoService service_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpFraming, AnswersGetHeadAndPost) {
  const RawResponse get = ask(make_request("GET", "/a/b?c=d"));
  EXPECT_EQ(get.status, 200);
  EXPECT_EQ(get.body, "GET /a/b c=d 0 ");
  EXPECT_EQ(ask(make_request("POST", "/x", "hello")).body, "POST /x  5 hello");
  RawClient client(port());
  client.send(make_request("HEAD", "/h"));
  const RawResponse head = client.read_response(true);
  EXPECT_EQ(head.headers.at("content-length"), "11");
  client.send(make_request("GET", "/after"));
  EXPECT_EQ(client.read_response().body, "GET /after  0 ");
}

TEST_F(HttpFraming, PipelinedRequestsAreAnsweredInOrder) {
  RawClient client(port());
  std::string all;
  for (int i = 0; i < 50; ++i) {
    all += i % 2 == 0
               ? make_request("GET", "/" + std::to_string(i))
               : make_request("POST", "/" + std::to_string(i), std::string(static_cast<size_t>(i), 'x'));
  }
  client.send(all);
  for (int i = 0; i < 50; ++i) {
    const RawResponse response = client.read_response();
    ASSERT_EQ(response.status, 200);
    EXPECT_NE(response.body.find(" /" + std::to_string(i) + " "), std::string::npos) << response.body;
  }
}

TEST_F(HttpFraming, ReadsChunkedBodiesInAnyPieces) {
  const std::string head = "POST /c HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string body = "5\r\nhello\r\n6;name=value\r\n world\r\n0\r\nTrailer: x\r\n\r\n";
  EXPECT_EQ(ask(head + body).body, "POST /c  11 hello world");
  RawClient client(port());
  for (const char c : head + body) {
    client.send(std::string_view(&c, 1));
  }
  EXPECT_EQ(client.read_response().body, "POST /c  11 hello world");
}

TEST_F(HttpFraming, SpeaksHttp10) {
  RawClient client(port());
  client.send("GET /old HTTP/1.0\r\n\r\n");
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.body, "GET /old  0 ");
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_TRUE(client.is_closed_within(2s));
}

TEST_F(HttpFraming, ContinuesAfterExpect) {
  RawClient client(port());
  client.send("POST /e HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_EQ(client.read_response().body, "POST /e  3 abc");
  EXPECT_EQ(ask("POST /e HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nExpect: a-miracle\r\n\r\n").status, 417);
}

TEST_F(HttpFraming, RefusesBeforeTheBodyIsSent) {
  RawClient client(port());
  client.send("POST /forbidden HTTP/1.1\r\nHost: t\r\nContent-Length: 90000\r\nExpect: 100-continue\r\n\r\n");
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.status, 401);
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_EQ(service_.handled.load(), 0);
}

TEST_F(HttpFraming, RefusesAmbiguousLengths) {
  const std::vector<std::string> smuggled{
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET "
      "/evil HTTP/1.1\r\nHost: t\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nGET "
      "/evil HTTP/1.1\r\nHost: t\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\nContent-Length: 30\r\n\r\nGET /evil "
      "HTTP/1.1\r\nHost: t\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1, 2\r\n\r\na",
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: +3\r\n\r\nabc",
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\nabc",
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 0x3\r\n\r\nabc",
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length : 3\r\n\r\nabc",
      "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc",
      "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
      "identity\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.0\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  };
  for (const std::string& request : smuggled) {
    RawClient client(port());
    client.send(request);
    bool closed = false;
    const std::string answer = client.read_all(closed, 4s);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.1 413 "))
        << request << "\n-> " << answer;
    EXPECT_EQ(answer.find("evil"), std::string::npos) << request;
    EXPECT_TRUE(closed) << request;
  }
  EXPECT_EQ(service_.handled.load(), 0);
  expect_alive();
}

TEST_F(HttpFraming, RefusesALengthThatIsAList) {
  for (const char* length : {"2, 2", "2,2", "2,", " 2 2", "+2", "2.", "0x2"}) {
    const std::string request =
        fmt::format("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n{{}}", length);
    EXPECT_EQ(ask(request).status, 400) << length;
  }
  EXPECT_EQ(service_.handled.load(), 0);
  expect_alive();
}

TEST_F(HttpFraming, RefusesMalformedHeads) {
  const std::vector<std::string> malformed{
      "GET / HTTP/1.1\nHost: t\n\n",  // bare line feeds
      "GET / HTTP/1.1\r\nHost: t\nX: y\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: t\r\n folded: yes\r\nX y\r\n\r\n",
      "GET /\r\nHost: t\r\n\r\n",
      "GET  / HTTP/1.1\r\nHost: t\r\n\r\n",
      "GET / HTTP/1.1\r\nHo st: t\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: t\r\nX: a\x01"
      "b\r\n\r\n",
      "GET / HTTP/1.1\r\n: empty\r\nHost: t\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",  // no Host
      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
      "GET nowhere HTTP/1.1\r\nHost: t\r\n\r\n",
      "GET http:// HTTP/1.1\r\nHost: t\r\n\r\n",
      "CONNECT example.com:443 HTTP/1.1\r\nHost: t\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n",
      std::string("GET /\0 HTTP/1.1\r\nHost: t\r\n\r\n", 28),
      "\r\n\r\n\r\nnonsense",
  };
  for (const std::string& request : malformed) {
    RawClient client(port());
    client.send(request);
    bool closed = false;
    const std::string answer = client.read_all(closed, 4s);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.1 505 ") || answer.empty())
        << request << "\n-> " << answer;
    EXPECT_TRUE(closed) << request;
  }
  EXPECT_EQ(ask("GET / HTTP/2.0\r\nHost: t\r\n\r\n").status, 505);
  EXPECT_EQ(ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status, 505);
  EXPECT_EQ(service_.handled.load(), 0);
  expect_alive();
}

TEST_F(HttpFraming, RefusesMalformedChunks) {
  const std::string head = "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& body : std::vector<std::string>{
           "fffffffffffffffff\r\n", "ffffffffffffffff\r\nabc", "-1\r\nabc", "zz\r\n",
           "3\r\nabcd\r\n0\r\n\r\n", "3\nabc\n0\n\n", "\r\n", "0x3\r\nabc\r\n0\r\n\r\n"}) {
    RawClient client(port());
    client.send(head + body);
    bool closed = false;
    const std::string answer = client.read_all(closed, 4s);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.1 413 ") ||
                answer.starts_with("HTTP/1.1 408 "))
        << body << "\n-> " << answer;
    EXPECT_TRUE(closed) << body;
  }
  EXPECT_EQ(service_.handled.load(), 0);
  expect_alive();
}

TEST_F(HttpFraming, LimitsHeaders) {
  EXPECT_EQ(ask("GET / HTTP/1.1\r\nHost: t\r\nX: " + std::string(9000, 'x') + "\r\n\r\n").status, 431);
  EXPECT_EQ(ask("GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: t\r\n\r\n").status, 431);
  std::string many = "GET / HTTP/1.1\r\nHost: t\r\n";
  for (int i = 0; i < 101; ++i) {
    many += "a:\r\n";
  }
  EXPECT_EQ(ask(many + "\r\n").status, 431);
  std::string flood = "GET / HTTP/1.1\r\nHost: t\r\n";
  for (int i = 0; i < 10'000; ++i) {
    flood += "a: b\r\n";
  }
  EXPECT_EQ(ask(flood + "\r\n").status, 431);
  EXPECT_EQ(service_.handled.load(), 0);
  expect_alive();
}

TEST_F(HttpFraming, LimitsChunkExtensionsAndTrailers) {
  const std::string head = "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& body : {"1;" + std::string(300'000, 'e') + "\r\na\r\n0\r\n\r\n",
                                  "1\r\na\r\n0\r\nT: " + std::string(300'000, 't') + "\r\n\r\n"}) {
    RawClient client(port());
    client.send(head + body);
    bool closed = false;
    const std::string answer = client.read_all(closed, 4s);
    EXPECT_TRUE(closed);
    EXPECT_FALSE(answer.starts_with("HTTP/1.1 200")) << answer;
  }
  expect_alive();
}

TEST_F(HttpFraming, LimitsBodies) {
  EXPECT_EQ(ask(make_request("POST", "/", std::string(100'000, 'x'))).status, 200);
  EXPECT_EQ(ask("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 100001\r\n\r\n").status, 413);
  // A client that sends all before it reads still sees the answer.
  EXPECT_EQ(ask(make_request("POST", "/", std::string(3'000'000, 'x'))).status, 413);
  std::string chunked = "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 11; ++i) {
    chunked += "2710\r\n" + std::string(10'000, 'y') + "\r\n";
  }
  EXPECT_EQ(ask(chunked + "0\r\n\r\n").status, 413);
  EXPECT_EQ(service_.handled.load(), 1);
  expect_alive();
}

TEST_F(HttpFraming, LimitsTheMemoryOfAllBodiesTogether) {
  options_.max_buffered_body_bytes = 150'000;
  restart();
  RawClient first(port());
  first.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n" + std::string(99'000, 'x'));
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(ask(make_request("POST", "/", std::string(90'000, 'y'))).status, 503);
  first.send(std::string(1000, 'x'));
  EXPECT_EQ(first.read_response().status, 200);
  EXPECT_EQ(ask(make_request("POST", "/", std::string(90'000, 'y'))).status, 200);
}

TEST_F(HttpFraming, SlowHeadersAndBodiesAreCutOff) {
  for (const bool in_body : {false, true}) {
    RawClient client(port());
    if (in_body) {
      client.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\n");
    }
    const auto begin = std::chrono::steady_clock::now();
    bool is_open = true;
    std::string answer;
    while (is_open && std::chrono::steady_clock::now() - begin < 5s) {
      is_open = client.send(in_body ? "x" : "G");
      answer = client.read_until("\r\n\r\n", 50ms);
      is_open = is_open && answer.empty();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 ")) << answer;
  }
  expect_alive();
}

TEST_F(HttpFraming, IdleConnectionsAreClosed) {
  RawClient silent(port());
  RawClient used(port());
  used.send(make_request("GET", "/"));
  EXPECT_EQ(used.read_response().status, 200);
  EXPECT_TRUE(silent.is_closed_within(3s));
  EXPECT_TRUE(used.is_closed_within(3s));
}

TEST_F(HttpFraming, TlsIsAnsweredByClosing) {
  RawClient client(port());
  client.send(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(200, '\0'));
  bool closed = false;
  EXPECT_EQ(client.read_all(closed, 2s), "");
  EXPECT_TRUE(closed);
}

TEST_F(HttpFraming, UpgradesAreIgnored) {
  const RawResponse response = ask(make_request(
      "GET", "/", "", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"));
  EXPECT_EQ(response.status, 200);
}

TEST_F(HttpFraming, SurvivesClientsThatLeaveAnywhere) {
  const std::string request = make_request("POST", "/", std::string(5000, 'x'));
  for (size_t cut = 1; cut < request.size(); cut += 97) {
    RawClient client(port());
    client.send(request.substr(0, cut));
    if (cut % 2 == 0) {
      client.reset();
    }
  }
  expect_alive();
  for (int i = 0; i < 100 && server_->stats().connections > 0; ++i) {
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(server_->stats().connections, 0);
}

TEST_F(HttpFraming, IdleConnectionsMakeRoomForNewOnes) {
  options_.max_connections = 20;
  options_.idle_timeout = 60s;
  restart();
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 60; ++i) {
    idle.push_back(std::make_unique<RawClient>(port()));
  }
  expect_alive();
  EXPECT_LE(server_->stats().connections, 21);
  EXPECT_GE(server_->stats().evicted_total, 40U);
  EXPECT_TRUE(idle.front()->is_closed_within(2s));
}

TEST_F(HttpFraming, RunsOutOfDescriptorsAndRecovers) {
  options_.idle_timeout = 60s;
  restart();
  RawClient busy(port());
  busy.send(make_request("GET", "/"));
  ASSERT_EQ(busy.read_response().status, 200);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
  }
  std::this_thread::sleep_for(100ms);
  // The next descriptor is over the limit.
  RawClient probe(port());
  std::this_thread::sleep_for(50ms);
  const rlimit tight{20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  for (int i = 0; i < 50 && server_->stats().accept_errors_total == 0; ++i) {
    // A connect needs a descriptor of this process too, so the limit is lifted for a moment.
    setrlimit(RLIMIT_NOFILE, &before);
    clients.push_back(std::make_unique<RawClient>(port()));
    setrlimit(RLIMIT_NOFILE, &tight);
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_GT(server_->stats().accept_errors_total, 0U);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  expect_alive();
}

TEST_F(HttpFraming, ManyIdleConnectionsDoNotDisturb) {
  options_.idle_timeout = 60s;
  options_.network_threads = 2;
  restart();
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const int count = limit.rlim_cur > 11'000 ? 5000 : 400;
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < count; ++i) {
    idle.push_back(std::make_unique<RawClient>(port()));
    ASSERT_TRUE(idle.back()->is_connected()) << i;
  }
  for (int i = 0; i < 20; ++i) {
    expect_alive();
  }
  idle[0]->send(make_request("GET", "/first"));
  EXPECT_EQ(idle[0]->read_response().body, "GET /first  0 ");
}

TEST_F(HttpFraming, TwoServersCannotShareAPort) {
  HttpServerOptions second = options_;
  second.port = port();
  const auto started = HttpServer::start(second, service_);
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("cannot listen on 127.0.0.1"), std::string::npos)
      << started.error().message;
}

TEST_F(HttpFraming, DrainClosesIdleConnectionsAndFinishesOthers) {
  options_.body_timeout = 10s;
  options_.idle_timeout = 10s;
  restart();
  RawClient idle(port());
  idle.send(make_request("GET", "/"));
  EXPECT_EQ(idle.read_response().status, 200);
  RawClient halfway(port());
  halfway.send("POST /half HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nab");
  std::this_thread::sleep_for(50ms);
  server_->drain();
  EXPECT_TRUE(idle.is_closed_within(1s));
  halfway.send("cd");
  const RawResponse response = halfway.read_response();
  EXPECT_EQ(response.body, "POST /half  4 abcd");
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_TRUE(halfway.is_closed_within(1s));
}

}  // namespace
}  // namespace hadal::server
