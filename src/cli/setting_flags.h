#pragma once
// Settings as command-line options.

#include <initializer_list>
#include <memory>
#include <string_view>

#include "base/settings.h"

namespace CLI {
class App;
}

namespace hadal::cli {

/// The flags that were given, keyed by spelling. Shared by the parser, which fills it, and the command.
using Flags = std::shared_ptr<TextMap>;

/// Adds an option for each setting of the groups ("model", "threads", ...).
Flags add_setting_flags(CLI::App& app, std::initializer_list<std::string_view> groups);

/// Loads all settings with these flags, starts logging and warns of environment variables that nothing reads.
/// `quiet` makes "warn" the default log level, for commands whose output people read.
Result<LoadedSettings> load_cli_settings(const Flags& flags, bool quiet);

}  // namespace hadal::cli
