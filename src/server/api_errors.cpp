#include "server/api_errors.h"

#include "base/log.h"
#include "server/json_text.h"

namespace hadal::server {
namespace {

std::string_view open_ai_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 429:
      return "rate_limit_error";
    case 500:
    case 503:
    case 504:
      return "server_error";
    default:
      return "invalid_request_error";
  }
}

std::string_view open_ai_code(int status) {
  switch (status) {
    case 401:
      return "invalid_api_key";
    case 404:
      return "not_found";
    case 405:
      return "method_not_allowed";
    case 408:
      return "request_timeout";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_exceeded";
    case 500:
      return "internal_error";
    case 503:
      return "service_unavailable";
    case 504:
      return "timeout";
    default:
      return "invalid_request_error";
  }
}

std::string_view anthropic_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    case 500:
      return "api_error";
    default:
      return "invalid_request_error";
  }
}

}  // namespace

ErrorStyle error_style(std::string_view path) {
  return path == "/v1/messages" || path.starts_with("/v1/messages/") ? ErrorStyle::kAnthropic
                                                                     : ErrorStyle::kOpenAi;
}

std::string error_body(ErrorStyle style, const ApiError& error) {
  std::string body;
  if (style == ErrorStyle::kAnthropic) {
    body = "{\"type\":\"error\",\"error\":{\"type\":";
    append_json_string(body, anthropic_type(error.status));
    body += ",\"message\":";
    append_json_string(body, error.message);
    body += "}}";
    return body;
  }
  body = "{\"error\":{\"message\":";
  append_json_string(body, error.message);
  body += ",\"type\":";
  append_json_string(body, open_ai_type(error.status));
  body += ",\"param\":";
  if (error.param) {
    append_json_string(body, *error.param);
  } else {
    body += "null";
  }
  body += ",\"code\":";
  append_json_string(body, error.code.empty() ? open_ai_code(error.status) : std::string_view(error.code));
  body += "}}";
  return body;
}

HttpResponse error_response(ErrorStyle style, const ApiError& error) {
  HttpResponse response;
  response.status = error.status;
  response.body = error_body(style, error);
  if (error.status == 401) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  if (error.status == 429 || error.status == 503) {
    response.headers.emplace_back("Retry-After", "1");
  }
  return response;
}

ApiError public_error(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
      return {400, error.message, {}, {}};
    case ErrorCode::kResourceExhausted:
      return {429, error.message, {}, {}};
    case ErrorCode::kCancelled:
      return {503, "the request was cancelled because the server is shutting down", {}, {}};
    default:
      spdlog::error("a request failed: {}", printable(error.message));
      return {500, "the server failed to compute the answer", {}, {}};
  }
}

}  // namespace hadal::server
