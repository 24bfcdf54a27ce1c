#include "base/settings_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"
#include "base/setting_values.h"

namespace hadal {
namespace {

/// What the table below says of a setting; the environment variable follows from the flag.
struct About : SettingInfo {
  About(std::string its_name, std::string its_flag, std::string its_default, std::string its_help) {
    name = std::move(its_name);
    flag = std::move(its_flag);
    default_text = std::move(its_default);
    help = std::move(its_help);
    environment = "HADAL_";
    for (const char c : flag.substr(2)) {
      environment += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
  }
  About looks_like(std::string its_form) && {
    form = std::move(its_form);
    return std::move(*this);
  }
  About alias(std::string variable) && {
    aliases.push_back(std::move(variable));
    return std::move(*this);
  }
  About secret() && {
    is_secret = true;
    return std::move(*this);
  }
};

/// Builds the table. Members are reached through a group and a field, so that each line of the table below
/// says all there is to a setting.
class Table {
 public:
  template <class Group>
  void integer(Group Settings::* group, int64_t Group::* field, SettingInfo info, int64_t lowest,
               int64_t highest = std::numeric_limits<int64_t>::max()) {
    info.form = integer_setting_form(lowest, highest);
    add(
        std::move(info), group, field,
        [lowest, highest](std::string_view text) { return parse_integer_setting(text, lowest, highest); },
        [](int64_t value) { return std::to_string(value); });
  }
  template <class Group>
  void switch_(Group Settings::* group, bool Group::* field, SettingInfo info) {
    info.form = kSwitchForm;
    info.is_switch = true;
    add(std::move(info), group, field, parse_switch_setting,
        [](bool value) { return std::string(value ? "on" : "off"); });
  }
  template <class Group>
  void size(Group Settings::* group, uint64_t Group::* field, SettingInfo info, uint64_t lowest) {
    info.form = lowest > 0 ? fmt::format("{}, at least {}", kSizeForm, lowest) : std::string(kSizeForm);
    add(
        std::move(info), group, field,
        [lowest, form = info.form](std::string_view text) -> Result<uint64_t> {
          HADAL_TRY(const uint64_t bytes, parse_size_setting(text));
          if (bytes < lowest) {
            return fail(ErrorCode::kInvalidArgument, "'{}' is not {}", text, form);
          }
          return bytes;
        },
        print_size_setting);
  }
  template <class Group>
  void duration(Group Settings::* group, std::chrono::milliseconds Group::* field, SettingInfo info) {
    info.form = kDurationForm;
    add(std::move(info), group, field, parse_duration_setting, print_duration_setting);
  }
  template <class Group>
  void list(Group Settings::* group, std::vector<std::string> Group::* field, SettingInfo info) {
    info.form = kListForm;
    add(std::move(info), group, field, parse_list_setting,
        [](const std::vector<std::string>& parts) { return fmt::format("{}", fmt::join(parts, ",")); });
  }
  /// One of `words`; no words: any text.
  template <class Group>
  void text(Group Settings::* group, std::string Group::* field, SettingInfo info,
            std::vector<std::string> words = {}) {
    if (!words.empty()) {
      info.form = fmt::format("one of {}", fmt::join(words, ", "));
    }
    info.form = info.form.empty() ? "any text without control characters" : std::move(info.form);
    add(
        std::move(info), group, field,
        [words = std::move(words), form = info.form](std::string_view value) -> Result<std::string> {
          if (!words.empty() && std::find(words.begin(), words.end(), value) == words.end()) {
            return fail(ErrorCode::kInvalidArgument, "'{}' is not {}", printable(value, 80), form);
          }
          // They end up in headers, file names and log lines.
          if (std::any_of(value.begin(), value.end(),
                          [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; })) {
            return fail(ErrorCode::kInvalidArgument, "'{}' holds a control character; expected {}",
                        printable(value, 80), form);
          }
          return std::string(value);
        },
        [](const std::string& value) { return value; });
  }
  template <class Group>
  void path(Group Settings::* group, std::filesystem::path Group::* field, SettingInfo info) {
    info.form = info.form.empty() ? "a directory" : std::move(info.form);
    add(
        std::move(info), group, field,
        [](std::string_view value) -> Result<std::filesystem::path> { return std::filesystem::path(value); },
        [](const std::filesystem::path& value) { return value.string(); });
  }

