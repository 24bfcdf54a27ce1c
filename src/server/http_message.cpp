#include "server/http_message.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>

namespace hadal::server {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char letter = lower(c);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

}  // namespace

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (equals_ignoring_case(key, name)) {
      return value;
    }
  }
  return {};
}

size_t HttpRequest::count(std::string_view name) const {
  return static_cast<size_t>(std::count_if(headers.begin(), headers.end(), [&](const Header& header) {
    return equals_ignoring_case(header.first, name);
  }));
}

std::string_view status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

std::string http_date(int64_t unix_seconds) {
  static constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto time = static_cast<time_t>(unix_seconds);
  tm parts{};
  gmtime_r(&time, &parts);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[static_cast<size_t>(parts.tm_wday)],
                     parts.tm_mday, kMonths[static_cast<size_t>(parts.tm_mon)], parts.tm_year + 1900,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string response_head(const HttpResponse& response, const HeadOptions& options) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", response.status,
                                 status_text(response.status), options.date);
  if (!response.content_type.empty()) {
    head += fmt::format("Content-Type: {}\r\n", response.content_type);
  }
  if (options.content_length) {
    head += fmt::format("Content-Length: {}\r\n", *options.content_length);
  } else if (options.chunked) {
    head += "Transfer-Encoding: chunked\r\n";
  }
  if (options.close) {
    head += "Connection: close\r\n";
  }
  for (const auto& [name, value] : response.headers) {
    head += fmt::format("{}: {}\r\n", name, value);
  }
  head += "\r\n";
  return head;
}

HttpResponse event_stream_head() {
  HttpResponse head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  return head;
}

bool split_target(std::string_view target, std::string& path, std::string& query) {
  const bool is_clean =
      std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (!is_clean || target.empty()) {
    return false;
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.size() > scheme.size() && equals_ignoring_case(target.substr(0, scheme.size()), scheme)) {
      target.remove_prefix(scheme.size());
      const size_t host_end = target.find_first_of("/?");
      if (host_end == 0) {
        return false;
      }
      target = host_end == std::string_view::npos ? "/" : target.substr(host_end);
      break;
    }
  }
  if (target[0] != '/') {
    return false;
  }
  const size_t mark = target.find('?');
  path = target.substr(0, mark);
  query = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  return true;
}

bool percent_decode(std::string_view text, std::string& decoded) {
  decoded.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0 || (high == 0 && low == 0)) {
      return false;
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return true;
}

}  // namespace hadal::server
