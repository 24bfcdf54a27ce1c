#include "server/metrics.h"

#include <algorithm>

#include <fmt/format.h>

namespace hadal::server {
namespace {

constexpr std::array<std::string_view, kNumRoutes> kRouteNames{"/v1/chat/completions",
                                                               "/v1/completions",
                                                               "/v1/messages",
                                                               "/v1/messages/count_tokens",
                                                               "/v1/responses",
                                                               "/v1/responses/{id}",
                                                               "/v1/responses/{id}/input_items",
                                                               "/v1/responses/{id}/cancel",
                                                               "/tokenize",
                                                               "/detokenize",
                                                               "/v1/models",
                                                               "/healthz",
                                                               "/readyz",
                                                               "/metrics",
                                                               "/",
                                                               "/recipe",
                                                               "/recipe/render",
                                                               "/recipe/parse",
                                                               "other"};
constexpr std::array<std::string_view, kNumFinishes> kFinishNames{"stop", "length", "disconnected", "timeout",
                                                                  "error"};
constexpr std::array<std::string_view, 6> kFaultNames{"stray_markers",      "repaired_values",
                                                      "repeated_keys",      "cut_calls",
                                                      "calls_in_reasoning", "dropped_text_bytes"};

void print_head(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

template <class Value>
void print_value(std::string& out, std::string_view name, std::string_view type, std::string_view help,
                 Value value) {
  print_head(out, name, type, help);
  fmt::format_to(std::back_inserter(out), "{} {}\n", name, value);
}

template <class Value>
void print_counter(std::string& out, std::string_view name, std::string_view help, Value value) {
  print_value(out, name, "counter", help, value);
}

template <class Value>
void print_gauge(std::string& out, std::string_view name, std::string_view help, Value value) {
  print_value(out, name, "gauge", help, value);
}

void print_drafts(std::string& out, const engine::DraftStats& drafts) {
  const auto total = drafts.total();
  print_counter(out, "hadal_draft_tokens_total", "Tokens that the draft layers guessed.", total.drafted);
  print_gauge(out, "hadal_draft_calibration_error",
              "Mean distance of the drafts' confidence from their acceptance since the start.",
              drafts.calibration_error());
  const auto print_positions = [&](std::string_view name, std::string_view help, auto member) {
    print_head(out, name, "counter", help);
    for (size_t i = 0; i < drafts.positions.size(); ++i) {
      if (drafts.positions[i].drafted > 0) {
        fmt::format_to(std::back_inserter(out), "{}{{position=\"{}\"}} {}\n", name, i + 1,
                       drafts.positions[i].*member);
      }
    }
  };
  using Position = engine::DraftStats::Position;
  print_positions("hadal_draft_verified_total", "Drafts that the model verified, by place in the block.",
                  &Position::verified);
  print_positions("hadal_draft_accepted_total", "Drafts that were right, by place in the block.",
                  &Position::accepted);
}

void print_engine(std::string& out, const engine::EngineStats& stats) {
  print_gauge(out, "hadal_running", "Sequences that run now.", stats.running);
  print_gauge(out, "hadal_waiting", "Sequences that wait for a place.", stats.waiting);
  print_counter(out, "hadal_engine_requests_total", "Sequences that the engine accepted.",
                stats.requests_total);
  print_head(out, "hadal_engine_finished_total", "counter", "Sequences that ended, by reason.");
  for (const auto& [reason, count] :
       {std::pair<std::string_view, uint64_t>{"stop", stats.finished_stop_total},
        {"length", stats.finished_length_total},
        {"cancelled", stats.finished_cancelled_total},
        {"error", stats.finished_error_total}}) {
    fmt::format_to(std::back_inserter(out), "hadal_engine_finished_total{{reason=\"{}\"}} {}\n", reason,
                   count);
  }
  print_counter(out, "hadal_engine_prompt_tokens_total", "Prompt tokens of accepted sequences.",
                stats.prompt_tokens_total);
  print_counter(out, "hadal_engine_generation_tokens_total",
                "Tokens that the engine generated, also those that no answer contains.",
                stats.generation_tokens_total);
  print_counter(out, "hadal_steps_total", "Forward passes.", stats.steps_total);
  print_counter(out, "hadal_step_seconds_total", "Time spent in steps.", stats.step_seconds_total);
  print_counter(out, "hadal_preemptions_total", "Sequences set back for want of state memory.",
                stats.preemptions_total);
  print_drafts(out, stats.drafts);
}

void print_cache(std::string& out, const engine::EngineStats::Cache& cache) {
  print_gauge(out, "hadal_cache_used_bytes", "Memory of the states of sequences, running and kept.",
              cache.used_bytes);
  print_gauge(out, "hadal_cache_limit_bytes", "Most memory of the states of sequences.", cache.limit_bytes);
  print_gauge(out, "hadal_cache_blocks", "Blocks of 128 tokens that the prefix cache keeps in memory.",
              cache.blocks);
  print_gauge(out, "hadal_cache_snapshots", "Places in memory that a sequence can go on from.",
              cache.snapshots);
  print_counter(out, "hadal_cache_lookups_total", "Sequences that were looked up in the prefix cache.",
                cache.lookups_total);
  print_counter(out, "hadal_cache_lookup_tokens_total", "Tokens of these sequences.",
                cache.lookup_tokens_total);
  print_counter(out, "hadal_cache_hits_total", "Sequences of which a beginning was known.", cache.hits_total);
  print_counter(out, "hadal_cache_hit_tokens_total", "Tokens of these beginnings.", cache.hit_tokens_total);
  print_counter(out, "hadal_cache_evictions_total", "Snapshots dropped from memory to make room.",
                cache.evictions_total);
  print_counter(out, "hadal_cache_skipped_total", "Snapshots not kept for want of memory.",
                cache.skipped_total);
  if (!cache.disk) {
    return;
  }
  const cache::DiskStats& disk = *cache.disk;
  print_gauge(out, "hadal_cache_disk_bytes", "Bytes of kept states on disk.", disk.bytes);
  print_gauge(out, "hadal_cache_disk_limit_bytes", "Most bytes of kept states on disk.", disk.limit_bytes);
  print_gauge(out, "hadal_cache_disk_segments", "Segments of this model on disk.", disk.segments);
  print_gauge(out, "hadal_cache_disk_queued", "Segments that wait to be written.", disk.queued);
  print_counter(out, "hadal_cache_disk_hits_total", "Sequences for which segments were read from disk.",
                cache.disk_hits_total);
  print_counter(out, "hadal_cache_disk_written_total", "Segments written.", disk.written_total);
  print_counter(out, "hadal_cache_disk_loaded_total", "Segments read.", disk.loaded_total);
  print_counter(out, "hadal_cache_disk_evictions_total", "Segments removed to make room.",
                disk.evicted_total);
  print_counter(out, "hadal_cache_disk_dropped_total", "Segments not written: queue full or too large.",
                disk.dropped_total);
  print_counter(out, "hadal_cache_disk_write_errors_total", "Segments that could not be written.",
                disk.write_errors_total);
  print_counter(out, "hadal_cache_disk_bad_files_total",
                "Damaged or foreign files that were taken as misses.", disk.bad_files_total);
}

void print_http(std::string& out, const HttpServerStats& stats) {
  print_gauge(out, "hadal_http_connections", "Open connections.", stats.connections);
  print_gauge(out, "hadal_http_active_requests", "Requests that are being read or answered.",
              stats.exchanges);
  print_counter(out, "hadal_http_connections_total", "Connections accepted.", stats.connections_total);
  print_counter(out, "hadal_http_evicted_total", "Idle connections closed to make room.",
                stats.evicted_total);
  print_counter(out, "hadal_http_accept_errors_total", "Failures to accept a connection.",
                stats.accept_errors_total);
  print_counter(out, "hadal_http_timeouts_total", "Reads, writes and requests that took too long.",
                stats.timeouts_total);
  print_counter(out, "hadal_http_disconnects_total", "Clients that left before their answer ended.",
                stats.disconnects_total);
  print_counter(out, "hadal_http_slow_readers_total", "Streams given up because the reader did not keep up.",
                stats.aborted_total);
  print_counter(out, "hadal_http_network_cpu_seconds_total", "CPU time of the network threads.",
                stats.network_cpu_seconds);
}

}  // namespace

std::string_view route_name(Route route) {
  return kRouteNames[static_cast<size_t>(route)];
}

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::observe(double seconds, uint64_t times) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), seconds) - bounds_.begin();
  counts_[static_cast<size_t>(bucket)].fetch_add(times, std::memory_order_relaxed);
  sum_.fetch_add(seconds * static_cast<double>(times), std::memory_order_relaxed);
}

