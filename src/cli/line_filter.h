#pragma once
// Commands that answer each line of standard input with one line of standard output.

#include <functional>
#include <string>
#include <string_view>

#include "cli/command.h"

namespace hadal::cli {

/// Runs until the input ends; empty lines are skipped. A line whose answer says it failed is still answered;
/// exit is 1 only if the output cannot be written.
Exit filter_lines(const std::function<std::string(std::string_view)>& answer);

}  // namespace hadal::cli
