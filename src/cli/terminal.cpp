#include "cli/terminal.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include <unistd.h>

namespace hadal::cli {

bool is_terminal_out() {
  return ::isatty(STDOUT_FILENO) == 1;
}
bool is_terminal_error() {
  return ::isatty(STDERR_FILENO) == 1;
}
bool is_terminal_in() {
  return ::isatty(STDIN_FILENO) == 1;
}

void StatusLine::show(std::string_view text) {
  if (is_terminal_error()) {
    const std::string shown(text.substr(0, 100));
    std::fprintf(stderr, "\r\x1b[K%s", shown.c_str());
    std::fflush(stderr);
    is_shown_ = true;
  }
}

void StatusLine::show_bar(std::string_view text, double done) {
  constexpr size_t kWidth = 30;
  const double share = std::clamp(done, 0.0, 1.0);
  const auto filled = static_cast<size_t>(share * kWidth);
  std::string line(text);
  line += " [" + std::string(filled, '#') + std::string(kWidth - filled, '.') + "] ";
  line += std::to_string(static_cast<int>(share * 100)) + " %";
  show(line);
}

void StatusLine::clear() {
  if (is_shown_) {
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
    is_shown_ = false;
  }
}

bool write_out(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

}  // namespace hadal::cli
