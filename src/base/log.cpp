#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

namespace hadal {
namespace {

/// Bytes of the code point at the start of `text`; 0 if it is a control character or not well-formed UTF-8.
size_t printable_length(std::string_view text) {
  const auto byte = [&](size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    return lead < 0x20 || lead == 0x7f ? 0 : 1;
  }
  const size_t length = lead >= 0xf0 ? 4 : (lead >= 0xe0 ? 3 : 2);
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) {
    return 0;
  }
  // The second byte tells overlong forms, surrogates, what lies past U+10FFFF, and the controls U+0080 to
  // U+009F.
  const unsigned char lowest = lead == 0xc2 || lead == 0xe0 ? 0xa0 : (lead == 0xf0 ? 0x90 : 0x80);
  const unsigned char highest = lead == 0xed ? 0x9f : (lead == 0xf4 ? 0x8f : 0xbf);
  if (byte(1) < lowest || byte(1) > highest) {
    return 0;
  }
  for (size_t index = 2; index < length; ++index) {
    if ((byte(index) & 0xc0) != 0x80) {
      return 0;
    }
  }
  return length;
}

}  // namespace

Result<void> init_logging(std::string_view level) {
  const auto parsed = spdlog::level::from_str(std::string(level));
  // from_str answers "off" for every unknown word.
  if (parsed == spdlog::level::off && level != "off") {
    return fail(ErrorCode::kInvalidArgument,
                "log level '{}' is unknown; expected trace, debug, info, warn, error or off",
                printable(level));
  }
  auto logger =
      std::make_shared<spdlog::logger>("hadal", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

std::string printable(std::string_view text, size_t max_bytes) {
  std::string out;
  out.reserve(std::min(text.size(), max_bytes) + 8);
  for (size_t at = 0; at < text.size();) {
    const size_t length = printable_length(text.substr(at));
    const size_t taken = std::max<size_t>(length, 1);
    if (at + taken > max_bytes) {
      return out + "...";
    }
    if (length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    } else {
      out += text.substr(at, length);
    }
    at += taken;
  }
  return out;
}

}  // namespace hadal
