#pragma once
// Runs the hadal program as its users do.

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

namespace hadal::cli::testing {

struct Outcome {
  int exit_code = -1;  ///< 128 + the signal if one ended it
  std::string out;
  std::string error;
};

/// Runs to the end with `input` on standard input. `environment` holds NAME=VALUE besides PATH.
Outcome run_program(const std::vector<std::string>& arguments, const std::string& input = "",
                    const std::vector<std::string>& environment = {});

/// A program that runs in the background; killed when destroyed.
class Program {
 public:
  explicit Program(const std::vector<std::string>& arguments,
                   const std::vector<std::string>& environment = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// The next line of standard output; empty after `time`.
  std::string read_line(std::chrono::milliseconds time = std::chrono::seconds(30));
  void signal(int number) const;
  /// Its exit code, or -1 if it still runs after `time`.
  int wait(std::chrono::milliseconds time = std::chrono::seconds(30));

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string buffer_;
};

}  // namespace hadal::cli::testing
