// ChildProcesses: real `rumor peer` processes on this machine, started, watched and ended together.
//
// Whatever happens, no child outlives this object or this process: children are ended in the destructor, and
// the kernel ends them should we be killed (PR_SET_PDEATHSIG).
//
// Thread: one owner.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace rumor::tools {

class ChildProcesses {
 public:
  ChildProcesses() = default;
  ~ChildProcesses() { end_all(); }
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  // Starts this very program with `arguments`; its output goes to `log`. Errors: Errc::io.
  Result<std::size_t> start(const std::vector<std::string>& arguments, const std::string& log);
  // Exit status (128 + signal when killed), or nothing while it runs.
  std::optional<int> status(std::size_t child);
  bool all_ended();
  // SIGTERM to those that run, five seconds to say goodbye, then SIGKILL.
  void end_all();

  std::size_t count() const { return children_.size(); }

 private:
  struct Child {
    pid_t pid = 0;
    std::optional<int> status;
  };
  std::vector<Child> children_;
};

}  // namespace rumor::tools
