#pragma once
// Who may call what: the API key, cross-origin rules and request ids.

#include <string>
#include <string_view>

#include "server/http_message.h"

namespace hadal::server {

/// Whether the request carries the key, as "Authorization: Bearer KEY" or "x-api-key: KEY". A request with
/// both headers needs both to be right, and none may be repeated. Takes the same time wherever a wrong key
/// differs.
bool has_key(const HttpRequest& request, std::string_view key);

/// The key that the request carries, right or wrong; empty if it has none.
std::string_view presented_key(const HttpRequest& request);

/// Adds Access-Control headers if the request comes from `allowed` (an origin, or "*"); empty allows none.
void add_cors_headers(const HttpRequest& request, std::string_view allowed, HttpResponse& response);

/// Whether this is a browser asking before it sends the real request.
bool is_cors_preflight(const HttpRequest& request, std::string_view allowed);

/// The client's x-request-id if it is 1 to 128 letters, digits and "-_.:/", else a fresh one.
std::string choose_request_id(std::string_view offered);

/// A random id: `prefix` and 32 hexadecimal digits. Thread-safe.
std::string random_id(std::string_view prefix);

/// 64 random bits. Thread-safe.
uint64_t random_bits();

}  // namespace hadal::server
