// Console: the messages of a running peer on stderr. On a terminal one line rewrites itself; elsewhere a plain line
// appears every few seconds.
//
// Thread: the protocol thread.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "runtime/node/node_status.h"

namespace rumor::daemon {

class Console {
 public:
  // Receives each line, except progress.
  using Listener = std::function<void(gossip::Note::Level, const std::string&)>;

  Console();
  void listen(Listener listener) { listener_ = std::move(listener); }
  // Prints nothing from now on. Lines go to the listener alone, progress to this one.
  void mute(Listener progress) { muted_ = std::move(progress); }
  // Several peers of a process share stderr: each line names its peer, and none rewrites itself.
  void begin_lines_with(std::string name) {
    name_ = std::move(name);
    terminal_ = false;
  }
  // `device`: as Training has it. `listening`: where others dial this peer; empty: they do not.
  void started(const NodeStatus& status, const std::string& device, const std::string& listening,
               const std::string& status_address, const std::string& state);
  void note(const gossip::Note& note);
  void line(const std::string& text) { tell(gossip::Note::Level::info, text); }
  void warning(const std::string& text) { note({gossip::Note::Level::warning, text}); }
  // Why updates are not kept on disk; empty: they are. Prints a change. Call it often.
  void log_trouble(const std::string& trouble);
  // Called often; prints when it is time.
  void progress(const NodeStatus& status, double seconds);
  void finished(const NodeStatus& status);

 private:
  void clear();
  void tell(gossip::Note::Level level, const std::string& text, const char* prefix = "");
  Listener listener_, muted_;
  std::string name_, log_trouble_;
  bool terminal_;
  bool line_open_ = false;
  double next_at_ = 0;
  double last_at_ = 0;
  std::uint64_t last_sent_ = 0, last_received_ = 0, last_samples_ = 0;
};

// "1.2 kB/s", "34 kB/s", "1.3 MB/s".
std::string rate_text(double bytes_per_second);

}  // namespace rumor::daemon