void Histogram::print(std::string& out, std::string_view name, std::string_view help) const {
  print_head(out, name, "histogram", help);
  uint64_t total = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    total += counts_[i].load(std::memory_order_relaxed);
    if (i < bounds_.size()) {
      fmt::format_to(std::back_inserter(out), "{}_bucket{{le=\"{}\"}} {}\n", name, bounds_[i], total);
    }
  }
  fmt::format_to(std::back_inserter(out), "{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name,
                 total, sum_.load(std::memory_order_relaxed));
}

Metrics::Metrics()
    : request_seconds(
          {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800}),
      ttft_seconds(
          {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}),
      inter_token_seconds(
          {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}) {}

void Metrics::count_response(Route route, int status) {
  const auto known = std::find(kStatuses.begin(), kStatuses.end(), status);
  responses_[static_cast<size_t>(route)][static_cast<size_t>(known - kStatuses.begin())].fetch_add(
      1, std::memory_order_relaxed);
}

void Metrics::count_finish(Route route, Finish finish) {
  finishes_[static_cast<size_t>(route)][static_cast<size_t>(finish)].fetch_add(1, std::memory_order_relaxed);
}

void Metrics::count_tokens(const engine::Usage& usage) {
  prompt_tokens_.fetch_add(static_cast<uint64_t>(usage.prompt_tokens), std::memory_order_relaxed);
  cached_tokens_.fetch_add(static_cast<uint64_t>(usage.cached_tokens), std::memory_order_relaxed);
  output_tokens_.fetch_add(static_cast<uint64_t>(usage.completion_tokens), std::memory_order_relaxed);
}

