// hadal serve: the HTTP service.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <optional>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/loaded_model.h"
#include "cli/scripted_backend.h"
#include "cli/setting_flags.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "recipe/special_tokens.h"
#include "server/api.h"
#include "server/sqlite_response_store.h"

namespace hadal::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Signals. Before the service is ready a signal ends the program at once: nothing is lost.
std::atomic<bool> is_ready{false};
int signal_pipe[2];  ///< a byte for each signal, so that it can be waited for

void on_signal(int) {
  const char byte = 0;
  if (!is_ready.load() || ::write(signal_pipe[1], &byte, 1) != 1) {
    ::_exit(0);
  }
}

Result<void> catch_signals() {
  if (::pipe2(signal_pipe, O_CLOEXEC) != 0) {
    return fail(ErrorCode::kIo, "cannot make a pipe");
  }
  struct sigaction action{};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  return {};
}

/// Whether a signal came; waits for one up to `time`, without `time` as long as it takes.
bool wait_for_signal(std::optional<std::chrono::milliseconds> time) {
  pollfd waiting{signal_pipe[0], POLLIN, 0};
  int ready = -1;
  do {  // a signal also interrupts the wait for it
    ready = ::poll(&waiting, 1, time ? static_cast<int>(time->count()) : -1);
  } while (ready < 0 && errno == EINTR);
  char byte = 0;
  return ready > 0 && ::read(signal_pipe[0], &byte, 1) == 1;
}

