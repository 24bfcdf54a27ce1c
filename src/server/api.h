#pragma once
// The routes of hadal's HTTP service.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "recipe/prepared_request.h"
#include "server/http_server.h"
#include "server/metrics.h"
#include "server/model_service.h"
#include "server/response_store.h"

namespace hadal::server {

struct ApiOptions {
  std::string api_key;      ///< empty: none is asked for
  std::string cors_origin;  ///< empty: no CORS headers
  std::string version;
  bool recipe_page = true;  ///< whether there is /recipe
  RequestPolicy policy;
};

/// Answers requests. It starts without a model: until set_model() requests for answers get 503, and /readyz
/// too.
class Api final : public HttpService {
 public:
  /// Without a `store` no response is kept.
  explicit Api(ApiOptions options, std::unique_ptr<ResponseStore> store = nullptr);
  ~Api() override = default;

  /// From now on requests are answered by `model`, whose engine must outlive the HTTP server.
  void set_model(ModelService model);
  /// From now on new requests are refused with 503.
  void drain() { is_draining_.store(true); }
  /// Where /metrics takes the server's own numbers from; to be set before they are asked for.
  void set_http_stats(std::function<HttpServerStats()> stats);

  Metrics& metrics() { return metrics_; }

  std::optional<HttpResponse> check(HttpRequest& request) override;
  bool is_quick(const HttpRequest& request) const override;
  Answer handle(HttpRequest& request) override;
  HttpResponse refuse(const HttpRequest& request, int status, std::string message) override;
  void decorate(const HttpRequest& request, HttpResponse& response) override;
  void finished(const ExchangeSummary& summary) override;

 private:
  std::shared_ptr<const ModelService> model() const;
  bool has(Route route) const;
  bool is_ready() const { return !is_draining_.load() && model() != nullptr; }
  Answer converse(recipe::Protocol protocol, HttpRequest& request, std::shared_ptr<const ModelService> model);
  Answer respond(HttpRequest& request, std::shared_ptr<const ModelService> model);
  Answer answer_post(Route route, HttpRequest& request, std::shared_ptr<const ModelService> model);
  HttpResponse list_models(const HttpRequest& request) const;
  HttpResponse print_metrics() const;

  const ApiOptions options_;
  const std::unique_ptr<ResponseStore> store_;
  Metrics metrics_;
  std::atomic<bool> is_draining_{false};
  mutable std::mutex mutex_;  ///< guards model_ and http_stats_
  std::shared_ptr<const ModelService> model_;
  std::function<HttpServerStats()> http_stats_;
};

}  // namespace hadal::server
