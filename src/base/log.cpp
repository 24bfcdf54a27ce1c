#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

namespace hadal {

Result<void> init_logging(std::string_view level) {
  const auto parsed = spdlog::level::from_str(std::string(level));
  // from_str answers "off" for every unknown word.
  if (parsed == spdlog::level::off && level != "off") {
    return fail(ErrorCode::kInvalidArgument,
                "log level '{}' is unknown; expected trace, debug, info, warn, error or off", printable(level));
  }
  auto logger = std::make_shared<spdlog::logger>("hadal", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

std::string printable(std::string_view text, size_t max_bytes) {
  std::string out;
  out.reserve(std::min(text.size(), max_bytes) + 8);
  for (const char byte : text.substr(0, max_bytes)) {
    const auto value = static_cast<unsigned char>(byte);
    if (value < 0x20 || value == 0x7f) {
      out += fmt::format("\\x{:02x}", value);
    } else {
      out += byte;
    }
  }
  if (text.size() > max_bytes) {
    out += "...";
  }
  return out;
}

}  // namespace hadal
