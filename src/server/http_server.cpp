// The only file that sees Boost.
//
// Each network thread runs an io_context of its own, and a connection lives on one of them for good: its
// coroutines, timers and flags are touched by that thread only, so there are no locks. Other threads reach a
// connection by posting to its context (Connection::wake, abort). A sweep several times a second enforces
// every time-out, which costs nothing per request.
//
// A connection's main coroutine reads a request, has it answered and writes the answer, one after the other.
// While an answer is pending a second coroutine (watch) keeps reading, so that a client that leaves is
// noticed at once; what it reads is the next pipelined request.
#include "server/http_server.h"

#include <atomic>
#include <list>
#include <thread>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <pthread.h>

#include "base/log.h"

namespace hadal::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadAhead = 64 << 10;    ///< bytes of pipelined requests held while an answer is pending
constexpr size_t kPieceBytes = 256 << 10;  ///< of a stream, made and written at a time
constexpr int kTlsHandshake = 0x16;        ///< first byte of a TLS client
constexpr Milliseconds kLingerTime{
    2000};  ///< for a client to take an answer that was given before it sent all
constexpr Milliseconds kDrainPatience{1000};

/// Large transfers get longer: a second for each 16 KiB.
Milliseconds transfer_time(size_t bytes) {
  return Milliseconds(bytes / 16);
}

class Connection;

