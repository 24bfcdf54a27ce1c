#pragma once
// Counters of the service and their Prometheus text form.

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "recipe/parse/output_parser.h"
#include "server/http_server.h"
#include "server/response_store.h"

namespace hadal::server {

/// Every route has a fixed name, so that no label value comes from a client.
enum class Route {
  kChat,
  kCompletions,
  kMessages,
  kCountTokens,
  kResponses,
  kResponse,
  kResponseItems,
  kResponseCancel,
  kTokenize,
  kDetokenize,
  kModels,
  kHealth,
  kReady,
  kMetrics,
  kRoot,
  kRecipePage,
  kRecipeRender,
  kRecipeParse,
  kOther,
};
inline constexpr size_t kNumRoutes = 19;
std::string_view route_name(Route route);

/// How the answer to a generation request ended.
enum class Finish { kStop, kLength, kDisconnected, kTimeout, kError };
inline constexpr size_t kNumFinishes = 5;

/// A histogram of seconds with fixed bounds. Any thread may observe.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);
  void observe(double seconds, uint64_t times = 1);
  void print(std::string& out, std::string_view name, std::string_view help) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::atomic<uint64_t>> counts_;  ///< one more than bounds
  std::atomic<double> sum_{0};
};

/// What is not counted by engine or HTTP server. All members may be used from any thread.
class Metrics {
 public:
  Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void count_response(Route route, int status);
  void count_finish(Route route, Finish finish);
  /// The usage of one answer as it was reported, or for an answer that did not end, as far as it came.
  void count_tokens(const engine::Usage& usage);
  /// What an answer held that a well-behaved model would not write.
  void count_faults(const recipe::OutputFaults& faults);

  Histogram request_seconds;      ///< arrival of a request to the last byte of its answer
  Histogram ttft_seconds;         ///< arrival of a request to its first token
  Histogram inter_token_seconds;  ///< time between tokens of one answer; a step with n tokens counts n times

  /// Prometheus text. `engine` and `model` are null and empty before a model is there.
  std::string print(const engine::EngineStats* engine, const HttpServerStats& http, std::string_view version,
                    std::string_view model, bool ready) const;

 private:
  static constexpr std::array<int, 15> kStatuses{200, 204, 400, 401, 404, 405, 408, 413,
                                                 417, 429, 431, 499, 500, 503, 504};
  std::array<std::array<std::atomic<uint64_t>, kStatuses.size() + 1>, kNumRoutes> responses_{};
  std::array<std::array<std::atomic<uint64_t>, kNumFinishes>, kNumRoutes> finishes_{};
  std::array<std::atomic<uint64_t>, 6> faults_{};  ///< in the order of OutputFaults
  std::atomic<uint64_t> prompt_tokens_{0};
  std::atomic<uint64_t> cached_tokens_{0};
  std::atomic<uint64_t> output_tokens_{0};
};

void print_store_metrics(std::string& out, const ResponseStoreStats& stats);

/// A label value with backslash, quote and line feed escaped and other control characters replaced.
std::string escape_label(std::string_view value);

}  // namespace hadal::server
