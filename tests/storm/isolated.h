// isolated(): a piece of work in a process of its own, so that a failed RUMOR_CHECK, a crash or an endless
// loop is a result like any other.
//
// Thread: single-threaded programs only (it forks). Nothing that the work changes in memory comes back, only
// its text.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

namespace rumor::test {

struct Outcome {
  bool ended = false;  // by itself, with its text; else killed by `signal`
  int signal = 0;
  std::string text;
};

// Runs `work` in up to `at_once` processes at a time; start() waits for a free place. `done` is called in the
// order in which they end.
class Workers {
 public:
  using Done = std::function<void(std::uint64_t name, const Outcome&)>;
  Workers(std::size_t at_once, unsigned seconds_max, Done done)
      : at_once_(at_once), seconds_max_(seconds_max), done_(std::move(done)) {}

  void start(std::uint64_t name, const std::function<std::string()>& work) {
    if (running_.size() >= at_once_) wait_for_one();
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      if (std::freopen("/dev/null", "w", stderr) == nullptr) std::_Exit(3);
      alarm(seconds_max_);
      const std::string text = work();
      const char* from = text.data();
      std::size_t left = text.size();
      while (left > 0) {
        const ssize_t wrote = write(ends[1], from, left);
        if (wrote <= 0) std::_Exit(3);
        from += wrote;
        left -= static_cast<std::size_t>(wrote);
      }
      std::_Exit(0);
    }
    close(ends[1]);
    running_[child] = {name, ends[0]};
  }
  void finish() {
    while (!running_.empty()) wait_for_one();
  }

 private:
  struct Running {
    std::uint64_t name;
    int from;
  };
  void wait_for_one() {
    int status = 0;
    const pid_t child = wait(&status);
    const auto at = running_.find(child);
    if (at == running_.end()) std::abort();
    Outcome outcome;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(at->second.from, buffer, sizeof buffer)) > 0;)
      outcome.text.append(buffer, static_cast<std::size_t>(got));
    close(at->second.from);
    outcome.ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const std::uint64_t name = at->second.name;
    running_.erase(at);
    done_(name, outcome);
  }

  std::size_t at_once_;
  unsigned seconds_max_;
  Done done_;
  std::map<pid_t, Running> running_;
};

}  // namespace rumor::test
