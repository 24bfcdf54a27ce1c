#include "server/access.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

namespace hadal::server {
namespace {

/// Runs over the whole of `given`, whatever differs; the length of the key may show, its bytes may not.
bool equals_in_constant_time(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char expected = key.empty() ? '\0' : key[i % key.size()];
    difference |=
        static_cast<unsigned>(static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(expected));
  }
  return difference == 0;
}

/// The key of an Authorization header; empty for other schemes.
std::string_view bearer_key(std::string_view value) {
  static constexpr std::string_view kScheme = "Bearer ";
  return equals_ignoring_case(value.substr(0, kScheme.size()), kScheme) ? value.substr(kScheme.size())
                                                                        : std::string_view();
}

}  // namespace

bool has_key(const HttpRequest& request, std::string_view key) {
  const size_t num_bearer = request.count("authorization");
  const size_t num_plain = request.count("x-api-key");
  if (num_bearer > 1 || num_plain > 1 || num_bearer + num_plain == 0) {
    return false;
  }
  bool is_right = true;
  if (num_bearer == 1) {
    is_right = equals_in_constant_time(bearer_key(request.header("authorization")), key);
  }
  if (num_plain == 1) {
    is_right = equals_in_constant_time(request.header("x-api-key"), key) && is_right;
  }
  return is_right;
}

std::string_view presented_key(const HttpRequest& request) {
  const std::string_view bearer = bearer_key(request.header("authorization"));
  return bearer.empty() ? request.header("x-api-key") : bearer;
}

void add_cors_headers(const HttpRequest& request, std::string_view allowed, HttpResponse& response) {
  if (allowed.empty()) {
    return;
  }
  if (allowed != "*") {
    response.headers.emplace_back("Vary", "Origin");
    if (request.header("origin") != allowed) {
      return;
    }
  }
  response.headers.emplace_back("Access-Control-Allow-Origin", allowed);
  response.headers.emplace_back("Access-Control-Expose-Headers", "x-request-id");
}

bool is_cors_preflight(const HttpRequest& request, std::string_view allowed) {
  return !allowed.empty() && request.method == "OPTIONS" && request.count("origin") == 1 &&
         request.count("access-control-request-method") == 1;
}

std::string choose_request_id(std::string_view offered) {
  const bool is_sane =
      !offered.empty() && offered.size() <= 128 && std::all_of(offered.begin(), offered.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
               c == '_' || c == '.' || c == ':' || c == '/';
      });
  return is_sane ? std::string(offered) : random_id("req_");
}

uint64_t random_bits() {
  thread_local std::mt19937_64 generator = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return generator();
}

std::string random_id(std::string_view prefix) {
  return fmt::format("{}{:016x}{:016x}", prefix, random_bits(), random_bits());
}

}  // namespace hadal::server
