#pragma once
// Every setting of the program: typed values, filled from defaults, environment and flags in one place.
// Nothing else in hadal reads the environment. docs/settings.md describes each setting.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hadal {

struct ServerSettings {
  std::string host;
  int64_t port = 0;                             ///< 0: any free one
  std::string api_key;                          ///< empty: no key is asked for
  std::vector<std::string> served_model_names;  ///< empty: the name of the model directory or repository
  std::string cors_origin;                      ///< empty: no CORS headers
  std::filesystem::path script;                 ///< empty: a model answers
  bool default_thinking = true;
  bool ignore_unsupported = false;
  bool recipe_page = true;
  int64_t max_connections = 0;
  uint64_t max_body_bytes = 0;
  uint64_t max_buffered_body_bytes = 0;  ///< of all requests being read together
  uint64_t max_header_bytes = 0;
  int64_t max_header_count = 0;
  int64_t max_choices = 0;  ///< prompts times n of one completions request
  uint64_t max_stream_buffer_bytes = 0;
  std::chrono::milliseconds header_timeout{};
  std::chrono::milliseconds body_timeout{};
  std::chrono::milliseconds idle_timeout{};
  std::chrono::milliseconds write_timeout{};
  std::chrono::milliseconds keep_alive_interval{};
  std::chrono::milliseconds request_timeout{};
  std::chrono::milliseconds shutdown_grace{};
  std::string responses_store;  ///< "off", "memory" or the path of a database
  int64_t responses_store_count = 0;
  uint64_t responses_store_bytes = 0;
  std::chrono::milliseconds responses_store_age{};  ///< since the last use; 0: any
  int64_t max_response_chain = 0;
};

struct EngineSettings {
  int64_t max_num_seqs = 0;
  int64_t max_num_batched_tokens = 0;
  int64_t max_model_len = 0;  ///< 0: the model's own limit
  int64_t max_waiting = 0;
  bool prefix_cache = true;
  uint64_t cache_memory_bytes = 0;  ///< 0: a quarter of what is free at start
  std::filesystem::path cache_dir;  ///< empty: no disk tier
  uint64_t cache_disk_bytes = 0;
  bool draft_schedule = true;
};

struct ModelSettings {
  std::string model;  ///< a directory or a Hugging Face repository id; empty: not given
  std::string revision;
  std::filesystem::path hub_cache;
  std::string precision;
  std::string replay;
  int64_t replay_keep = 0;
  std::string isa;
  int64_t draft_length = 0;  ///< -1: the checkpoint's own, none for large ones
  std::string bos;           ///< auto, on or off: BOS in front of plain text
};

struct ThreadSettings {
  int64_t compute = 0;  ///< 0: every usable CPU
  bool pin = false;
  int64_t network = 0;
  int64_t requests = 0;
};

struct LogSettings {
  std::string level;
};

struct Settings {
  ServerSettings server;
  EngineSettings engine;
  ModelSettings model;
  ThreadSettings threads;
  LogSettings log;
};

/// What is known of one setting besides its value.
struct SettingInfo {
  std::string name;                  ///< "server.port"; the part before the dot is its group
  std::string flag;                  ///< "--port"
  std::string environment;           ///< "HADAL_PORT"
  std::vector<std::string> aliases;  ///< further environment variables, tried in order after `environment`
  std::string form;                  ///< what a value must look like
  std::string help;                  ///< one line
  std::string default_text;          ///< the default as it is printed
  bool is_switch = false;            ///< the flag may stand without a value
  bool is_secret = false;            ///< the value is never printed

  std::string_view group() const { return std::string_view(name).substr(0, name.find('.')); }
};

/// All settings in the order in which they are printed.
const std::vector<SettingInfo>& setting_infos();

using TextMap = std::map<std::string, std::string, std::less<>>;

struct LoadedSettings {
  Settings values;
  struct Entry {
    SettingInfo info;
    std::string value;   ///< as it is printed; a secret is "(set)" or "(not set)"
    std::string source;  ///< "default", "flag --port", "environment HADAL_PORT"
  };
  std::vector<Entry> entries;
  /// Variables that begin with HADAL_ or DEEPINFER_ and that no setting reads: worth a warning.
  std::vector<std::string> unused_environment;
};

/// Fills all settings: a flag wins over the environment, the environment over the default. `flags` is keyed
/// by the flag's spelling ("--port"). kInvalidArgument names the flag or variable, what it holds and the
/// expected form. An empty environment variable counts as unset, except for switches, where it means off.
Result<LoadedSettings> load_settings(const TextMap& environment, const TextMap& flags);

/// The environment of this process. The only place in hadal that reads it.
TextMap read_environment();

/// One line a setting, `name = value  # source`, for --print-config.
std::string print_settings(const LoadedSettings& settings);

/// Where Hugging Face keeps its hub cache under these variables: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE,
/// HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub. A leading ~ is the home directory.
/// `variable` gets the name of the deciding variable, empty for the last.
std::filesystem::path hub_cache_directory(const TextMap& environment, std::string& variable);

}  // namespace hadal
