// What the server costs: CPU time of its network thread for each streamed token, and the time to the first
// byte of an answer. The engine is a loop that gives every stream a token a step, so that nothing else takes
// part.
//
//   bench_server [tokens per second in all streams] [streams]
//
// Bars: 50,000 streamed tokens a second and core; 1 ms to the first byte. Both are printed as ratios to a
// limit measured in the same run: a send() of the same bytes for each token, and a round trip over a bare TCP
// connection.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "server/api.h"

namespace {

using namespace hadal;
using Clock = std::chrono::steady_clock;

double thread_cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

/// The first token comes at once, the others one a step; steps begin together for all requests.
class SteppingEngine final : public engine::Engine {
 public:
  SteppingEngine(std::chrono::nanoseconds step, int32_t token)
      : step_(step), token_(token), thread_([this] { run(); }) {
    options_.max_model_len = 1 << 30;
  }
  ~SteppingEngine() override {
    stopping_.store(true);
    thread_.join();
  }
  SteppingEngine(const SteppingEngine&) = delete;
  SteppingEngine& operator=(const SteppingEngine&) = delete;

  Result<std::shared_ptr<engine::RequestHandle>> submit(engine::Request request,
                                                        engine::OutputSink sink) override {
    auto handle = std::make_shared<Handle>();
    Running running{std::move(request), std::move(sink), handle, 0};
    if (deliver(running)) {
      const std::lock_guard lock(mutex_);
      running_.push_back(std::move(running));
    }
    return handle;
  }
  engine::EngineStats stats() const override { return {}; }
  const engine::EngineOptions& options() const override { return options_; }
  double delivery_cpu_seconds() const { return cpu_seconds_.load(); }

 private:
  struct Handle final : engine::RequestHandle {
    void cancel() override { is_cancelled.store(true); }
    std::atomic<bool> is_cancelled{false};
  };
  struct Running {
    engine::Request request;
    engine::OutputSink sink;
    std::shared_ptr<Handle> handle;
    int64_t count = 0;
  };

  bool deliver(Running& running) const {
    engine::Output output;
    if (running.handle->is_cancelled.load() || stopping_.load()) {
      output.finish = engine::FinishReason::kCancelled;
    } else {
      output.tokens.push_back({token_, 0, {}});
      if (++running.count >= running.request.sampling.max_tokens) {
        output.finish = engine::FinishReason::kLength;
      }
    }
    output.usage = {static_cast<int64_t>(running.request.prompt.size()), 0, running.count};
    const bool is_last = output.finish.has_value();
    running.sink(std::move(output));
    return !is_last;
  }

  void run() {
    auto next = Clock::now();
    while (!stopping_.load() || has_work()) {
      {
        const std::lock_guard lock(mutex_);
        const double begin = thread_cpu_seconds();
        std::erase_if(running_, [this](Running& running) { return !deliver(running); });
        cpu_seconds_.store(cpu_seconds_.load() + thread_cpu_seconds() - begin);
      }
      next = std::max(next + step_, Clock::now() - step_);
      std::this_thread::sleep_until(next);
    }
  }
  bool has_work() {
    const std::lock_guard lock(mutex_);
    return !running_.empty();
  }

  const std::chrono::nanoseconds step_;
  const int32_t token_;
  engine::EngineOptions options_;
  std::mutex mutex_;  ///< guards running_
  std::vector<Running> running_;
  std::atomic<bool> stopping_{false};
  std::atomic<double> cpu_seconds_{0};
  std::thread thread_;
};

int connect_to(uint16_t port) {
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    fmt::print(stderr, "cannot connect\n");
    std::exit(1);
  }
  return client;
}

void send_all(int client, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      std::exit(1);
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

std::string make_request(std::string_view path, std::string_view body) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: b\r\nContent-Length: {}\r\n\r\n{}", path, body.size(), body);
}

struct Route {
  const char* path;
  const char* fields;  ///< of the body besides model, max_tokens and stream
};

constexpr Route kRoutes[] = {
    {"/v1/completions", R"("prompt":"x","ignore_eos":true)"},
    {"/v1/chat/completions", R"("messages":[{"role":"user","content":"x"}],"thinking":{"type":"disabled"})"},
    {"/v1/messages", R"("messages":[{"role":"user","content":"x"}],"thinking":{"type":"disabled"})"},
};

