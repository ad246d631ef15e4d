// Reachability: the addresses at which this peer asks others to dial it: those of the run file (network.advertise),
// else its listening address, and a port of the router if network.map_port asks for one.
//
// Thread: the protocol thread.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gossip/contract/events.h"
#include "runtime/base/time.h"
#include "runtime/daemon/ports/port_mapper.h"
#include "runtime/run/run_config.h"

namespace rumor::daemon {

class Reachability {
 public:
  // A line for people; `moved`: addresses() has changed.
  using Told = std::function<void(gossip::Note::Level level, const std::string& text, bool moved)>;

  // Call once it listens at `bound` (HOST:PORT); sets the first addresses().
  void open(const RunConfig& config, const std::string& bound);
  // Asks the router if the run file says so. `told` is called on the loop, also from within begin(). A report in
  // progress at stop() may still arrive.
  void begin(asio::io_context& loop, Told told);
  // Closes the ports that the router has opened; returns at once.
  void stop();

  // Whether neighbours, who must be there, are to be asked to try whether they can dial us: at first, and when
  // addresses() has changed; then not before those asked last would dial again (PROTOCOL.md 5.11). Counts as asked.
  bool asks_now(TimePoint now);
  void has_moved(TimePoint now) { next_dial_back_ = now + dial_back_moved; }

  std::vector<std::string> addresses() const;
  // Where others reach it by the router, or why not; empty: no router is asked.
  const std::string& text() const { return text_; }

 private:
  static constexpr Duration dial_back_first = 5s, dial_back_moved = 70s, dial_back_interval = 10min;

  TimePoint next_dial_back_{dial_back_first};
  std::vector<std::string> own_;
  std::string outside_, text_;
  std::optional<Result<PortRequest>> request_;  // the request to the router, or why there is none
  std::optional<PortMapper> mapper_;
};

}  // namespace rumor::daemon
