// hadal serve as a program: the line it prints, real answers of models/tiny, and how it ends.

#include <csignal>
#include <cstring>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "program.h"

namespace hadal::cli::testing {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

/// One connection to the server; every request asks to close it at the end.
class Client {
 public:
  explicit Client(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool is_connected() const { return is_connected_; }
  void send(const std::string& method, const std::string& path, const std::string& body = "") const {
    const std::string request =
        fmt::format("{} {} HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}", method,
                    path, body.size(), body);
    EXPECT_EQ(::send(socket_, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
  }
  std::string read_until(const std::string& mark) {
    char bytes[4096];
    while (text_.find(mark) == std::string::npos) {
      const ssize_t got = ::recv(socket_, bytes, sizeof(bytes), 0);
      if (got <= 0) {
        break;
      }
      text_.append(bytes, static_cast<size_t>(got));
    }
    return text_;
  }
  std::string read_all() { return read_until(std::string("\0never", 6)); }

 private:
  int socket_;
  bool is_connected_ = false;
  std::string text_;
};

std::string ask(uint16_t port, const std::string& method, const std::string& path,
                const std::string& body = "") {
  Client client(port);
  client.send(method, path, body);
  return client.read_all();
}

uint16_t port_of(const std::string& line) {
  const std::string prefix = "listening on http://127.0.0.1:";
  EXPECT_TRUE(line.starts_with(prefix)) << line;
  return line.starts_with(prefix) ? static_cast<uint16_t>(std::stoi(line.substr(prefix.size())))
                                  : uint16_t{0};
}

const std::vector<std::string> kServe{"serve", "--model", HADAL_MODELS "/tiny", "--port", "0"};

std::string stream_body(int max_tokens) {
  return Json{{"model", "tiny"},
              {"prompt", "The sea"},
              {"max_tokens", max_tokens},
              {"stream", true},
              {"ignore_eos", true}}
      .dump();
}

TEST(Serve, AnswersAllProtocols) {
  Program program(kServe);
  const uint16_t port = port_of(program.read_line());
  EXPECT_TRUE(ask(port, "GET", "/readyz").starts_with("HTTP/1.1 200 "));
  const Json chat{{"model", "DeepSeek-V4.1-Flash"},
                  {"messages", {{{"role", "user"}, {"content", "Who are you?"}}}},
                  {"thinking", {{"type", "disabled"}}},
                  {"max_tokens", 20}};
  for (const char* path : {"/v1/chat/completions", "/v1/messages"}) {
    EXPECT_TRUE(ask(port, "POST", path, chat.dump()).starts_with("HTTP/1.1 200 ")) << path;
  }
  const Json responses{{"model", "tiny"}, {"input", "Who are you?"}, {"max_output_tokens", 20}};
  EXPECT_TRUE(ask(port, "POST", "/v1/responses", responses.dump()).starts_with("HTTP/1.1 200 "));
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(), 0);
  EXPECT_EQ(program.read_line(100ms), "");  // one line in all
}

TEST(Serve, SigtermLetsStreamsFinish) {
  Program program(kServe);
  const uint16_t port = port_of(program.read_line());
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<Client>(port));
    clients.back()->send("POST", "/v1/completions", stream_body(60));
  }
  for (const auto& client : clients) {
    client->read_until("data: ");
  }
  program.signal(SIGTERM);
  std::this_thread::sleep_for(100ms);
  const std::string refused = ask(port, "POST", "/v1/completions", stream_body(5));
  EXPECT_TRUE(refused.empty() || refused.starts_with("HTTP/1.1 503 "))
      << refused;  // empty: all was over already
  for (const auto& client : clients) {
    EXPECT_NE(client->read_all().find("data: [DONE]\n\n"), std::string::npos);
  }
  EXPECT_EQ(program.wait(), 0);
}

TEST(Serve, TheGraceTimeEnds) {
  std::vector<std::string> arguments = kServe;
  arguments.insert(arguments.end(), {"--shutdown-grace", "200ms"});
  Program program(arguments);
  const uint16_t port = port_of(program.read_line());
  Client client(port);
  client.send("POST", "/v1/completions", stream_body(1500));
  client.read_until("data: ");
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(10s), 0);
}

TEST(Serve, ReadsTheKeyFromTheEnvironment) {
  Program program(kServe, {"HADAL_API_KEY=sk-x"});
  const uint16_t port = port_of(program.read_line());
  EXPECT_TRUE(ask(port, "GET", "/v1/models").starts_with("HTTP/1.1 401 "));
  EXPECT_TRUE(ask(port, "GET", "/healthz").starts_with("HTTP/1.1 200 "));
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(), 0);
}

TEST(Serve, APortInUseIsAFailure) {
  Program program(kServe);
  const uint16_t port = port_of(program.read_line());
  const Outcome second =
      run_program({"serve", "--model", HADAL_MODELS "/tiny", "--port", std::to_string(port)});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.error.find("cannot listen on 127.0.0.1:"), std::string::npos) << second.error;
}

}  // namespace
}  // namespace hadal::cli::testing
