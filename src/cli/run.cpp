#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/version.h"

namespace hadal::cli {

Exit report(const Error& error, Exit exit) {
  std::fprintf(stderr, "hadal: %s\n", printable(error.message, 4000).c_str());
  return exit;
}

namespace {

/// CLI11 calls a command it does not know an unexpected argument; the user meant a command.
std::optional<Error> unknown_command(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') {
    return std::nullopt;
  }
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == argv[1]) {
      return std::nullopt;
    }
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("unknown command '{}', expected one of: {}", printable(argv[1], 100), names)};
}

}  // namespace

int run(int argc, const char* const* argv) {
  CLI::App app("hadal: an inference engine and server for DeepSeek-V4.1", "hadal");
  app.set_version_flag("--version", std::string("hadal ") + kVersion);
  app.require_subcommand(1);
  app.fallthrough(false);
  Selected selected;
  for (const auto add :
       {add_serve, add_chat, add_generate, add_logits, add_tokenize, add_recipe, add_inspect}) {
    add(app, selected);
  }
  if (const auto error = unknown_command(app, argc, argv)) {
    return static_cast<int>(report(*error, Exit::kUsage));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted);
  } catch (const CLI::ParseError& fault) {
    return static_cast<int>(report({ErrorCode::kInvalidArgument, fault.what()}, Exit::kUsage));
  }
  try {
    const Exit exit = selected();
    // A full disk or a closed pipe must not look like success.
    const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    return static_cast<int>(exit == Exit::kOk && !is_written
                                ? report({ErrorCode::kIo, "standard output cannot be written"})
                                : exit);
  } catch (const std::exception& fault) {  // out of memory: everything expected is a value
    return static_cast<int>(report({ErrorCode::kInternal, fault.what()}));
  }
}

}  // namespace hadal::cli
