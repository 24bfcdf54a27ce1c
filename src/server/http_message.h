#pragma once
// Requests and answers as the rest of the server sees them. Nothing here knows sockets.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hadal::server {

/// Name and value of a header; names keep the spelling they came with and compare without case.
using Header = std::pair<std::string, std::string>;

struct HttpRequest {
  std::string method;
  std::string path;   ///< of the target, before '?', exactly as sent (no decoding, no normalization)
  std::string query;  ///< after '?'
  std::vector<Header> headers;
  std::string body;
  std::string peer;                                 ///< address of the client
  std::string id;                                   ///< request id for logs and the x-request-id header
  std::chrono::steady_clock::time_point arrival{};  ///< of its first byte

  /// The value of the first header of that name; empty if there is none.
  std::string_view header(std::string_view name) const;
  /// How many headers have that name.
  size_t count(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<Header> headers;  ///< besides Content-Type, Content-Length, Connection and Date
};

/// How an answer that takes time tells its connection to call it again. Any thread, any number of times,
/// until the answer has been destroyed.
class Waker {
 public:
  virtual ~Waker() = default;
  virtual void wake() = 0;
  /// Gives the client up at once: the connection is closed and the answer destroyed.
  virtual void abort() = 0;
};

/// An answer that takes time. The connection owns it and calls it from one thread at a time. Destroying it
/// before its end means that the client is gone: whatever runs for it must be cancelled.
class PendingAnswer {
 public:
  virtual ~PendingAnswer() = default;
  /// Called once, before anything else; from then until the destructor has returned `waker` may be used.
  virtual void start(Waker& waker) = 0;
  /// The request ran past its time limit: end soon, with an error that says so.
  virtual void expire() = 0;
};

/// A whole response that is not ready yet.
class LaterResponse : public PendingAnswer {
 public:
  /// The response once it is there; called after start() and after each wake.
  virtual std::optional<HttpResponse> poll() = 0;
};

/// A response whose body is made piece by piece (server-sent events). Its head is sent at once.
class StreamingResponse : public PendingAnswer {
 public:
  enum class State { kMore, kEnd };
  /// Appends what is ready to `out`, at most about `max_bytes`; call again when it left `more_ready` true,
  /// else after a wake. Nothing is asked for while an earlier piece is still being written.
  virtual State pull(std::string& out, size_t max_bytes, bool& more_ready) = 0;
  /// Bytes that keep a silent stream alive.
  virtual std::string_view keep_alive() const = 0;
};

/// What a handler gives back: a response now, later, or in pieces (with its head; `body` is ignored).
struct StreamingAnswer {
  HttpResponse head;
  std::unique_ptr<StreamingResponse> body;
};
/// The head of a stream of server-sent events; proxies are told not to hold it back.
HttpResponse event_stream_head();

using Answer = std::variant<HttpResponse, std::unique_ptr<LaterResponse>, StreamingAnswer>;

/// The part of a response before its body. `content_length` absent: a chunked body (or, for `close` with
/// HTTP/1.0, one that ends with the connection).
struct HeadOptions {
  std::optional<uint64_t> content_length;
  bool chunked = false;
  bool close = false;
  std::string_view date;  ///< as formatted by http_date
};
std::string response_head(const HttpResponse& response, const HeadOptions& options);

/// The reason phrase of a status code.
std::string_view status_text(int status);

/// IMF-fixdate of a Unix time.
std::string http_date(int64_t unix_seconds);

/// Splits a request target into path and query. Absolute targets ("http://host/path") lose scheme and host.
/// False if it is neither an absolute path nor an absolute http(s) URL, or holds a control character, a space
/// or a byte above 0x7e.
bool split_target(std::string_view target, std::string& path, std::string& query);

/// Decodes %XX; false on a malformed escape or a NUL.
bool percent_decode(std::string_view text, std::string& decoded);

/// Compares ASCII text without regard to case.
bool equals_ignoring_case(std::string_view a, std::string_view b);

}  // namespace hadal::server
