#pragma once
// What a person at a terminal sees besides the output itself.

#include <string_view>

namespace hadal::cli {

bool is_terminal_out();    ///< standard output
bool is_terminal_error();  ///< standard error
bool is_terminal_in();

/// A line on standard error that is rewritten in place; nothing if that is no terminal. Gone when destroyed.
class StatusLine {
 public:
  StatusLine() = default;
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void show(std::string_view text);
  /// `text`, a bar, and the percentage; `done` in [0, 1].
  void show_bar(std::string_view text, double done);
  void clear();

 private:
  bool is_shown_ = false;
};

inline constexpr std::string_view kDim = "\x1b[2m";
inline constexpr std::string_view kPlain = "\x1b[0m";

/// Writes to standard output at once; false if nobody reads it any more.
bool write_out(std::string_view text);

}  // namespace hadal::cli