void Metrics::count_faults(const recipe::OutputFaults& faults) {
  const std::array<uint64_t, kFaultNames.size()> counts{faults.stray_markers,      faults.repaired_values,
                                                        faults.repeated_keys,      faults.cut_calls,
                                                        faults.calls_in_reasoning, faults.dropped_text_bytes};
  for (size_t i = 0; i < counts.size(); ++i) {
    faults_[i].fetch_add(counts[i], std::memory_order_relaxed);
  }
}

std::string Metrics::print(const engine::EngineStats* engine, const HttpServerStats& http,
                           std::string_view version, std::string_view model, bool ready) const {
  std::string out;
  print_head(out, "hadal_build_info", "gauge", "The version, and the model once it is loaded.");
  fmt::format_to(std::back_inserter(out), "hadal_build_info{{version=\"{}\",model=\"{}\"}} 1\n",
                 escape_label(version), escape_label(model));
  print_gauge(out, "hadal_ready", "1 while requests are accepted.", ready ? 1 : 0);

  print_head(out, "hadal_http_responses_total", "counter", "Responses by route and status.");
  for (size_t route = 0; route < kNumRoutes; ++route) {
    for (size_t i = 0; i < responses_[route].size(); ++i) {
      const uint64_t count = responses_[route][i].load(std::memory_order_relaxed);
      if (count > 0) {
        fmt::format_to(std::back_inserter(out), "hadal_http_responses_total{{route=\"{}\",code=\"{}\"}} {}\n",
                       kRouteNames[route], i < kStatuses.size() ? std::to_string(kStatuses[i]) : "other",
                       count);
      }
    }
  }
  print_head(out, "hadal_requests_total", "counter", "Answers of the model by route and how they ended.");
  for (size_t route = 0; route < kNumRoutes; ++route) {
    for (size_t finish = 0; finish < kNumFinishes; ++finish) {
      const uint64_t count = finishes_[route][finish].load(std::memory_order_relaxed);
      if (count > 0) {
        fmt::format_to(std::back_inserter(out), "hadal_requests_total{{route=\"{}\",finish=\"{}\"}} {}\n",
                       kRouteNames[route], kFinishNames[finish], count);
      }
    }
  }
  print_head(out, "hadal_output_faults_total", "counter",
             "What answers held that a well-behaved model would not write.");
  for (size_t i = 0; i < kFaultNames.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "hadal_output_faults_total{{kind=\"{}\"}} {}\n", kFaultNames[i],
                   faults_[i].load(std::memory_order_relaxed));
  }
  print_counter(out, "hadal_prompt_tokens_total", "Prompt tokens as reported in usage.",
                prompt_tokens_.load());
  print_counter(out, "hadal_cached_tokens_total", "Prompt tokens that needed no forward pass.",
                cached_tokens_.load());
  print_counter(out, "hadal_output_tokens_total", "Output tokens as reported in usage.",
                output_tokens_.load());
  request_seconds.print(out, "hadal_request_seconds", "Arrival of a request to the end of its answer.");
  ttft_seconds.print(out, "hadal_ttft_seconds", "Arrival of a request to its first token.");
  inter_token_seconds.print(out, "hadal_inter_token_seconds", "Time between tokens of one answer.");
  if (engine != nullptr) {
    print_engine(out, *engine);
    print_cache(out, engine->cache);
  }
  print_http(out, http);
  return out;
}

void print_store_metrics(std::string& out, const ResponseStoreStats& stats) {
  print_gauge(out, "hadal_stored_responses", "Responses that are kept.", stats.responses);
  print_gauge(out, "hadal_stored_response_bytes", "Bytes of their texts.", stats.bytes);
  print_counter(out, "hadal_responses_stored_total", "Responses that were stored.", stats.stored_total);
  print_counter(out, "hadal_responses_evicted_total", "Stored responses dropped for the limits or their age.",
                stats.evicted_total);
  print_counter(out, "hadal_response_store_failures_total",
                "Responses that could not be stored, and reads that failed.", stats.failures_total);
}

std::string escape_label(std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '\\' || c == '"') {
      escaped += '\\';
      escaped += c;
    } else if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  return escaped;
}

}  // namespace hadal::server
