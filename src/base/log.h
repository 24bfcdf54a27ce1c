#pragma once
// Logging: one process-wide spdlog logger on standard error. Use spdlog's own functions
// (spdlog::info and so on) after init_logging.

#include <string>
#include <string_view>

#include <spdlog/spdlog.h>

#include "base/result.h"

namespace hadal {

/// Sends log lines of at least `level` (trace, debug, info, warn, error, off) to standard error.
/// An unknown level is an error that lists the known ones.
Result<void> init_logging(std::string_view level);

/// Text from outside made safe for one log line or message: control characters and bytes that are not UTF-8
/// become \xNN, and what passes `max_bytes` is cut with a mark, between code points.
std::string printable(std::string_view text, size_t max_bytes = 400);

}  // namespace hadal
