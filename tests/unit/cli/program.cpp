#include "program.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hadal::cli::testing {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

pid_t spawn(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
            posix_spawn_file_actions_t* actions) {
  std::vector<std::string> command{HADAL_BINARY};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables{"PATH=/usr/bin:/bin", "HOME=/nonexistent"};
  variables.insert(variables.end(), environment.begin(), environment.end());
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, HADAL_BINARY, actions, nullptr, pointers(command).data(), pointers(variables).data());
  EXPECT_EQ(error, 0) << HADAL_BINARY;
  return pid;
}

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// A file of its own that is gone with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content = "") {
    path_ = ::testing::TempDir() + "hadal_cli_XXXXXX";
    const int file = ::mkstemp(path_.data());
    EXPECT_EQ(::write(file, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    ::close(file);
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

}  // namespace

Outcome run_program(const std::vector<std::string>& arguments, const std::string& input,
                    const std::vector<std::string>& environment) {
  const TemporaryFile in(input);
  const TemporaryFile out;
  const TemporaryFile error;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, in.path().c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.path().c_str(), O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, error.path().c_str(), O_WRONLY, 0);
  const pid_t pid = spawn(arguments, environment, &actions);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return {exit_code(status), out.content(), error.content()};
}

Program::Program(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_ = spawn(arguments, environment, &actions);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  out_ = ends[0];
}

Program::~Program() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(out_);
}

std::string Program::read_line(std::chrono::milliseconds time) {
  const auto deadline = Clock::now() + time;
  while (true) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiting{out_, POLLIN, 0};
    char bytes[4096];
    if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) <= 0) {
      return "";
    }
    const ssize_t got = ::read(out_, bytes, sizeof(bytes));
    if (got <= 0) {
      return "";
    }
    buffer_.append(bytes, static_cast<size_t>(got));
  }
}

void Program::signal(int number) const {
  ::kill(pid_, number);
}

int Program::wait(std::chrono::milliseconds time) {
  const auto deadline = Clock::now() + time;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) {
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  pid_ = -1;
  return exit_code(status);
}

}  // namespace hadal::cli::testing
