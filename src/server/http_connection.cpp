// A connection's main coroutine reads a request, has it answered and writes the answer, one after the other.
// While an answer is pending a second coroutine (watch) keeps reading, so that a client that leaves is
// noticed at once; what it reads is the next pipelined request.
#include "server/http_connection.h"

#include <algorithm>
#include <array>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

#include "base/log.h"

namespace hadal::server {

namespace http = boost::beast::http;

struct RequestParser : http::request_parser<http::buffer_body> {};

namespace {

constexpr size_t kPieceBytes = 256 << 10;  ///< of a stream, made and written at a time
constexpr size_t kWriteBytes = 64 << 10;   ///< given to the system at a time
constexpr int kTlsHandshake = 0x16;        ///< first byte of a TLS client
/// For a client to take an answer that was given before it had sent all.
constexpr Milliseconds kLingerTime{2000};
/// For a new connection to ask while the server drains.
constexpr Milliseconds kDrainPatience{1000};

/// Large transfers get longer: a second for each 16 KiB.
Milliseconds transfer_time(size_t bytes) {
  return Milliseconds(bytes / 16);
}

/// Counts up while it lives.
class Counted {
 public:
  explicit Counted(std::atomic<int64_t>& counter) : counter_(counter) { counter_.fetch_add(1); }
  ~Counted() { counter_.fetch_sub(1); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int64_t>& counter_;
};

/// Sets a pointer back to null at the end of its scope, however that comes.
class Cleared {
 public:
  explicit Cleared(PendingAnswer*& pointer) : pointer_(pointer) {}
  ~Cleared() { pointer_ = nullptr; }
  Cleared(const Cleared&) = delete;
  Cleared& operator=(const Cleared&) = delete;

 private:
  PendingAnswer*& pointer_;
};

/// A fault of the bytes themselves, not of the connection.
bool is_malformed(const error_code& error) {
  static const boost::system::error_category& category =
      http::make_error_code(http::error::bad_method).category();
  return error.category() == category && error != http::error::end_of_stream &&
         error != http::error::partial_message;
}

}  // namespace

asio::awaitable<void> Connection::run() {
  try {
    bool goes_on = true;
    while (goes_on) {  // GCC 12 miscompiles co_await in the condition of a loop
      goes_on = co_await serve_one();
    }
    if (socket_.is_open() && !gone_) {
      co_await linger();
    }
  } catch (const std::exception& fault) {  // out of memory: it ends this connection alone
    spdlog::error("{}: {}", peer_, fault.what());
  }
  close();  // also ends a watch
}

asio::awaitable<bool> Connection::serve_one() {
  if (!co_await wait_for_first_byte()) {
    co_return false;
  }
  arrival_ = Clock::now();
  request_ = HttpRequest{};
  request_.peer = peer_;
  request_.arrival = arrival_;
  refused_.reset();
  status_ = 499;
  response_bytes_ = 0;
  unread_body_ = false;
  expired_ = false;

  const Counted counted(shared_.exchanges);
  bool completed = false;
  bool is_exchange = true;
  bool is_read = false;
  {
    RequestParser parser;
    is_read = co_await read_request(parser);
  }
  if (is_read) {
    Answer answer = co_await make_answer();
    completed = co_await write_answer(answer);
  } else if (refused_) {
    completed = co_await write_response(*refused_);
  } else {
    is_exchange = false;
  }
  release_body();
  has_served_ = true;
  if (is_exchange) {
    shared_.disconnects_total.fetch_add(completed ? 0 : 1);
    shared_.service.finished({&request_, status_, completed, response_bytes_, Clock::now() - arrival_});
  }
  co_return (completed && keep_alive_ && !lost());
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

asio::awaitable<bool> Connection::read_request(RequestParser& parser) {
  enter(Phase::kHeader, shared_.options.header_timeout);
  timed_out_ = false;
  parser.header_limit(
      static_cast<uint32_t>(std::min<uint64_t>(shared_.options.max_header_bytes, UINT32_MAX)));
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
  if (is_malformed(error)) {
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
bool Connection::take_head(const RequestParser& parser) {
  const auto& head = parser.get();
  is_http_1_0_ = head.version() < 11;
  keep_alive_ = head.keep_alive() && !is_http_1_0_;
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
  const bool is_list =
      request_.header("content-length").find_first_not_of("0123456789") != std::string_view::npos;
  if (num_lengths > 1 || is_list || num_encodings > 1 || (num_lengths > 0 && num_encodings > 0)) {
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

asio::awaitable<bool> Connection::read_body(RequestParser& parser) {
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
      if (is_malformed(error)) {
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
  const Cleared cleared(pending_);
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
  const Milliseconds patience = shared_.options.write_timeout;
  enter(Phase::kWriting, patience);
  const Clock::time_point end = Clock::now() + patience + transfer_time(total);
  // Called after each part that the client took: a large answer gets more time, but not one that nobody
  // reads.
  const auto goes_on = [this, patience, end](const error_code& failure, size_t) -> size_t {
    deadline_ = std::min(Clock::now() + patience, end);
    return failure ? 0 : kWriteBytes;
  };
  const auto [error, bytes] = co_await asio::async_write(socket_, buffers, goes_on, kNoThrow);
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

}  // namespace hadal::server
