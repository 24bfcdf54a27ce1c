#include "recipe/errors.h"

#include "recipe/json_text.h"

namespace hadal::recipe {

std::string error_body(Protocol protocol, std::string_view message) {
  std::string body;
  if (protocol == Protocol::kMessages) {
    body = R"({"type":"error","error":{"type":"invalid_request_error","message":)";
    append_json_string(body, message);
  } else {
    body = R"({"error":{"message":)";
    append_json_string(body, message);
    body += R"(,"type":"invalid_request_error","param":null,"code":"invalid_request_error")";
  }
  body += "}}";
  return body;
}

RequestError unreadable_request(Protocol protocol, std::string message) {
  RequestError error = refused_request(protocol, std::move(message));
  error.stage_parse = true;
  return error;
}

RequestError refused_request(Protocol protocol, std::string message) {
  RequestError error;
  error.body = error_body(protocol, message);
  error.message = std::move(message);
  return error;
}

}  // namespace hadal::recipe
