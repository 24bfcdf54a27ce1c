#pragma once
// Error bodies in the shape of each protocol.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/http_message.h"

namespace hadal::server {

/// OpenAI: {"error":{message,type,param,code}}. Anthropic: {"type":"error","error":{type,message}}.
enum class ErrorStyle { kOpenAi, kAnthropic };

/// The style that clients of a path understand.
ErrorStyle error_style(std::string_view path);

struct ApiError {
  int status = 400;
  std::string message;
  std::string code;                  ///< OpenAI only; empty: the code of the status
  std::optional<std::string> param;  ///< OpenAI only: the field that is wrong
};

/// The error object as JSON text, also the data of an error event in a stream.
std::string error_body(ErrorStyle style, const ApiError& error);

/// The whole response; 401, 429 and 503 get the headers that go with them.
HttpResponse error_response(ErrorStyle style, const ApiError& error);

/// What a client may know of an engine's or tokenizer's error: a fault of its request is told in full, our
/// own only as such (the log has the rest), because it may hold paths.
ApiError public_error(const Error& error);

}  // namespace hadal::server
