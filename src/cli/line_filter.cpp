#include "cli/line_filter.h"

#include <iostream>

namespace hadal::cli {

Exit filter_lines(const std::function<std::string(std::string_view)>& answer) {
  std::ios::sync_with_stdio(false);
  std::cin.tie(nullptr);
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.ends_with('\r')) {
      line.pop_back();
    }
    if (line.empty()) {
      continue;
    }
    std::cout << answer(line) << '\n';
    // Who writes line by line and waits for each answer gets it; a file gets large blocks.
    if (std::cin.rdbuf()->in_avail() <= 0) {
      std::cout.flush();
    }
    if (!std::cout) {
      return report({ErrorCode::kIo, "standard output cannot be written"});
    }
  }
  std::cout.flush();
  return std::cout ? Exit::kOk : report({ErrorCode::kIo, "standard output cannot be written"});
}

}  // namespace hadal::cli