/// As many descriptors as the system allows, and no more connections than those.
int64_t allow_connections(int64_t wanted) {
  constexpr int64_t kOtherDescriptors = 256;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return wanted;
  }
  const auto needed = static_cast<rlim_t>(wanted + kOtherDescriptors);
  if (limit.rlim_cur < needed) {
    limit.rlim_cur = std::min(needed, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  const auto allowed = std::max<int64_t>(static_cast<int64_t>(limit.rlim_cur) - kOtherDescriptors, 16);
  if (allowed < wanted) {
    spdlog::warn("the limit of open files allows {} connections, not {}", allowed, wanted);
  }
  return std::min(allowed, wanted);
}

server::HttpServerOptions http_options(const Settings& settings) {
  const ServerSettings& from = settings.server;
  server::HttpServerOptions options;
  options.host = from.host;
  options.port = static_cast<uint16_t>(from.port);
  options.network_threads = static_cast<int>(settings.threads.network);
  options.request_threads = static_cast<int>(settings.threads.requests);
  options.max_connections = allow_connections(from.max_connections);
  options.max_header_bytes = from.max_header_bytes;
  options.max_header_count = from.max_header_count;
  options.max_body_bytes = from.max_body_bytes;
  options.max_buffered_body_bytes = from.max_buffered_body_bytes;
  options.header_timeout = from.header_timeout;
  options.body_timeout = from.body_timeout;
  options.idle_timeout = from.idle_timeout;
  options.write_timeout = from.write_timeout;
  options.keep_alive_interval = from.keep_alive_interval;
  options.request_timeout = from.request_timeout;
  return options;
}

server::ApiOptions api_options(const ServerSettings& from) {
  server::ApiOptions options;
  options.api_key = from.api_key;
  options.cors_origin = from.cors_origin;
  options.version = kVersion;
  options.recipe_page = from.recipe_page;
  options.policy.default_thinking = from.default_thinking;
  options.policy.ignore_unsupported = from.ignore_unsupported;
  options.policy.max_choices = from.max_choices;
  options.policy.max_stream_buffer_bytes = from.max_stream_buffer_bytes;
  options.policy.max_chain_responses = from.max_response_chain;
  options.policy.max_chain_bytes = from.max_body_bytes;
  options.policy.request_timeout_seconds = static_cast<double>(from.request_timeout.count()) / 1000;
  return options;
}

/// Null if nothing is to be stored.
std::unique_ptr<server::ResponseStore> response_store(const ServerSettings& from) {
  if (from.responses_store == "off") {
    return nullptr;
  }
  server::ResponseStoreOptions options;
  options.path = from.responses_store == "memory" ? std::string() : from.responses_store;
  options.max_responses = from.responses_store_count;
  options.max_bytes = from.responses_store_bytes;
  options.max_age = from.responses_store_age;
  return server::open_response_store(options);
}

/// What does not depend on whether a model or a script answers.
server::ModelService service_of(engine::Engine& engine, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                                const std::string& name, const Settings& settings) {
  server::ModelService service;
  service.engine = &engine;
  service.tokenizer = std::move(tokenizer);
  service.names = settings.server.served_model_names;
  if (service.names.empty()) {
    service.names.push_back(name);
    if (settings.model.model != name && settings.model.model.find('/') != std::string::npos &&
        !settings.model.model.starts_with('/') && !settings.model.model.starts_with('.')) {
      service.names.push_back(settings.model.model);  // "org/name"
    }
  }
  for (const char* alias : {"DeepSeek-V4.1-Flash", "DeepSeek-V4-Pro"}) {
    if (std::find(service.names.begin(), service.names.end(), alias) == service.names.end()) {
      service.names.emplace_back(alias);
    }
  }
  service.created_unix_seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  service.context_limit = engine.options().max_model_len;
  service.eos_token_id = engine.options().eos_token_id;
  service.fingerprint = std::string("fp_hadal_") + kVersion;
  return service;
}

server::ModelService model_service(const LoadedModel& loaded, engine::Engine& engine,
                                   const Settings& settings) {
  const checkpoint::ModelConfig& config = loaded.checkpoint->config();
  server::ModelService service = service_of(engine, loaded.tokenizer, loaded.name, settings);
  service.vocab_size = loaded.model->vocab_size();
  service.bos_token_id = loaded.bos_token_id;
  if (config.vision) {
    service.reserved_token_ids.push_back(static_cast<int32_t>(config.image_token_id));
  }
  return service;
}

server::ModelService scripted_service(const ScriptedBackend& backend, const Settings& settings) {
  server::ModelService service = service_of(*backend.engine, backend.tokenizer, backend.name, settings);
  service.vocab_size = backend.tokenizer->vocab_size();
  service.is_scripted = true;
  if (settings.model.bos == "on") {
    service.bos_token_id = backend.tokenizer->token_id(recipe::SpecialTokens()[recipe::SpecialToken::kBos]);
  }
  return service;
}

/// Lets running requests finish; another signal ends the wait.
void drain(server::Api& api, server::HttpServer& http, std::chrono::milliseconds grace) {
  spdlog::info("shutting down: {} requests may finish within {:.1f} s", http.stats().exchanges,
               static_cast<double>(grace.count()) / 1000);
  api.drain();
  http.drain();
  const auto deadline = Clock::now() + grace;
  constexpr std::chrono::milliseconds kPoll{20};
  while (http.stats().exchanges > 0 && Clock::now() < deadline && !wait_for_signal(kPoll)) {
  }
  const int64_t left = http.stats().exchanges;
  if (left > 0) {
    spdlog::warn("cutting off {} requests", left);
  }
}

/// Tells that the service is ready, waits for a signal, and ends it.
void serve_until_signal(server::Api& api, std::unique_ptr<server::HttpServer> http,
                        const Settings& settings) {
  is_ready.store(true);
  write_out(fmt::format("listening on {}\n", http->url()));
  wait_for_signal(std::nullopt);
  drain(api, *http, settings.server.shutdown_grace);
}

Exit serve_script(const Settings& settings) {
  auto backend = load_scripted_backend(settings);
  if (!backend) {
    return report(backend.error(), Exit::kUsage);
  }
  server::Api api(api_options(settings.server), response_store(settings.server));
  auto http = server::HttpServer::start(http_options(settings), api);
  if (!http) {
    return report(http.error());
  }
  api.set_http_stats([running = http->get()] { return running->stats(); });
  api.set_model(scripted_service(*backend, settings));
  serve_until_signal(api, std::move(*http), settings);  // the engine, whose requests it cancels, ends later
  return Exit::kOk;
}

Exit serve_model(const Settings& settings) {
  if (settings.model.model.empty()) {
    return report(model_directory(settings).error(), Exit::kUsage);
  }
  server::Api api(api_options(settings.server), response_store(settings.server));
  auto http = server::HttpServer::start(http_options(settings), api);
  if (!http) {
    return report(http.error());
  }
  api.set_http_stats([running = http->get()] { return running->stats(); });
  auto loaded = load_model(settings);
  if (!loaded) {
    return report(loaded.error());
  }
  auto engine = start_engine(*loaded, settings, settings.engine.max_num_seqs);
  if (!engine) {
    return report(engine.error(), Exit::kUsage);
  }
  api.set_model(model_service(*loaded, **engine, settings));
  serve_until_signal(api, std::move(*http), settings);  // the engine, whose requests it cancels, ends later
  return Exit::kOk;
}

Exit serve_with(const Settings& settings) {
  if (const auto caught = catch_signals(); !caught) {
    return report(caught.error());
  }
  return settings.server.script.empty() ? serve_model(settings) : serve_script(settings);
}

Exit serve(const Flags& flags, bool prints_config) {
  const auto settings = load_cli_settings(flags, /*quiet=*/false);
  if (!settings) {
    return report(settings.error(), Exit::kUsage);
  }
  if (prints_config) {
    write_out(print_settings(*settings));
    return Exit::kOk;
  }
  return serve_with(settings->values);
}

}  // namespace

void add_serve(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand("serve", "Answer OpenAI and Anthropic API requests over HTTP");
  const auto prints_config = std::make_shared<bool>(false);
  command->add_flag("--print-config", *prints_config,
                    "Print every setting with where it comes from, and stop");
  const Flags flags = add_setting_flags(*command, {"server", "engine", "model", "threads", "log"});
  command->callback([flags, prints_config, &selected] {
    selected = [flags, prints_config] { return serve(flags, *prints_config); };
  });
}

}  // namespace hadal::cli
