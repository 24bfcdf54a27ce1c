#include "server/api.h"

#include <array>
#include <chrono>

#include <fmt/chrono.h>

#include "base/log.h"
#include "server/access.h"
#include "server/api_errors.h"
#include "server/completion_answer.h"
#include "server/conversation_answer.h"
#include "server/json_text.h"
#include "server/recipe_routes.h"
#include "server/stored_responses.h"
#include "server/token_routes.h"

namespace hadal::server {
namespace {

using recipe::Protocol;

/// The methods of a route, as the Allow header names them.
constexpr std::string_view kPost = "POST";
constexpr std::string_view kGet = "GET, HEAD";
constexpr std::string_view kGetAndDelete = "GET, HEAD, DELETE";

struct RouteFacts {
  std::string_view path;
  Route route;
  std::string_view methods;

  /// Whether `method` is one of the methods.
  bool takes(std::string_view method) const {
    return method == "POST"     ? methods == kPost
           : method == "DELETE" ? methods == kGetAndDelete
                                : methods != kPost && (method == "GET" || method == "HEAD");
  }
  /// Whether it needs the model.
  bool runs_model() const { return methods == kPost && route != Route::kResponseCancel; }
  /// Whether it waits for the response store.
  bool reads_store() const {
    return route == Route::kResponse || route == Route::kResponseItems || route == Route::kResponseCancel;
  }
};

constexpr std::array<RouteFacts, 15> kRoutes{{{"/v1/chat/completions", Route::kChat, kPost},
                                              {"/v1/completions", Route::kCompletions, kPost},
                                              {"/v1/messages", Route::kMessages, kPost},
                                              {"/v1/messages/count_tokens", Route::kCountTokens, kPost},
                                              {"/v1/responses", Route::kResponses, kPost},
                                              {"/tokenize", Route::kTokenize, kPost},
                                              {"/detokenize", Route::kDetokenize, kPost},
                                              {"/v1/models", Route::kModels, kGet},
                                              {"/healthz", Route::kHealth, kGet},
                                              {"/readyz", Route::kReady, kGet},
                                              {"/metrics", Route::kMetrics, kGet},
                                              {"/recipe", Route::kRecipePage, kGet},
                                              {"/recipe/render", Route::kRecipeRender, kPost},
                                              {"/recipe/parse", Route::kRecipeParse, kPost},
                                              {"/", Route::kRoot, kGet}}};

constexpr std::string_view kModelPrefix = "/v1/models/";

/// The route of a path, compared byte by byte: "//v1/models", "/v1/models/" and "/v1%2Fmodels" are none.
RouteFacts find_route(std::string_view path) {
  for (const RouteFacts& facts : kRoutes) {
    if (path == facts.path) {
      return facts;
    }
  }
  if (path.starts_with(kModelPrefix) && path.size() > kModelPrefix.size()) {
    return {kModelPrefix, Route::kModels, kGet};
  }
  if (const auto stored = split_stored_response_path(path)) {
    switch (stored->part) {
      case StoredResponsePath::Part::kResponse:
        return {route_name(Route::kResponse), Route::kResponse, kGetAndDelete};
      case StoredResponsePath::Part::kInputItems:
        return {route_name(Route::kResponseItems), Route::kResponseItems, kGet};
      case StoredResponsePath::Part::kCancel:
        return {route_name(Route::kResponseCancel), Route::kResponseCancel, kPost};
    }
  }
  return {path, Route::kOther, kGet};
}

bool is_open_without_key(Route route) {
  return route == Route::kHealth || route == Route::kReady || route == Route::kRecipePage;
}

HttpResponse text_response(std::string body, int status = 200) {
  HttpResponse response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(body);
  return response;
}

HttpResponse preflight_response() {
  HttpResponse response;
  response.status = 204;
  response.content_type.clear();
  response.headers = {
      {"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"},
      {"Access-Control-Allow-Headers",
       "authorization, content-type, x-api-key, x-request-id, anthropic-version, anthropic-beta, "
       "openai-organization, openai-project, openai-beta"},
      {"Access-Control-Max-Age", "600"}};
  return response;
}

/// One object for the clients of both APIs: OpenAI's fields first, then Anthropic's.
void append_model(std::string& out, std::string_view name, const ModelService& model) {
  out += "{\"id\":";
  append_json_string(out, name);
  out += ",\"object\":\"model\",\"created\":";
  append_json_integer(out, model.created_unix_seconds);
  out += ",\"owned_by\":\"hadal\",\"max_model_len\":";
  append_json_integer(out, model.context_limit);
  out += ",\"type\":\"model\",\"lifecycle\":\"active\",\"display_name\":";
  append_json_string(out, name);
  const std::chrono::sys_seconds created{std::chrono::seconds(model.created_unix_seconds)};
  out += fmt::format(",\"created_at\":\"{:%FT%TZ}\",\"max_input_tokens\":", created);
  append_json_integer(out, model.context_limit);
  out += '}';
}

std::string usage_page(const ModelService* model, bool has_recipe_page) {
  const std::string name = model != nullptr ? model->names.front() : std::string("(loading)");
  return fmt::format(
      "hadal serves {0}.\n\n"
      "OpenAI clients:    base URL of this server with /v1, model \"{0}\"\n"
      "Anthropic clients: base URL of this server\n\n"
      "  curl HOST/v1/chat/completions -H 'Content-Type: application/json' \\\n"
      "    -d '{{\"model\": \"{0}\", \"messages\": [{{\"role\": \"user\", \"content\": \"Hello\"}}], "
      "\"stream\": true}}'\n\n"
      "POST /v1/chat/completions  /v1/completions  /v1/messages  /v1/messages/count_tokens  /v1/responses\n"
      "     /tokenize  /detokenize\n"
      "GET, DELETE  /v1/responses/ID\n"
      "GET  /v1/models  /healthz  /readyz  /metrics{1}\n",
      name, has_recipe_page ? "\n     /recipe: what becomes of a request, in the browser" : "");
}

}  // namespace

Api::Api(ApiOptions options, std::unique_ptr<ResponseStore> store)
    : options_(std::move(options)), store_(std::move(store)) {}

void Api::set_model(ModelService model) {
  auto shared = std::make_shared<const ModelService>(std::move(model));
  const std::lock_guard lock(mutex_);
  model_ = std::move(shared);
}

void Api::set_http_stats(std::function<HttpServerStats()> stats) {
  const std::lock_guard lock(mutex_);
  http_stats_ = std::move(stats);
}

std::shared_ptr<const ModelService> Api::model() const {
  const std::lock_guard lock(mutex_);
  return model_;
}

std::optional<HttpResponse> Api::check(HttpRequest& request) {
  request.id = choose_request_id(request.header("x-request-id"));
  if (is_cors_preflight(request, options_.cors_origin)) {
    return preflight_response();
  }
  const RouteFacts facts = find_route(request.path);
  const bool is_open = has(facts.route) && is_open_without_key(facts.route);
  if (!options_.api_key.empty() && !is_open && !has_key(request, options_.api_key)) {
    return refuse(request, 401, "the API key is missing or wrong");
  }
  if (!has(facts.route)) {
    return refuse(request, 404, fmt::format("there is no route {}", printable(request.path, 100)));
  }
  if (!facts.takes(request.method)) {
    HttpResponse response =
        refuse(request, 405,
               fmt::format("{} takes {}, not {}", facts.path, facts.methods, printable(request.method, 20)));
    response.headers.emplace_back("Allow", facts.methods);
    return response;
  }
  if (facts.runs_model() && !is_ready()) {
    return refuse(request, 503,
                  is_draining_.load() ? "the server is shutting down" : "the model is still loading");
  }
  return std::nullopt;
}

bool Api::has(Route route) const {
  const bool is_recipe =
      route == Route::kRecipePage || route == Route::kRecipeRender || route == Route::kRecipeParse;
  return route != Route::kOther && (options_.recipe_page || !is_recipe);
}

bool Api::is_quick(const HttpRequest& request) const {
  return request.method != "POST" && !find_route(request.path).reads_store();
}

Answer Api::handle(HttpRequest& request) {
  const RouteFacts facts = find_route(request.path);
  std::shared_ptr<const ModelService> served = model();
  switch (facts.route) {
    case Route::kHealth:
      return text_response("ok\n");
    case Route::kReady:
      if (is_ready()) {
        return text_response("ready\n");
      } else {
        HttpResponse response = text_response(is_draining_.load() ? "shutting down\n" : "loading\n", 503);
        response.headers.emplace_back("Retry-After", "1");
        return response;
      }
    case Route::kMetrics:
      return print_metrics();
    case Route::kModels:
      return list_models(request);
    case Route::kRoot:
      return text_response(usage_page(served.get(), options_.recipe_page));
    case Route::kRecipePage:
      return recipe_page(served.get());
    case Route::kResponse:
    case Route::kResponseItems:
    case Route::kResponseCancel:
      return answer_stored_response(request, *split_stored_response_path(request.path), store_.get(),
                                    options_.policy);
    default:
      return answer_post(facts.route, request, std::move(served));
  }
}

Answer Api::converse(Protocol protocol, HttpRequest& request, std::shared_ptr<const ModelService> served) {
  auto conversation = read_conversation_request(protocol, request.body, *served, options_.policy);
  if (!conversation) {
    return std::move(conversation.error());
  }
  conversation->request.label = request.id;
  conversation->request.cache_tenant = options_.api_key;
  return answer_conversation(std::move(served), metrics_, options_.policy, std::move(*conversation),
                             request.arrival);
}

Answer Api::respond(HttpRequest& request, std::shared_ptr<const ModelService> served) {
  auto fields = read_storage_fields(request, store_.get(), options_.policy);
  if (!fields) {
    return std::move(fields.error());
  }
  auto conversation = read_conversation_request(Protocol::kResponses, request.body, *served, options_.policy,
                                                {fields->is_stored, std::move(fields->previous_items)});
  if (!conversation) {
    return std::move(conversation.error());
  }
  conversation->request.label = request.id;
  conversation->request.cache_tenant = options_.api_key;
  recipe::Json& echo = conversation->prepared.echo;
  echo["store"] = fields->is_stored;
  std::optional<AnswerStorage> storage;
  if (!fields->previous_id.empty()) {
    echo["previous_response_id"] = fields->previous_id;
  }
  if (fields->is_stored) {
    storage = AnswerStorage{store_.get(), std::move(fields->owner), std::move(fields->previous_id)};
  }
  return answer_conversation(std::move(served), metrics_, options_.policy, std::move(*conversation),
                             request.arrival, std::move(storage));
}

Answer Api::answer_post(Route route, HttpRequest& request, std::shared_ptr<const ModelService> served) {
  const RequestPolicy& policy = options_.policy;
  switch (route) {
    case Route::kChat:
      return converse(Protocol::kChat, request, std::move(served));
    case Route::kMessages:
      return converse(Protocol::kMessages, request, std::move(served));
    case Route::kResponses:
      return respond(request, std::move(served));
    case Route::kCompletions: {
      auto completion = read_completion_request(request.body, *served, policy);
      if (!completion) {
        return error_response(ErrorStyle::kOpenAi, completion.error());
      }
      completion->label = request.id;
      completion->queue.cache_tenant = options_.api_key;
      return answer_completion(std::move(served), metrics_, policy, std::move(*completion), request.arrival);
    }
    case Route::kCountTokens:
      return count_tokens(request.body, *served, policy);
    case Route::kTokenize:
      return tokenize(request.body, *served, policy);
    case Route::kDetokenize:
      return detokenize(request.body, *served);
    case Route::kRecipeRender:
      return render_recipe(request.body, *served, policy);
    case Route::kRecipeParse:
      return parse_recipe(request.body, *served, policy);
    default:
      return refuse(request, 404, "there is no such route");
  }
}

HttpResponse Api::list_models(const HttpRequest& request) const {
  const auto served = model();
  HttpResponse response;
  if (request.path != "/v1/models") {
    std::string name;
    const bool is_text = percent_decode(std::string_view(request.path).substr(kModelPrefix.size()), name);
    if (served != nullptr && is_text && !check_model_name(name, *served)) {
      append_model(response.body, name, *served);
      return response;
    }
    return error_response(error_style(request.path),
                          {404, fmt::format("The model `{}` does not exist", printable(name, 100)),
                           "model_not_found", "model"});
  }
  response.body = "{\"object\":\"list\",\"data\":[";
  if (served != nullptr) {
    for (const std::string& name : served->names) {
      response.body += response.body.back() == '[' ? "" : ",";
      append_model(response.body, name, *served);
    }
  }
  response.body += "],\"has_more\":false,\"first_id\":";
  append_json_string(response.body, served != nullptr ? served->names.front() : "");
  response.body += ",\"last_id\":";
  append_json_string(response.body, served != nullptr ? served->names.back() : "");
  response.body += '}';
  return response;
}

HttpResponse Api::print_metrics() const {
  const auto served = model();
  HttpServerStats http;
  {
    const std::lock_guard lock(mutex_);
    if (http_stats_) {
      http = http_stats_();
    }
  }
  engine::EngineStats stats;
  if (served != nullptr) {
    stats = served->engine->stats();
  }
  std::string text = metrics_.print(served != nullptr ? &stats : nullptr, http, options_.version,
                                    served != nullptr ? served->names.front() : "", is_ready());
  if (store_ != nullptr) {
    print_store_metrics(text, store_->stats());
  }
  HttpResponse response = text_response(std::move(text));
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  return response;
}

HttpResponse Api::refuse(const HttpRequest& request, int status, std::string message) {
  return error_response(error_style(request.path), {status, std::move(message), {}, {}});
}

void Api::decorate(const HttpRequest& request, HttpResponse& response) {
  if (!request.id.empty()) {
    response.headers.emplace_back("x-request-id", request.id);
    if (error_style(request.path) == ErrorStyle::kAnthropic) {
      response.headers.emplace_back("request-id", request.id);
    }
  }
  add_cors_headers(request, options_.cors_origin, response);
}

void Api::finished(const ExchangeSummary& summary) {
  const HttpRequest& request = *summary.request;
  const Route route = find_route(request.path).route;
  metrics_.count_response(route, summary.status);
  metrics_.request_seconds.observe(summary.seconds.count());
  const bool is_probe = route == Route::kHealth || route == Route::kReady || route == Route::kMetrics;
  spdlog::log(is_probe ? spdlog::level::debug : spdlog::level::info, "{} {} {} {} {}{:.1f} ms {} bytes {}",
              request.peer, printable(request.method, 20), printable(request.path, 100), summary.status,
              summary.completed ? "" : "(client left) ", summary.seconds.count() * 1e3,
              summary.response_bytes, request.id);
}

}  // namespace hadal::server
