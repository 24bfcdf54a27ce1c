#include "cli/setting_flags.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "base/log.h"

namespace hadal::cli {

Flags add_setting_flags(CLI::App& app, std::initializer_list<std::string_view> groups) {
  auto flags = std::make_shared<TextMap>();
  for (const SettingInfo& info : setting_infos()) {
    if (std::find(groups.begin(), groups.end(), info.group()) == groups.end()) {
      continue;
    }
    const std::string help =
        fmt::format("{} [{}]{}", info.help, info.environment,
                    info.default_text.empty() ? "" : fmt::format(" ({})", info.default_text));
    const auto store = [flags, flag = info.flag](const CLI::results_t& values) {
      (*flags)[flag] = values.empty() ? "on" : values.back();
      return true;
    };
    CLI::Option* option = app.add_option(info.flag, store, help);
    option->group(std::string(info.group()) + " settings");
    option->type_name(info.is_switch ? "on|off" : "");
    option->take_last();
  }
  return flags;
}

Result<LoadedSettings> load_cli_settings(const Flags& flags, bool quiet) {
  HADAL_TRY(LoadedSettings settings, load_settings(read_environment(), *flags));
  for (const auto& entry : settings.entries) {
    if (quiet && entry.info.name == "log.level" && entry.source == "default") {
      settings.values.log.level = "warn";
    }
  }
  HADAL_CHECK(init_logging(settings.values.log.level));
  for (const std::string& name : settings.unused_environment) {
    spdlog::warn("{} is set but hadal does not read it", printable(name, 100));
  }
  return settings;
}

}  // namespace hadal::cli