  std::vector<Setting> settings;

 private:
  template <class Group, class Value, class Parse, class Print>
  void add(SettingInfo info, Group Settings::* group, Value Group::* field, Parse parse, Print print) {
    const bool is_secret = info.is_secret;
    settings.push_back(
        {std::move(info),
         [group, field, parse = std::move(parse)](Settings& target, std::string_view text) -> Result<void> {
           HADAL_TRY((target.*group).*field, parse(text));
           return {};
         },
         [group, field, is_secret, print = std::move(print)](const Settings& source) {
           std::string value = print((source.*group).*field);
           return is_secret ? std::string(value.empty() ? "(not set)" : "(set)") : value;
         }});
  }
};

void add_server_settings(Table& table) {
  constexpr auto kGroup = &Settings::server;
  using S = ServerSettings;
  table.text(kGroup, &S::host,
             About("server.host", "--host", "127.0.0.1", "Address to listen on; 0.0.0.0 or :: for all.")
                 .looks_like("an IP address or host name"));
  table.integer(kGroup, &S::port,
                About("server.port", "--port", "8000", "Port to listen on; 0 takes any free one."), 0, 65535);
  table.text(kGroup, &S::api_key,
             About("server.api_key", "--api-key", "",
                   "Key that every request must carry, except those to /healthz, /readyz and /recipe.")
                 .secret());
  table.list(kGroup, &S::served_model_names,
             About("server.served_model_names", "--served-model-name", "",
                   "Names that requests may use for the model; the first stands for it in metrics."));
  table.text(kGroup, &S::cors_origin,
             About("server.cors_origin", "--cors-origin", "",
                   "Origin that web pages may call from; empty sends no CORS headers.")
                 .looks_like("an origin or *"));
  table.path(kGroup, &S::script,
             About("server.script", "--script", "",
                   "File of answers to give in place of a model's, for tests; see docs/script.md.")
                 .looks_like("a file of JSON lines"));
  table.switch_(kGroup, &S::default_thinking,
                About("server.default_thinking", "--default-thinking", "on",
                      "Whether the model thinks first where a request does not say."));
  table.switch_(
      kGroup, &S::ignore_unsupported,
      About("server.ignore_unsupported", "--ignore-unsupported", "off",
            "Ignore request fields that would change the answer but are not supported (else 400)."));
  table.switch_(kGroup, &S::recipe_page,
                About("server.recipe_page", "--recipe-page", "on",
                      "Serve the page /recipe, which shows prompts and answers in the making."));
  table.integer(kGroup, &S::max_connections,
                About("server.max_connections", "--max-connections", "8192",
                      "Connections at once; the longest idle one makes room for a new one."),
                1, 1'000'000);
  table.size(kGroup, &S::max_body_bytes,
             About("server.max_body", "--max-body", "64MiB", "Largest request body."), 1);
  table.size(kGroup, &S::max_buffered_body_bytes,
             About("server.max_buffered_bodies", "--max-buffered-bodies", "1GiB",
                   "Memory for request bodies of all connections together; more is answered 503."),
             1);
  table.size(
      kGroup, &S::max_header_bytes,
      About("server.max_header", "--max-header", "32KiB", "Largest request line and headers together."), 512);
  table.integer(kGroup, &S::max_header_count,
                About("server.max_header_count", "--max-header-count", "100", "Most headers of a request."),
                4, 10'000);
  table.integer(kGroup, &S::max_choices,
                About("server.max_choices", "--max-choices", "128",
                      "Most answers of one completions request: prompts times n."),
                1, 4096);
  table.size(kGroup, &S::max_stream_buffer_bytes,
             About("server.max_stream_buffer", "--max-stream-buffer", "4MiB",
                   "Output waiting for a reader that does not keep up; beyond it the request is cancelled."),
             1024);
  table.duration(kGroup, &S::header_timeout,
                 About("server.header_timeout", "--header-timeout", "30s",
                       "Time for the headers to arrive, from their first byte."));
  table.duration(kGroup, &S::body_timeout,
                 About("server.body_timeout", "--body-timeout", "30s",
                       "Time for the body to arrive; each 16 KiB that arrived adds a second."));
  table.duration(kGroup, &S::idle_timeout,
                 About("server.idle_timeout", "--idle-timeout", "75s",
                       "Time a connection may stay open between requests."));
  table.duration(kGroup, &S::write_timeout,
                 About("server.write_timeout", "--write-timeout", "60s",
                       "Time in which the client must take something of what is being sent to it."));
  table.duration(
      kGroup, &S::keep_alive_interval,
      About("server.keep_alive_interval", "--keep-alive-interval", "10s",
            "Silence of a stream after which a comment (Messages: a ping) is sent; 0 sends none."));
  table.duration(kGroup, &S::request_timeout,
                 About("server.request_timeout", "--request-timeout", "3600s",
                       "Longest time from the arrival of a request to the end of its answer."));
  table.duration(kGroup, &S::shutdown_grace,
                 About("server.shutdown_grace", "--shutdown-grace", "30s",
                       "Time that running requests have to finish after SIGTERM or SIGINT."));
  table.text(
      kGroup, &S::responses_store,
      About("server.responses_store", "--responses-store", "memory",
            "Where answers of /v1/responses are kept for previous_response_id; a file survives a restart.")
          .looks_like("off, memory or the path of a file"));
  table.integer(kGroup, &S::responses_store_count,
                About("server.responses_store_count", "--responses-store-count", "10000",
                      "Most responses kept; the longest unused one makes room for a new one."),
                1, 10'000'000);
  table.size(kGroup, &S::responses_store_bytes,
             About("server.responses_store_size", "--responses-store-size", "256MiB",
                   "Most bytes of kept responses and their inputs."),
             1024);
  table.duration(kGroup, &S::responses_store_age,
                 About("server.responses_store_age", "--responses-store-age", "720h",
                       "Time since its last use after which a response is dropped; 0 keeps it."));
  table.integer(kGroup, &S::max_response_chain,
                About("server.max_response_chain", "--max-response-chain", "1000",
                      "Most responses that previous_response_id may lead through."),
                1, 1'000'000);
}

void add_engine_settings(Table& table) {
  constexpr auto kGroup = &Settings::engine;
  using S = EngineSettings;
  table.integer(kGroup, &S::max_num_seqs,
                About("engine.max_num_seqs", "--max-num-seqs", "64",
                      "Requests that run at once; more wait in order of arrival."),
                1, 65536);
  table.integer(kGroup, &S::max_num_batched_tokens,
                About("engine.max_num_batched_tokens", "--max-num-batched-tokens", "512",
                      "Tokens of one step, prefill and decode together; at least max_num_seqs."),
                1, int64_t{1} << 24);
  table.integer(kGroup, &S::max_model_len,
                About("engine.max_model_len", "--max-model-len", "0",
                      "Longest prompt and output together, in tokens; 0 takes the model's own limit."),
                0, int64_t{1} << 31);
  table.integer(
      kGroup, &S::max_waiting,
      About("engine.max_waiting", "--max-waiting", "4096", "Requests that wait; more are refused with 429."),
      1, 1 << 20);
  table.switch_(kGroup, &S::prefix_cache,
                About("engine.prefix_cache", "--prefix-cache", "on",
                      "Keep states, so that a prompt goes on from the longest beginning that is known."));
  table.size(
      kGroup, &S::cache_memory_bytes,
      About("engine.cache_memory", "--cache-memory", "0",
            "Memory for the states of sequences, running and kept; 0 takes a quarter of what is free."),
      0);
  table.path(
      kGroup, &S::cache_dir,
      About("engine.cache_dir", "--cache-dir", "",
            "Where kept states also go, to be used after a restart; empty keeps them in memory only."));
  table.size(kGroup, &S::cache_disk_bytes,
             About("engine.cache_disk", "--cache-disk", "64GiB", "Most bytes of kept states in cache_dir."),
             0);
  table.switch_(
      kGroup, &S::draft_schedule,
      About("engine.draft_schedule", "--draft-schedule", "on",
            "Verify as many drafts as pay, by their confidences and a cost curve measured at start; "
            "off verifies all.")
          .alias("DEEPINFER_ENABLE_MTP_VARLEN"));
}

void add_model_settings(Table& table) {
  constexpr auto kGroup = &Settings::model;
  using S = ModelSettings;
  table.text(kGroup, &S::model,
             About("model.model", "--model", "", "The checkpoint to run.")
                 .looks_like("a checkpoint directory or a Hugging Face repository id")
                 .alias("DEEPINFER_HF_MODEL_DIR"));
  table.text(kGroup, &S::revision,
             About("model.revision", "--revision", "main", "Revision of a repository in the hub cache.")
                 .looks_like("a branch, tag or commit"));
  table.path(kGroup, &S::hub_cache,
             About("model.hub_cache", "--hub-cache", "",
                   "The Hugging Face hub cache; the default follows HF_HUB_CACHE and HF_HOME."));
  table.text(kGroup, &S::precision,
             About("model.precision", "--precision", "default", "Arithmetic of the forward pass."),
             {"default", "f32", "f32_kvq", "qat"});
  table.text(
      kGroup, &S::replay,
      About("model.replay", "--replay", "compact", "Bounded replay: what the upper layers see of a prompt.")
          .alias("DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE"),
      {"off", "mask", "compact"});
  table.integer(kGroup, &S::replay_keep,
                About("model.replay_keep", "--replay-keep", "140",
                      "Tokens at the end of a prompt that bounded replay keeps.")
                    .alias("DEEPINFER_YOCO_PREFILL_KEEP_TOKENS"),
                0, int64_t{1} << 31);
  table.text(
      kGroup, &S::isa,
      About("model.isa", "--isa", "auto", "Instruction set of the kernels; results are the same with each."),
      {"auto", "scalar", "avx2", "avx512"});
  table.integer(
      kGroup, &S::draft_length,
      About(
          "model.draft_length", "--draft-length", "-1",
          "Tokens that the draft layers guess at a time; 0 uses none, -1 takes the checkpoint's own number, "
          "and none over 2 GiB, where measuring whether they pay would hold up the start. Answers are the "
          "same with each.")
          .alias("DEEPINFER_USE_NEXTN_DECODE"),
      -1, 16);
  table.text(kGroup, &S::bos,
             About("model.bos", "--bos", "auto",
                   "BOS in front of plain text; auto follows the checkpoint's tokenizer_compatibility."),
             {"auto", "on", "off"});
}

void add_other_settings(Table& table) {
  table.integer(&Settings::threads, &ThreadSettings::compute,
                About("threads.compute", "--threads", "0",
                      "Compute threads; 0 takes every usable CPU, more than that are never started."),
                0, 65536);
  table.switch_(&Settings::threads, &ThreadSettings::pin,
                About("threads.pin", "--pin-threads", "off", "Keep each compute thread on one CPU."));
  table.integer(
      &Settings::threads, &ThreadSettings::network,
      About("threads.network", "--network-threads", "1", "Threads that read requests and write answers."), 1,
      256);
  table.integer(
      &Settings::threads, &ThreadSettings::requests,
      About("threads.requests", "--request-threads", "2", "Threads that turn request bodies into token ids."),
      1, 256);
  table.text(&Settings::log, &LogSettings::level,
             About("log.level", "--log-level", "info", "Least important lines that are logged."),
             {"trace", "debug", "info", "warn", "error", "off"});
}

}  // namespace

const std::vector<Setting>& settings_table() {
  static const std::vector<Setting> table = [] {
    Table building;
    add_server_settings(building);
    add_engine_settings(building);
    add_model_settings(building);
    add_other_settings(building);
    return std::move(building.settings);
  }();
  return table;
}

}  // namespace hadal
