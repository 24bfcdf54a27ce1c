#include "base/settings.h"

#include <array>
#include <set>
#include <utility>

#include <unistd.h>

#include "base/settings_table.h"

namespace hadal {
namespace {

/// Where a value came from and what it is there; the default when neither flag nor variable is set.
struct Found {
  std::string value;
  std::string place;   ///< leads an error: "--port", "HADAL_PORT"
  std::string source;  ///< for --print-config
};

Found find_value(const SettingInfo& info, const TextMap& environment, const TextMap& flags) {
  if (const auto flag = flags.find(info.flag); flag != flags.end()) {
    return {flag->second, info.flag, "flag " + info.flag};
  }
  std::vector<std::string> variables = info.aliases;
  variables.insert(variables.begin(), info.environment);
  for (const std::string& variable : variables) {
    const auto entry = environment.find(variable);
    if (entry != environment.end() && (!entry->second.empty() || info.is_switch)) {
      return {entry->second, variable, "environment " + variable};
    }
  }
  return {info.default_text, info.name, "default"};
}

std::filesystem::path expand_home(std::string_view path, const TextMap& environment) {
  if (!path.empty() && path[0] == '~' && (path.size() == 1 || path[1] == '/')) {
    const auto home = environment.find("HOME");
    const std::filesystem::path base = home == environment.end() ? "/" : home->second;
    return path.size() <= 2 ? base : base / path.substr(2);
  }
  return path;
}

}  // namespace

const std::vector<SettingInfo>& setting_infos() {
  static const std::vector<SettingInfo> infos = [] {
    std::vector<SettingInfo> collected;
    for (const Setting& setting : settings_table()) {
      collected.push_back(setting.info);
    }
    return collected;
  }();
  return infos;
}

Result<LoadedSettings> load_settings(const TextMap& environment, const TextMap& flags) {
  LoadedSettings loaded;
  std::set<std::string, std::less<>> known;
  for (const Setting& setting : settings_table()) {
    Found found = find_value(setting.info, environment, flags);
    if (setting.info.name == "model.hub_cache" && found.source == "default") {
      std::string variable;
      found.value = hub_cache_directory(environment, variable).string();
      found.source = variable.empty() ? "default" : "environment " + variable;
    }
    if (auto set = setting.set(loaded.values, found.value); !set) {
      // A secret must not end up in a terminal or a log with the error.
      return setting.info.is_secret
                 ? fail(ErrorCode::kInvalidArgument, "{}: expected {}", found.place, setting.info.form)
                 : fail_within(found.place, std::move(set).error());
    }
    loaded.entries.push_back({setting.info, setting.print(loaded.values), std::move(found.source)});
    known.insert(setting.info.environment);
    known.insert(setting.info.aliases.begin(), setting.info.aliases.end());
  }
  for (const auto& [name, value] : environment) {
    if ((name.starts_with("HADAL_") || name.starts_with("DEEPINFER_")) && !known.contains(name)) {
      loaded.unused_environment.push_back(name);
    }
  }
  return loaded;
}

TextMap read_environment() {
  TextMap variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (const size_t equals = text.find('='); equals != std::string_view::npos) {
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return variables;
}

std::string print_settings(const LoadedSettings& settings) {
  std::string text;
  for (const auto& entry : settings.entries) {
    text += fmt::format("{:<28} = {:<24} # {}\n", entry.info.name, entry.value, entry.source);
  }
  return text;
}

std::filesystem::path hub_cache_directory(const TextMap& environment, std::string& variable) {
  struct Rule {
    const char* variable;
    const char* below;  ///< what is appended to the variable's directory
  };
  static constexpr std::array<Rule, 4> kRules{{{"HF_HUB_CACHE", ""},
                                               {"HUGGINGFACE_HUB_CACHE", ""},
                                               {"HF_HOME", "hub"},
                                               {"XDG_CACHE_HOME", "huggingface/hub"}}};
  for (const Rule& rule : kRules) {
    const auto entry = environment.find(rule.variable);
    if (entry != environment.end() && !entry->second.empty()) {
      variable = rule.variable;
      const std::filesystem::path directory = expand_home(entry->second, environment);
      return *rule.below == '\0' ? directory : directory / rule.below;
    }
  }
  variable.clear();
  return expand_home("~/.cache/huggingface/hub", environment);
}

}  // namespace hadal
