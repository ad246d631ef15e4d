// Reachability: where others are told to dial this peer: what the run file says (network.advertise), else where it
// listens, and a port of the router's where network.map_port asks for one.
//
// Thread: the protocol thread.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gossip/contract/events.h"
#include "runtime/daemon/ports/port_mapper.h"
#include "runtime/run/run_config.h"

namespace rumor::daemon {

class Reachability {
 public:
  // A line for people; `moved`: addresses() has changed.
  using Told = std::function<void(gossip::Note::Level level, const std::string& text, bool moved)>;

  // Once it listens at `bound` (HOST:PORT): what addresses() begins with.
  void open(const RunConfig& config, const std::string& bound);
  // Asks the router, where the run file says so. `told` is called on the loop, from within begin() too; what was on its
  // way at stop() may still come.
  void begin(asio::io_context& loop, Told told);
  // Takes back what the router has opened; returns at once.
  void stop();

  std::vector<std::string> addresses() const;
  // Where others reach it by the router, or why not; empty: no router is asked.
  const std::string& text() const { return text_; }

 private:
  std::vector<std::string> own_;
  std::string outside_, text_;
  std::optional<Result<PortRequest>> request_;  // what to ask the router, or why nothing
  std::optional<PortMapper> mapper_;
};

}  // namespace rumor::daemon