std::string body_of(const Route& route, int64_t max_tokens) {
  return fmt::format(R"({{"model":"m",{},"max_tokens":{},"stream":true}})", route.fields, max_tokens);
}

/// Opens the streams, reads all of them to their end, and returns the bytes and the number of reads.
std::pair<uint64_t, uint64_t> read_streams(uint16_t port, const Route& route, int num_streams,
                                           int64_t tokens) {
  const std::string request = make_request(route.path, body_of(route, tokens));
  std::vector<pollfd> clients;
  for (int i = 0; i < num_streams; ++i) {
    clients.push_back({connect_to(port), POLLIN, 0});
    send_all(clients.back().fd, request);
  }
  std::vector<std::string> tails(clients.size());
  std::vector<char> buffer(1 << 20);
  uint64_t bytes = 0;
  uint64_t reads = 0;
  for (size_t open = clients.size(); open > 0;) {
    ::poll(clients.data(), clients.size(), -1);
    for (size_t i = 0; i < clients.size(); ++i) {
      if (clients[i].fd < 0 || clients[i].revents == 0) {
        continue;
      }
      const ssize_t got = ::recv(clients[i].fd, buffer.data(), buffer.size(), 0);
      ++reads;
      if (got > 0) {
        bytes += static_cast<uint64_t>(got);
        tails[i].append(buffer.data(), static_cast<size_t>(got));
        tails[i].erase(0, tails[i].size() - std::min<size_t>(tails[i].size(), 8));
      }
      if (got <= 0 || tails[i].ends_with("\r\n0\r\n\r\n")) {
        ::close(clients[i].fd);
        clients[i].fd = -1;
        --open;
      }
    }
  }
  return {bytes, reads};
}

struct Listener {
  int fd;
  uint16_t port;
};

Listener listen_on_loopback() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    std::exit(1);
  }
  return {listener, ntohs(address.sin_port)};
}

/// CPU time of one send() of `bytes` bytes to a reader on the loopback: nothing that streams token by token
/// over a socket is cheaper.
double send_cpu_seconds(size_t bytes) {
  const auto [listener, port] = listen_on_loopback();
  const int client = connect_to(port);
  const int accepted = ::accept(listener, nullptr, nullptr);
  const int on = 1;
  ::setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  std::thread reader([client] {
    std::vector<char> buffer(1 << 16);
    while (::recv(client, buffer.data(), buffer.size(), 0) > 0) {
    }
  });
  const std::string piece(bytes, 'x');
  constexpr int kRounds = 20'000;
  const double begin = thread_cpu_seconds();
  for (int i = 0; i < kRounds; ++i) {
    send_all(accepted, piece);
  }
  const double used = thread_cpu_seconds() - begin;
  ::close(accepted);
  reader.join();
  ::close(client);
  ::close(listener);
  return used / kRounds;
}

