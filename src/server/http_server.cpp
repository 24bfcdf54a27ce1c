// Listening, accepting, sweeping and draining.
#include "server/http_server.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <pthread.h>

#include "base/log.h"
#include "server/http_connection.h"

namespace hadal::server {
namespace {

class HttpServerImpl final : public HttpServer {
 public:
  HttpServerImpl(const HttpServerOptions& options, HttpService& service) : shared_(options, service) {}
  ~HttpServerImpl() override;
  HttpServerImpl(const HttpServerImpl&) = delete;
  HttpServerImpl& operator=(const HttpServerImpl&) = delete;

  Result<void> listen();
  uint16_t port() const override { return port_; }
  std::string url() const override {
    const std::string& host = shared_.options.host;
    const bool is_ipv6 = host.find(':') != std::string::npos;
    return fmt::format("http://{}{}{}:{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port_);
  }
  void drain() override;
  HttpServerStats stats() const override;

 private:
  asio::awaitable<void> accept_all();
  void adopt(NetworkThread& home, tcp::socket socket);
  static bool make_room(NetworkThread& home);
  asio::awaitable<void> sweep_all(NetworkThread& home);
  Milliseconds sweep_interval() const;

  Shared shared_;
  std::vector<std::unique_ptr<NetworkThread>> network_;
  asio::executor_work_guard<asio::io_context::executor_type> request_work_{shared_.requests.get_executor()};
  std::vector<std::thread> request_threads_;
  std::optional<tcp::acceptor> acceptor_;  ///< on the first network thread
  std::optional<asio::steady_timer> accept_timer_;
  uint16_t port_ = 0;
};

Result<void> HttpServerImpl::listen() {
  const HttpServerOptions& options = shared_.options;
  for (int i = 0; i < options.network_threads; ++i) {
    network_.push_back(std::make_unique<NetworkThread>());
  }
  asio::io_context& context = network_[0]->context;
  error_code error;
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(options.host, std::to_string(options.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    return fail(ErrorCode::kIo, "cannot listen on {}: the address is not known ({})", printable(options.host),
                error.message());
  }
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.emplace(context);
  accept_timer_.emplace(context);
  acceptor_->open(endpoint.protocol(), error);
  if (!error) {
    acceptor_->set_option(tcp::acceptor::reuse_address(true), error);
  }
  if (!error) {
    acceptor_->bind(endpoint, error);
  }
  if (!error) {
    acceptor_->listen(4096, error);
  }
  if (error) {
    return fail(ErrorCode::kIo, "cannot listen on {}:{}: {}", printable(options.host), options.port,
                error.message());
  }
  port_ = acceptor_->local_endpoint(error).port();

  for (size_t i = 0; i < network_.size(); ++i) {
    NetworkThread& home = *network_[i];
    asio::co_spawn(home.context, sweep_all(home), asio::detached);
  }
  asio::co_spawn(context, accept_all(), asio::detached);
  for (size_t i = 0; i < network_.size(); ++i) {
    network_[i]->thread = std::thread([&home = *network_[i]] { home.context.run(); });
    pthread_getcpuclockid(network_[i]->thread.native_handle(), &network_[i]->cpu_clock);
    pthread_setname_np(network_[i]->thread.native_handle(), fmt::format("hadal-net-{}", i).c_str());
  }
  for (int i = 0; i < options.request_threads; ++i) {
    std::thread& thread = request_threads_.emplace_back([this] { shared_.requests.run(); });
    pthread_setname_np(thread.native_handle(), fmt::format("hadal-req-{}", i).c_str());
  }
  return {};
}

asio::awaitable<void> HttpServerImpl::accept_all() {
  Milliseconds pause{0};
  for (size_t turn = 0; acceptor_->is_open(); ++turn) {
    NetworkThread& home = *network_[turn % network_.size()];
    auto [error, socket] = co_await acceptor_->async_accept(home.context, kNoThrow);
    if (error == asio::error::operation_aborted) {
      co_return;
    }
    if (error == asio::error::connection_aborted) {
      continue;
    }
    if (error) {
      // Out of descriptors or memory: the listening socket stays readable, so without a pause this would
      // spin. An idle connection gives its descriptor back.
      shared_.accept_errors_total.fetch_add(1);
      pause = std::min(Milliseconds(1000), pause * 2 + Milliseconds(10));
      spdlog::warn("cannot accept a connection ({}); trying again in {} ms", error.message(), pause.count());
      for (const auto& other : network_) {
        asio::post(other->context, [&other = *other] { make_room(other); });
      }
      accept_timer_->expires_after(pause);
      co_await accept_timer_->async_wait(kNoThrow);
      continue;
    }
    pause = Milliseconds(0);
    if (&home == network_[0].get()) {
      adopt(home, std::move(socket));
    } else {
      asio::post(home.context,
                 [this, &home, accepted = std::move(socket)]() mutable { adopt(home, std::move(accepted)); });
    }
  }
}

void HttpServerImpl::adopt(NetworkThread& home, tcp::socket socket) {
  if (shared_.stopping.load()) {
    return;
  }
  if (shared_.connections.load() >= shared_.options.max_connections && !make_room(home)) {
    static constexpr std::string_view kBusy =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: "
        "close\r\n\r\n";
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(kBusy), ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
    return;
  }
  try {
    auto connection = std::make_shared<Connection>(shared_, home, std::move(socket));
    asio::co_spawn(home.context, [connection] { return connection->run(); }, asio::detached);
  } catch (const std::exception& fault) {  // out of memory
    shared_.accept_errors_total.fetch_add(1);
    spdlog::error("cannot take a connection: {}", fault.what());
  }
}

/// Closes the connection of `home` that has waited longest for a request, if there is any.
bool HttpServerImpl::make_room(NetworkThread& home) {
  Connection* chosen = nullptr;
  for (Connection* connection : home.connections) {  // oldest first
    if (connection->eviction_rank() <
        (chosen == nullptr ? Connection::kNeverEvicted : chosen->eviction_rank())) {
      chosen = connection;
    }
  }
  if (chosen == nullptr) {
    return false;
  }
  chosen->evict();
  return true;
}

asio::awaitable<void> HttpServerImpl::sweep_all(NetworkThread& home) {
  const Milliseconds interval = sweep_interval();
  while (true) {
    const int64_t second =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    if (second != home.date_second) {
      home.date_second = second;
      home.date = http_date(second);
    }
    const Clock::time_point now = Clock::now();
    for (Connection* connection : home.connections) {
      connection->sweep(now);
    }
    if (shared_.stopping.load() && home.connections.empty()) {
      co_return;
    }
    home.sweep_timer.expires_after(shared_.stopping.load() ? Milliseconds(5) : interval);
    co_await home.sweep_timer.async_wait(kNoThrow);
  }
}

/// A small part of the shortest time-out, so that none is missed by much.
Milliseconds HttpServerImpl::sweep_interval() const {
  Milliseconds interval{250};
  const HttpServerOptions& o = shared_.options;
  for (const Milliseconds limit : {o.header_timeout, o.body_timeout, o.idle_timeout, o.write_timeout,
                                   o.keep_alive_interval, o.request_timeout}) {
    if (limit.count() > 0) {
      interval = std::min(interval, limit / 8);
    }
  }
  return std::max(interval, Milliseconds(5));
}

void HttpServerImpl::drain() {
  shared_.draining.store(true);
  for (const auto& home : network_) {
    asio::post(home->context, [&home = *home] { home.sweep_timer.cancel(); });
  }
}

HttpServerImpl::~HttpServerImpl() {
  shared_.stopping.store(true);
  if (!network_.empty() && network_[0]->thread.joinable()) {
    asio::post(network_[0]->context, [this] {
      error_code ignored;
      acceptor_->close(ignored);
      accept_timer_->cancel();
    });
    drain();  // wakes the sweepers, which close every connection
    for (const auto& home : network_) {
      home->work.reset();
      home->thread.join();
    }
  }
  request_work_.reset();
  for (std::thread& thread : request_threads_) {
    thread.join();
  }
}

HttpServerStats HttpServerImpl::stats() const {
  HttpServerStats stats;
  stats.connections = shared_.connections.load();
  stats.exchanges = shared_.exchanges.load();
  stats.connections_total = shared_.connections_total.load();
  stats.evicted_total = shared_.evicted_total.load();
  stats.accept_errors_total = shared_.accept_errors_total.load();
  stats.timeouts_total = shared_.timeouts_total.load();
  stats.disconnects_total = shared_.disconnects_total.load();
  stats.aborted_total = shared_.aborted_total.load();
  for (const auto& home : network_) {
    timespec used{};
    if (clock_gettime(home->cpu_clock, &used) == 0) {
      stats.network_cpu_seconds +=
          static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
    }
  }
  return stats;
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options,
                                                      HttpService& service) {
  auto server = std::make_unique<HttpServerImpl>(options, service);
  HADAL_CHECK(server->listen());
  return server;
}

}  // namespace hadal::server
