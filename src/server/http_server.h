#pragma once
// An asynchronous HTTP/1.1 server: connections, framing, limits, time-outs, streaming and draining. It knows
// no route. The only file that includes Boost is http_server.cpp.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "server/http_message.h"

namespace hadal::server {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  ///< 0: any free port
  int network_threads = 1;
  int request_threads = 2;
  int64_t max_connections = 8192;
  uint64_t max_header_bytes = 32 << 10;
  int64_t max_header_count = 100;
  uint64_t max_body_bytes = 64 << 20;
  uint64_t max_buffered_body_bytes = 1 << 30;
  std::chrono::milliseconds header_timeout{30'000};
  std::chrono::milliseconds body_timeout{30'000};
  std::chrono::milliseconds idle_timeout{75'000};
  std::chrono::milliseconds write_timeout{60'000};
  std::chrono::milliseconds keep_alive_interval{10'000};
  std::chrono::milliseconds request_timeout{3'600'000};
};

/// How one exchange ended, for metrics and the log.
struct ExchangeSummary {
  const HttpRequest* request = nullptr;  ///< its body may be gone
  int status = 0;                        ///< what was sent; 499 when the client left before an answer began
  bool completed = false;                ///< the whole answer was written
  uint64_t response_bytes = 0;
  std::chrono::duration<double> seconds{};
};

/// What the server serves. Methods may be called from several threads at once.
class HttpService {
 public:
  virtual ~HttpService() = default;

  /// Looks at a request whose body has not been read: gives it an id and returns an answer to refuse it now.
  virtual std::optional<HttpResponse> check(HttpRequest& request) = 0;
  /// Whether handle() is short enough to run on a network thread.
  virtual bool is_quick(const HttpRequest& request) const = 0;
  /// Answers a request. Must not block for long: what takes time is returned as a LaterResponse or a stream.
  virtual Answer handle(HttpRequest& request) = 0;
  /// The answer to a fault that the server itself found (too large, too slow, malformed). `request` may be
  /// empty but for what was read.
  virtual HttpResponse refuse(const HttpRequest& request, int status, std::string message) = 0;
  /// Adds the headers that every answer to this request carries; called once before its head is written.
  virtual void decorate(const HttpRequest& request, HttpResponse& response) = 0;
  virtual void finished(const ExchangeSummary& summary) = 0;
};

struct HttpServerStats {
  int64_t connections = 0;  ///< open now
  int64_t exchanges = 0;    ///< requests being answered now
  uint64_t connections_total = 0;
  uint64_t evicted_total = 0;        ///< idle connections closed to make room
  uint64_t accept_errors_total = 0;  ///< out of descriptors or memory
  uint64_t timeouts_total = 0;
  uint64_t disconnects_total = 0;  ///< clients that left before their answer ended
  uint64_t aborted_total = 0;      ///< streams given up because the reader did not keep up
  double network_cpu_seconds = 0;  ///< CPU time of the network threads
};

class HttpServer {
 public:
  /// Binds and begins to answer. `service` must outlive the server. Errors name the address (kIo).
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options, HttpService& service);
  virtual ~HttpServer() = default;  ///< closes what is open at once and joins all threads

  virtual uint16_t port() const = 0;
  /// "http://host:port", with the host as it was given.
  virtual std::string url() const = 0;
  /// From now on idle connections are closed and each connection ends with the answer it is giving. New
  /// connections are still accepted so that the service can tell them that it is going down.
  virtual void drain() = 0;
  virtual HttpServerStats stats() const = 0;
};

}  // namespace hadal::server