/// Median microseconds from sending `request` to the first byte of the answer, on a connection that stays
/// open.
double first_byte_microseconds(uint16_t port, const std::string& request, std::string_view end_mark) {
  const int client = connect_to(port);
  std::vector<double> times;
  std::string answer;
  std::vector<char> buffer(1 << 16);
  for (int round = 0; round < 2000; ++round) {
    answer.clear();
    const auto begin = Clock::now();
    send_all(client, request);
    while (!answer.ends_with(end_mark)) {
      const ssize_t got = ::recv(client, buffer.data(), buffer.size(), 0);
      if (got <= 0) {
        std::exit(1);
      }
      if (answer.empty()) {
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
      }
      answer.append(buffer.data(), static_cast<size_t>(got));
    }
  }
  ::close(client);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// The same for one byte to and fro between two threads over bare TCP.
double round_trip_microseconds() {
  const auto [listener, port] = listen_on_loopback();
  std::thread echo([listener] {
    const int accepted = ::accept(listener, nullptr, nullptr);
    const int on = 1;
    ::setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    char byte = 0;
    while (::recv(accepted, &byte, 1, 0) == 1) {
      send_all(accepted, std::string_view(&byte, 1));
    }
    ::close(accepted);
  });
  const double median = first_byte_microseconds(port, "x", "x");
  echo.join();
  ::close(listener);
  return median;
}

struct Running {
  std::unique_ptr<SteppingEngine> engine;
  std::unique_ptr<server::Api> api;
  std::unique_ptr<server::HttpServer> http;
};

Running start(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, std::chrono::nanoseconds step) {
  std::vector<int32_t> ids;
  tokenizer->encode_plain("a", ids);
  Running running;
  running.engine = std::make_unique<SteppingEngine>(step, ids.at(0));
  server::ApiOptions api_options;
  api_options.policy.max_stream_buffer_bytes = uint64_t{1} << 32U;
  running.api = std::make_unique<server::Api>(api_options);
  auto http = server::HttpServer::start({}, *running.api);
  if (!http) {
    fmt::print(stderr, "{}\n", http.error().message);
    std::exit(1);
  }
  running.http = std::move(*http);
  server::ModelService model;
  model.engine = running.engine.get();
  model.tokenizer = tokenizer;
  model.names = {"m"};
  model.vocab_size = tokenizer->vocab_size();
  model.context_limit = 1 << 30;
  running.api->set_model(std::move(model));
  return running;
}

}  // namespace

int main(int argc, char** argv) {
  const double rate = argc > 1 ? std::atof(argv[1]) : 20'000;
  const int num_streams = argc > 2 ? std::atoi(argv[2]) : 64;
  if (rate <= 0 || num_streams <= 0) {
    fmt::print(stderr, "usage: bench_server [tokens per second] [streams]\n");
    return 2;
  }
  static_cast<void>(init_logging("off"));
  const auto tokenizer = tokenizer::Tokenizer::load(HADAL_MODELS "/tiny/tokenizer.json");
  if (!tokenizer) {
    fmt::print(stderr, "{}\n", tokenizer.error().message);
    return 1;
  }

  fmt::print("streamed tokens: {} streams, {:.0f} tokens/s in all, one network thread\n", num_streams, rate);
  fmt::print("{:<22} {:>12} {:>14} {:>12} {:>14} {:>16}\n", "route", "bytes/token", "tokens/s/core",
             "of 50,000", "of bare send()", "hand-over ns");
  for (const Route& route : kRoutes) {
    const auto step = std::chrono::nanoseconds(static_cast<int64_t>(1e9 * num_streams / rate));
    Running running = start(*tokenizer, step);
    const auto tokens =
        std::max<int64_t>(static_cast<int64_t>(rate * 4 / num_streams), 100);  // about 4 seconds
    const double before = running.http->stats().network_cpu_seconds;
    const auto [bytes, reads] = read_streams(running.http->port(), route, num_streams, tokens);
    const double used = running.http->stats().network_cpu_seconds - before;
    const double all = static_cast<double>(tokens) * num_streams;
    const double per_token = static_cast<double>(bytes) / all;
    const double per_core = all / used;
    const double limit = 1 / send_cpu_seconds(static_cast<size_t>(per_token));
    fmt::print("{:<22} {:>12.0f} {:>14.0f} {:>12.2f} {:>14.2f} {:>16.0f}\n", route.path, per_token, per_core,
               per_core / 50'000, per_core / limit, 1e9 * running.engine->delivery_cpu_seconds() / all);
    static_cast<void>(reads);
    running.http.reset();
  }

  const double round_trip = round_trip_microseconds();
  fmt::print("\ntime to first byte, median; a bare TCP round trip between two threads takes {:.0f} us\n",
             round_trip);
  fmt::print("{:<22} {:>12} {:>14} {:>14}\n", "route", "us", "of 1 ms", "round trips");
  for (const Route& route : kRoutes) {
    Running running = start(*tokenizer, std::chrono::milliseconds(1));
    const double first = first_byte_microseconds(
        running.http->port(), make_request(route.path, body_of(route, 1)), "\r\n0\r\n\r\n");
    fmt::print("{:<22} {:>12.0f} {:>14.3f} {:>14.1f}\n", route.path, first, first / 1000, first / round_trip);
    running.http.reset();
  }
  return 0;
}
