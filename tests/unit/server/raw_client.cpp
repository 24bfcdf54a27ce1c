#include "raw_client.h"

#include <algorithm>
#include <array>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hadal::server::testing {

using Clock = std::chrono::steady_clock;

RawClient::RawClient(uint16_t port) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (socket_ >= 0 && ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    close();
  }
}

RawClient::~RawClient() {
  close();
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool RawClient::receive(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  pollfd waiting{socket_, POLLIN, 0};
  if (socket_ < 0 || is_ended_ ||
      ::poll(&waiting, 1, static_cast<int>(std::max<int64_t>(left.count(), 0))) <= 0) {
    return false;
  }
  std::array<char, 65536> bytes;
  const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), 0);
  if (got <= 0) {
    is_ended_ = true;
    return false;
  }
  buffer_.append(bytes.data(), static_cast<size_t>(got));
  return true;
}

std::string RawClient::read_until(std::string_view mark, std::chrono::milliseconds time) {
  const Clock::time_point deadline = Clock::now() + time;
  size_t searched = 0;
  while (true) {
    const size_t found = buffer_.find(mark, searched);
    if (found != std::string::npos) {
      std::string bytes = buffer_.substr(0, found + mark.size());
      buffer_.erase(0, bytes.size());
      return bytes;
    }
    searched = buffer_.size() > mark.size() ? buffer_.size() - mark.size() : 0;
    if (!receive(deadline)) {
      return std::exchange(buffer_, std::string());
    }
  }
}

RawResponse RawClient::read_response(bool is_head, std::chrono::milliseconds time) {
  RawResponse response;
  const std::string head = read_until("\r\n\r\n", time);
  if (!head.starts_with("HTTP/1.1 ") || !head.ends_with("\r\n\r\n")) {
    return response;
  }
  response.status = std::stoi(head.substr(9, 3));
  if (response.status == 100) {
    return read_response(is_head, time);
  }
  for (size_t line = head.find("\r\n") + 2; line + 2 < head.size();) {
    const size_t end = head.find("\r\n", line);
    const size_t colon = head.find(": ", line);
    std::string name = head.substr(line, colon - line);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    response.headers[name] = head.substr(colon + 2, end - colon - 2);
    line = end + 2;
  }
  const Clock::time_point deadline = Clock::now() + time;
  if (is_head || response.status == 204) {
    response.is_complete = true;
  } else if (const auto length = response.headers.find("content-length"); length != response.headers.end()) {
    const size_t wanted = std::stoull(length->second);
    while (buffer_.size() < wanted && receive(deadline)) {
    }
    response.is_complete = buffer_.size() >= wanted;
    response.body = buffer_.substr(0, wanted);
    buffer_.erase(0, response.body.size());
  } else if (response.headers.contains("transfer-encoding")) {
    while (true) {
      const std::string line = read_until("\r\n", time);
      if (!line.ends_with("\r\n")) {
        break;
      }
      const size_t size = std::stoull(line, nullptr, 16);
      while (buffer_.size() < size + 2 && receive(deadline)) {
      }
      if (buffer_.size() < size + 2) {
        break;
      }
      response.body += buffer_.substr(0, size);
      buffer_.erase(0, size + 2);
      if (size == 0) {
        response.is_complete = true;
        break;
      }
    }
  } else {
    response.body = read_all(response.is_complete, time);
  }
  return response;
}

std::string RawClient::read_all(bool& closed, std::chrono::milliseconds time) {
  const Clock::time_point deadline = Clock::now() + time;
  while (receive(deadline)) {
  }
  closed = is_ended_;
  return std::exchange(buffer_, std::string());
}

bool RawClient::is_closed_within(std::chrono::milliseconds time) {
  bool closed = false;
  read_all(closed, time);
  return closed;
}

void RawClient::shutdown_send() {
  ::shutdown(socket_, SHUT_WR);
}

void RawClient::close() {
  if (socket_ >= 0) {
    ::close(socket_);
    socket_ = -1;
  }
}

void RawClient::reset() {
  const linger at_once{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close();
}

void RawClient::shrink_receive_buffer() {
  const int bytes = 4096;
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

std::string make_request(std::string_view method, std::string_view target, std::string_view body,
                         std::string_view more_headers) {
  std::string request = fmt::format("{} {} HTTP/1.1\r\nHost: test\r\n{}", method, target, more_headers);
  if (!body.empty() || method == "POST") {
    request += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  }
  request += "\r\n";
  request += body;
  return request;
}

RawResponse fetch(uint16_t port, std::string_view request) {
  RawClient client(port);
  client.send(request);
  return client.read_response(request.starts_with("HEAD "));
}

}  // namespace hadal::server::testing
