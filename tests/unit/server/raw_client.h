#pragma once
// A client that sends exactly the bytes it is given, for talking to a server as no well-behaved client would.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace hadal::server::testing {

struct RawResponse {
  int status = 0;                              ///< 0: no response came
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;                            ///< chunks joined
  bool is_complete = false;                    ///< the body ended as its head said
};

class RawClient {
 public:
  explicit RawClient(uint16_t port);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool is_connected() const { return socket_ >= 0; }
  /// False if the server has closed the connection.
  bool send(std::string_view bytes);
  /// Bytes up to and including `mark`, or all that came before the connection ended or the time was over.
  std::string read_until(std::string_view mark, std::chrono::milliseconds time = std::chrono::seconds(10));
  /// The next response; a 100 Continue is skipped.
  RawResponse read_response(bool is_head = false, std::chrono::milliseconds time = std::chrono::seconds(10));
  /// Everything until the server closes; `closed` says whether it did in time.
  std::string read_all(bool& closed, std::chrono::milliseconds time = std::chrono::seconds(10));
  /// Whether the server closes within `time` (what it still sends is dropped).
  bool is_closed_within(std::chrono::milliseconds time);

  void shutdown_send();
  void close();
  void reset();  ///< closes with a RST
  void shrink_receive_buffer();

 private:
  bool receive(std::chrono::steady_clock::time_point deadline);
  int socket_ = -1;
  bool is_ended_ = false;
  std::string buffer_;
};

/// A request with Host and, if there is a body, Content-Length.
std::string make_request(std::string_view method, std::string_view target, std::string_view body = {},
                         std::string_view more_headers = {});

/// One request on a connection of its own.
RawResponse fetch(uint16_t port, std::string_view request);

}  // namespace hadal::server::testing
