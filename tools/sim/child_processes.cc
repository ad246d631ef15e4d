#include "tools/sim/child_processes.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "runtime/base/text.h"

namespace rumor::tools {

namespace {

// In the child, after fork: only calls that are safe there.
[[noreturn]] void become(const std::vector<char*>& arguments, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // the parent died before prctl
  setpgid(0, 0);                      // Ctrl-C reaches the parent alone, which ends us politely
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv("/proc/self/exe", arguments.data());
  _exit(127);
}

}  // namespace

Result<std::size_t> ChildProcesses::start(const std::vector<std::string>& arguments, const std::string& log) {
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return Error{Errc::io, str("cannot write ", log, ": ", std::strerror(errno))};
  std::vector<char*> pointers;
  static char program[] = "rumor";
  pointers.push_back(program);
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) become(pointers, file, parent);
  close(file);
  if (pid < 0) return Error{Errc::io, str("cannot start a process: ", std::strerror(errno))};
  children_.push_back({pid, std::nullopt});
  return children_.size() - 1;
}

std::optional<int> ChildProcesses::status(std::size_t child) {
  Child& c = children_[child];
  if (c.status) return c.status;
  int raw = 0;
  if (waitpid(c.pid, &raw, WNOHANG) != c.pid) return std::nullopt;
  c.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  return c.status;
}

bool ChildProcesses::all_ended() {
  bool ended = true;
  for (std::size_t i = 0; i < children_.size(); ++i) ended = status(i).has_value() && ended;
  return ended;
}

void ChildProcesses::end_all() {
  for (std::size_t i = 0; i < children_.size(); ++i)
    if (!status(i)) kill(children_[i].pid, SIGTERM);
  for (int wait = 0; wait < 100 && !all_ended(); ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (status(i)) continue;
    kill(children_[i].pid, SIGKILL);
    waitpid(children_[i].pid, nullptr, 0);
    children_[i].status = 128 + SIGKILL;
  }
}

}  // namespace rumor::tools