/// One io_context, its thread, and the connections that live there.
struct NetworkThread {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  asio::steady_timer sweep_timer{context};
  std::list<Connection*> connections;  ///< touched by this thread only
  int64_t date_second = 0;
  std::string date;
  std::thread thread;
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
        buffer_(shared.options.max_header_bytes + kReadAhead) {
    entry_ = home_.connections.insert(home_.connections.end(), this);
    shared_.connections.fetch_add(1);
    shared_.connections_total.fetch_add(1);
    error_code error;
    socket_.set_option(tcp::no_delay(true), error);
    const auto peer = socket_.remote_endpoint(error);
    peer_ = error ? std::string() : peer.address().to_string(error);
  }
  ~Connection() override {
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
  using Parser = http::request_parser<http::buffer_body>;

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
  asio::awaitable<bool> read_request(Parser& parser);
  bool take_head(const Parser& parser);
  asio::awaitable<bool> read_body(Parser& parser);
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

asio::awaitable<void> Connection::run() {
  bool goes_on = true;
  while (goes_on) {  // GCC 12 miscompiles co_await in the condition of a loop
    goes_on = co_await serve_one();
  }
  if (socket_.is_open() && !gone_) {
    co_await linger();
  }
  close();
}

asio::awaitable<bool> Connection::serve_one() {
  if (!co_await wait_for_first_byte()) {
    co_return false;
  }
  request_ = HttpRequest{};
  request_.peer = peer_;
  refused_.reset();
  status_ = 499;
  response_bytes_ = 0;
  unread_body_ = false;
  expired_ = false;
  arrival_ = Clock::now();

  shared_.exchanges.fetch_add(1);
  bool completed = false;
  bool is_exchange = true;
  {
    Parser parser;
    const bool is_read = co_await read_request(parser);
    if (is_read) {
      Answer answer = co_await make_answer();
      completed = co_await write_answer(answer);
    } else if (refused_) {
      completed = co_await write_response(*refused_);
    } else {
      is_exchange = false;
    }
  }
  release_body();
  has_served_ = true;
  if (is_exchange) {
    shared_.disconnects_total.fetch_add(completed ? 0 : 1);
    shared_.service.finished({&request_, status_, completed, response_bytes_, Clock::now() - arrival_});
  }
  shared_.exchanges.fetch_sub(1);
  co_return completed&& keep_alive_ && !lost();
}

asio::awaitable<bool> Connection::wait_for_first_byte() {
  if (buffer_.size() == 0) {
    buffer_.shrink_to_fit();
    if (shared_.draining.load() && has_served_) {
      co_return false;
    }
    enter(Phase::kIdle, shared_.options.idle_timeout);
    const auto [error, bytes] = co_await socket_.async_read_some(buffer_.prepare(4096), kNoThrow);
    if (error) {
      gone_ = true;
      co_return false;
    }
    buffer_.commit(bytes);
    if (*static_cast<const unsigned char*>(buffer_.data().data()) == kTlsHandshake) {
      spdlog::debug("{}: TLS on a plain port", peer_);
      gone_ = true;
      co_return false;
    }
  }
  co_return true;
}

asio::awaitable<bool> Connection::read_request(Parser& parser) {
  enter(Phase::kHeader, shared_.options.header_timeout);
  timed_out_ = false;
  parser.header_limit(static_cast<uint32_t>(shared_.options.max_header_bytes));
  parser.body_limit(shared_.options.max_body_bytes);
  const auto [error, bytes] = co_await http::async_read_header(socket_, buffer_, parser, kNoThrow);
  static_cast<void>(bytes);
  unread_body_ = true;
  request_.method = parser.get().method_string();
  split_target(parser.get().target(), request_.path, request_.query);
  if (timed_out_) {
    co_return refuse(408, "the request headers did not arrive in time");
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    co_return refuse(
        431, fmt::format("the request headers are larger than {} bytes", shared_.options.max_header_bytes));
  }
  if (error == http::error::body_limit) {
    take_head(parser);
    co_return refuse(413,
                     fmt::format("the request body is larger than {} bytes", shared_.options.max_body_bytes));
  }
  if (error == http::error::bad_version) {
    co_return refuse(505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
  }
  if (error.category() == http::make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message) {
    co_return refuse(400, fmt::format("malformed HTTP request: {}", error.message()));
  }
  if (error) {  // the client left, or the connection was closed by us
    gone_ = true;
    co_return false;
  }
  if (!take_head(parser)) {
    co_return false;
  }
  unread_body_ = !parser.is_done();
  if (auto refusal = shared_.service.check(request_)) {
    refused_ = std::move(refusal);
    keep_alive_ = keep_alive_ && !unread_body_;  // the body would have to be read first
    co_return false;
  }
  if (parser.is_done()) {
    co_return true;
  }
  if (const std::string_view expect = request_.header("expect"); !expect.empty()) {
    if (!equals_ignoring_case(expect, "100-continue")) {
      co_return refuse(417, "the only expectation that is known here is 100-continue");
    }
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    if (!is_http_1_0_ && buffer_.size() == 0) {
      const bool is_written = co_await write(asio::buffer(kContinue));
      if (!is_written) {
        co_return false;
      }
    }
  }
  co_return co_await read_body(parser);
}

/// Copies the head into request_ and checks its framing. False: refused.
bool Connection::take_head(const Parser& parser) {
  const auto& head = parser.get();
  is_http_1_0_ = head.version() < 11;
  keep_alive_ = head.keep_alive();
  for (const auto& field : head) {
    request_.headers.emplace_back(field.name_string(), field.value());
  }
  if (request_.headers.size() > static_cast<size_t>(shared_.options.max_header_count)) {
    return refuse(431, fmt::format("the request has {} headers; at most {} are accepted",
                                   request_.headers.size(), shared_.options.max_header_count));
  }
  // Anything about the body's length that two parsers could read in two ways is refused.
  const size_t num_lengths = request_.count("content-length");
  const size_t num_encodings = request_.count("transfer-encoding");
  if (num_lengths > 1 || num_encodings > 1 || (num_lengths > 0 && num_encodings > 0)) {
    return refuse(400, "the request says more than once how long its body is");
  }
  if (num_encodings > 0 &&
      (is_http_1_0_ || !equals_ignoring_case(request_.header("transfer-encoding"), "chunked"))) {
    return refuse(400, "the only transfer encoding that is accepted is chunked, with HTTP/1.1");
  }
  if (request_.count("host") > 1 || (!is_http_1_0_ && request_.count("host") == 0)) {
    return refuse(400, "the request needs exactly one Host header");
  }
  if (request_.path.empty()) {
    return refuse(400, "the request target is not a path");
  }
  return true;
}

asio::awaitable<bool> Connection::read_body(Parser& parser) {
  enter(Phase::kBody, shared_.options.body_timeout);
  const Clock::time_point begin = Clock::now();
  std::string& body = request_.body;
  while (!parser.is_done()) {
    const size_t have = body.size();
    const size_t room = std::min<size_t>(kReadAhead, std::max<size_t>(have, 4096));
    body.resize(have + room);
    parser.get().body().data = body.data() + have;
    parser.get().body().size = room;
    auto [error, bytes] = co_await http::async_read_some(socket_, buffer_, parser, kNoThrow);
    static_cast<void>(bytes);
    const size_t got = room - parser.get().body().size;
    body.resize(have + got);
    charged_bytes_ += got;
    const uint64_t all = shared_.buffered_body_bytes.fetch_add(got) + got;
    if (timed_out_) {
      co_return refuse(408, "the request body did not arrive in time");
    }
    if (error == http::error::body_limit) {
      co_return refuse(
          413, fmt::format("the request body is larger than {} bytes", shared_.options.max_body_bytes));
    }
    if (error && error != http::error::need_buffer) {
      if (error.category() == http::make_error_code(http::error::bad_method).category() &&
          error != http::error::end_of_stream && error != http::error::partial_message) {
        co_return refuse(400, fmt::format("malformed HTTP body: {}", error.message()));
      }
      gone_ = true;
      co_return false;
    }
    if (all > shared_.options.max_buffered_body_bytes) {
      co_return refuse(503, "too much request data is being read; try again later");
    }
    deadline_ = begin + shared_.options.body_timeout + transfer_time(body.size());
  }
  unread_body_ = false;
  co_return true;
}

asio::awaitable<Answer> Connection::make_answer() {
  enter(Phase::kWorking, shared_.options.request_timeout);
  Answer answer;
  const auto work = [this, &answer] {
    try {
      answer = shared_.service.handle(request_);
    } catch (const std::exception& fault) {  // out of memory; everything expected is a value
      spdlog::error("{}: {}", request_.id, fault.what());
      answer = shared_.service.refuse(request_, 500, "the server failed to handle the request");
    }
  };
  if (shared_.service.is_quick(request_)) {
    work();
  } else {
    co_await asio::co_spawn(
        shared_.requests,
        [&work]() -> asio::awaitable<void> {
          work();
          co_return;
        },
        kNoThrow);
  }
  release_body();
  co_return answer;
}

asio::awaitable<bool> Connection::write_answer(Answer& answer) {
  if (auto* response = std::get_if<HttpResponse>(&answer)) {
    co_return co_await write_response(*response);
  }
  PendingAnswer* pending = nullptr;
  HttpResponse* stream_head = nullptr;
  StreamingResponse* stream = nullptr;
  LaterResponse* later = nullptr;
  if (auto* streaming = std::get_if<StreamingAnswer>(&answer)) {
    stream_head = &streaming->head;
    pending = stream = streaming->body.get();
  } else {
    pending = later = std::get<std::unique_ptr<LaterResponse>>(answer).get();
  }
  woken_ = false;
  pending_ = pending;
  watching_ = true;
  asio::co_spawn(home_.context, [self = shared_from_this()] { return self->watch(); }, asio::detached);
  pending->start(*this);
  bool completed = false;
  if (stream != nullptr) {
    completed = co_await write_stream(*stream_head, *stream);
  } else {
    completed = co_await write_later(*later);
  }
  pending_ = nullptr;
  streaming_ = false;
  // Destroyed here, on the home thread: after this nobody uses the waker.
  answer = HttpResponse{};
  co_await stop_watching();
  co_return completed;
}

asio::awaitable<bool> Connection::write_later(LaterResponse& later) {
  phase_ = Phase::kPending;
  deadline_ = arrival_ + shared_.options.request_timeout;
  while (!lost()) {
    if (auto response = later.poll()) {
      co_return co_await write_response(*response);
    }
    co_await wait_for_wake();
  }
  co_return false;
}

asio::awaitable<bool> Connection::write_stream(HttpResponse& head, StreamingResponse& body) {
  status_ = head.status;
  shared_.service.decorate(request_, head);
  HeadOptions options = head_options();
  options.chunked = !is_http_1_0_;
  if (is_http_1_0_) {
    keep_alive_ = false;
    options.close = true;
  }
  std::string lead = response_head(head, options);  // then: the size line of a chunk
  std::string piece;
  streaming_ = true;
  keep_alive_due_ = false;
  last_write_ = Clock::now();
  while (!lost()) {
    piece.clear();
    bool more_ready = false;
    const auto state = body.pull(piece, kPieceBytes, more_ready);
    if (piece.empty() && keep_alive_due_ && state == StreamingResponse::State::kMore) {
      piece = body.keep_alive();
    }
    keep_alive_due_ = false;
    std::string_view tail;
    if (options.chunked) {
      if (!piece.empty()) {
        fmt::format_to(std::back_inserter(lead), "{:x}\r\n", piece.size());
        tail = "\r\n";
      }
      if (state == StreamingResponse::State::kEnd) {
        tail = piece.empty() ? "0\r\n\r\n" : "\r\n0\r\n\r\n";
      }
    }
    if (!lead.empty() || !piece.empty() || !tail.empty()) {
      const std::array<asio::const_buffer, 3> buffers{asio::buffer(lead), asio::buffer(piece),
                                                      asio::buffer(tail)};
      if (!co_await write(buffers)) {
        co_return false;
      }
      last_write_ = Clock::now();
      lead.clear();
    }
    if (state == StreamingResponse::State::kEnd) {
      co_return true;
    }
    phase_ = Phase::kPending;
    deadline_ = arrival_ + shared_.options.request_timeout;
    if (!more_ready) {
      co_await wait_for_wake();
    }
  }
  co_return false;
}

asio::awaitable<bool> Connection::write_response(HttpResponse& response) {
  status_ = response.status;
  shared_.service.decorate(request_, response);
  if (shared_.draining.load()) {
    keep_alive_ = false;
  }
  HeadOptions options = head_options();
  if (response.status != 204) {
    options.content_length = response.body.size();
  }
  const std::string head = response_head(response, options);
  const std::string_view body =
      request_.method == "HEAD" ? std::string_view() : std::string_view(response.body);
  const std::array<asio::const_buffer, 2> buffers{asio::buffer(head), asio::buffer(body)};
  co_return co_await write(buffers);
}

template <class Buffers>
asio::awaitable<bool> Connection::write(const Buffers& buffers) {
  const size_t total = asio::buffer_size(buffers);
  enter(Phase::kWriting, shared_.options.write_timeout + transfer_time(total));
  const auto [error, bytes] = co_await asio::async_write(socket_, buffers, kNoThrow);
  response_bytes_ += bytes;
  gone_ = gone_ || error;
  co_return !error;
}

asio::awaitable<void> Connection::watch() {
  while (pending_ != nullptr && buffer_.size() < kReadAhead && socket_.is_open()) {
    const auto [error, bytes] = co_await socket_.async_read_some(buffer_.prepare(4096), kNoThrow);
    buffer_.commit(bytes);
    if (error == asio::error::operation_aborted && pending_ == nullptr) {
      break;  // stop_watching
    }
    if (error) {
      gone_ = true;
      close();  // also ends a write that is stuck
      break;
    }
  }
  watching_ = false;
  notify();
}

asio::awaitable<void> Connection::stop_watching() {
  error_code ignored;
  socket_.cancel(ignored);
  while (watching_) {
    co_await wait_for_wake();
  }
}

asio::awaitable<void> Connection::wait_for_wake() {
  if (!woken_) {
    wake_timer_.expires_at(Clock::time_point::max());
    co_await wake_timer_.async_wait(kNoThrow);
  }
  woken_ = false;
}

/// Closing with unread data resets the connection, and the client may lose the answer: say that nothing more
/// will come, and drop what still arrives for a short while.
asio::awaitable<void> Connection::linger() {
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  if (!unread_body_) {
    co_return;
  }
  enter(Phase::kLinger, kLingerTime);
  std::array<char, 4096> dropped;
  while (socket_.is_open()) {
    const auto [error, bytes] = co_await socket_.async_read_some(asio::buffer(dropped), kNoThrow);
    static_cast<void>(bytes);
    if (error) {
      break;
    }
  }
}

void Connection::sweep(Clock::time_point now) {
  // While draining, a new connection gets a moment to ask, so that it can be told.
  const bool is_unneeded = phase_ == Phase::kIdle && (has_served_ || now - opened_ > kDrainPatience);
  if (shared_.stopping.load() || (is_unneeded && shared_.draining.load())) {
    close();
    return;
  }
  if (streaming_ && phase_ == Phase::kPending && shared_.options.keep_alive_interval.count() > 0 &&
      now - last_write_ >= shared_.options.keep_alive_interval) {
    keep_alive_due_ = true;
    notify();
  }
  if (now < deadline_) {
    return;
  }
  deadline_ = Clock::time_point::max();
  switch (phase_) {
    case Phase::kHeader:
    case Phase::kBody: {
      shared_.timeouts_total.fetch_add(1);
      timed_out_ = true;
      error_code ignored;
      socket_.cancel(ignored);
      break;
    }
    case Phase::kPending:
      if (!expired_ && pending_ != nullptr) {
        shared_.timeouts_total.fetch_add(1);
        expired_ = true;
        pending_->expire();
        notify();
      }
      break;
    case Phase::kWorking:
      break;  // noticed when the work is done
    case Phase::kWriting:
      shared_.timeouts_total.fetch_add(1);
      close();
      break;
    case Phase::kIdle:
    case Phase::kLinger:
      close();
      break;
  }
}

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
  auto connection = std::make_shared<Connection>(shared_, home, std::move(socket));
  asio::co_spawn(home.context, [connection] { return connection->run(); }, asio::detached);
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
    clockid_t clock{};
    timespec used{};
    if (pthread_getcpuclockid(home->thread.native_handle(), &clock) == 0 &&
        clock_gettime(clock, &used) == 0) {
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
