#pragma once
// A subcommand: its options are added to the parser, and what it does is run once the command line is read.

#include <functional>

#include "base/result.h"

namespace CLI {
class App;
}

namespace hadal::cli {

/// Why a command ended, as an exit code.
enum class Exit : int { kOk = 0, kFailure = 1, kUsage = 2 };

/// What to run; set by the subcommand that the command line names.
using Selected = std::function<Exit()>;

/// Each adds one subcommand to `app`; when it is parsed, `selected` is set.
void add_serve(CLI::App& app, Selected& selected);
void add_chat(CLI::App& app, Selected& selected);
void add_generate(CLI::App& app, Selected& selected);
void add_logits(CLI::App& app, Selected& selected);
void add_tokenize(CLI::App& app, Selected& selected);
void add_recipe(CLI::App& app, Selected& selected);
void add_inspect(CLI::App& app, Selected& selected);

/// Prints "hadal: MESSAGE" on standard error, on one line.
Exit report(const Error& error, Exit exit = Exit::kFailure);

/// The whole program: parses, runs, and turns every outcome into an exit code.
int run(int argc, const char* const* argv);

}  // namespace hadal::cli
