#pragma once
// One HTTP connection. Internal to the server: this header and the two sources that include it see Boost.
//
// Each network thread runs an io_context of its own, and a connection lives on one of them for good: its
// coroutines, timers and flags are touched by that thread only, so there are no locks. Other threads reach a
// connection by posting to its context (Connection::wake, abort). A sweep several times a second enforces
// every time-out, which costs nothing per request.

#include <atomic>
#include <list>
#include <memory>
#include <thread>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include "server/http_server.h"

namespace hadal::server {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// Asynchronous operations give (error, result) instead of throwing.
constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadAhead = 64 << 10;  ///< bytes of pipelined requests held while an answer is pending

class Connection;
struct RequestParser;  ///< Beast's, for one request

/// One io_context, its thread, and the connections that live there.
struct NetworkThread {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  asio::steady_timer sweep_timer{context};
  std::list<Connection*> connections;  ///< touched by this thread only
  int64_t date_second = 0;
  std::string date;
  std::thread thread;
  clockid_t cpu_clock{};  ///< of the thread; set before anyone asks
};

/// What all connections share.
struct Shared {
  Shared(const HttpServerOptions& server_options, HttpService& http_service)
      : options(server_options), service(http_service) {}
  const HttpServerOptions options;
  HttpService& service;
  asio::io_context requests;  ///< runs HttpService::handle
  std::atomic<bool> draining{false};
  std::atomic<bool> stopping{false};
  std::atomic<int64_t> connections{0};
  std::atomic<int64_t> exchanges{0};
  std::atomic<uint64_t> buffered_body_bytes{0};
  std::atomic<uint64_t> connections_total{0};
  std::atomic<uint64_t> evicted_total{0};
  std::atomic<uint64_t> accept_errors_total{0};
  std::atomic<uint64_t> timeouts_total{0};
  std::atomic<uint64_t> disconnects_total{0};
  std::atomic<uint64_t> aborted_total{0};
};

class Connection final : public Waker, public std::enable_shared_from_this<Connection> {
 public:
  Connection(Shared& shared, NetworkThread& home, tcp::socket socket)
      : shared_(shared),
        home_(home),
        socket_(std::move(socket)),
        wake_timer_(home.context),
        buffer_(shared.options.max_header_bytes + 2 * kReadAhead) {
    entry_ = home_.connections.insert(home_.connections.end(), this);
    shared_.connections.fetch_add(1);
    shared_.connections_total.fetch_add(1);
    error_code error;
    socket_.set_option(tcp::no_delay(true), error);
    const auto peer = socket_.remote_endpoint(error);
    peer_ = error ? std::string() : peer.address().to_string(error);
  }
  ~Connection() override {
    release_body();
    home_.connections.erase(entry_);
    shared_.connections.fetch_sub(1);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Any thread.
  void wake() override {
    if (!wake_posted_.exchange(true)) {
      asio::post(home_.context, [self = shared_from_this()] {
        self->wake_posted_.store(false);
        self->notify();
      });
    }
  }
  void abort() override {
    asio::post(home_.context, [self = shared_from_this()] {
      if (self->socket_.is_open()) {
        self->shared_.aborted_total.fetch_add(1);
        self->close();
      }
    });
  }

  // The home thread.
  asio::awaitable<void> run();
  void close() {
    error_code ignored;
    socket_.close(ignored);
    notify();
  }
  void sweep(Clock::time_point now);
  /// How readily the connection may be closed to make room: lower goes first, kNeverEvicted never.
  static constexpr int kNeverEvicted = 2;
  int eviction_rank() const {
    return phase_ == Phase::kIdle ? 0 : phase_ == Phase::kHeader ? 1 : kNeverEvicted;
  }
  void evict() {
    shared_.evicted_total.fetch_add(1);
    phase_ = Phase::kLinger;
    close();
  }

 private:
  enum class Phase { kIdle, kHeader, kBody, kWorking, kPending, kWriting, kLinger };

  void enter(Phase phase, Milliseconds limit) {
    phase_ = phase;
    deadline_ = Clock::now() + limit;
  }
  void notify() {
    woken_ = true;
    wake_timer_.cancel();
  }
  bool lost() const { return gone_ || !socket_.is_open(); }

  asio::awaitable<bool> serve_one();
  asio::awaitable<bool> wait_for_first_byte();
  /// Reads head and body into request_. False: refused_ says what to answer before closing (none: just
  /// close).
  asio::awaitable<bool> read_request(RequestParser& parser);
  bool take_head(const RequestParser& parser);
  asio::awaitable<bool> read_body(RequestParser& parser);
  asio::awaitable<Answer> make_answer();
  asio::awaitable<bool> write_answer(Answer& answer);
  asio::awaitable<bool> write_response(HttpResponse& response);
  asio::awaitable<bool> write_later(LaterResponse& later);
  asio::awaitable<bool> write_stream(HttpResponse& head, StreamingResponse& body);
  template <class Buffers>
  asio::awaitable<bool> write(const Buffers& buffers);
  asio::awaitable<void> watch();
  asio::awaitable<void> stop_watching();
  asio::awaitable<void> wait_for_wake();
  asio::awaitable<void> linger();

  bool refuse(int status, std::string message) {
    refused_ = shared_.service.refuse(request_, status, std::move(message));
    keep_alive_ = false;
    return false;
  }
  void release_body() {
    shared_.buffered_body_bytes.fetch_sub(charged_bytes_);
    charged_bytes_ = 0;
    request_.body = std::string();
  }
  HeadOptions head_options() const { return {std::nullopt, false, !keep_alive_, home_.date}; }

  Shared& shared_;
  NetworkThread& home_;
  tcp::socket socket_;
  asio::steady_timer wake_timer_;
  boost::beast::flat_buffer buffer_;
  std::list<Connection*>::iterator entry_;
  std::string peer_;

  const Clock::time_point opened_ = Clock::now();
  Phase phase_ = Phase::kIdle;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool timed_out_ = false;  ///< the deadline cancelled the running read
  std::atomic<bool> wake_posted_{false};
  bool woken_ = false;
  bool has_served_ = false;
  bool watching_ = false;
  bool gone_ = false;  ///< the client left

  // The exchange in progress.
  HttpRequest request_;
  std::optional<HttpResponse> refused_;
  bool keep_alive_ = true;
  bool is_http_1_0_ = false;
  bool unread_body_ = false;
  uint64_t charged_bytes_ = 0;
  Clock::time_point arrival_;
  int status_ = 499;
  uint64_t response_bytes_ = 0;
  PendingAnswer* pending_ = nullptr;
  bool expired_ = false;
  bool streaming_ = false;
  bool keep_alive_due_ = false;
  Clock::time_point last_write_;
};

}  // namespace hadal::server
