// PeerView: all that a running peer shows of itself beside its console: the status address, the curves behind its
// page, the journal of events, the sentence about what limits training, words to the service manager. The event loop
// brings it what happens.
//
// Thread: the protocol thread. Cost: some tens of microseconds four times a second, without a status address next to
// nothing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gossip/contract/events.h"
#include "runtime/daemon/state/event_journal.h"
#include "runtime/daemon/state/run_history.h"
#include "runtime/daemon/state/tensorboard.h"
#include "runtime/daemon/status/bottleneck.h"
#include "runtime/daemon/status/status_server.h"
#include "runtime/run/run_config.h"

namespace rumor::daemon {

class PeerView {
 public:
  // `own_process`: the peer is all that the process does, so a service manager may be told of it.
  PeerView(double period_ms, bool own_process) : bottleneck_(period_ms), own_process_(own_process) {}

  // As network.status, status_token, events and tensorboard say. Errors: as StatusServer::start, read_status_token,
  // RotatingFile::open and TensorBoardLog::open.
  Result<void> open(const RunConfig& config);
  // Of the status server; empty: none.
  std::string address() const { return server_ ? server_->address() : ""; }

  // A line of the console.
  void said(gossip::Note::Level level, const std::string& text);
  // A step or an evaluation took so long.
  void computed(double seconds) { bottleneck_.computed(seconds); }
  // What the peer is like now: completes `status` (limit, uptime) and shows it. Some times a second; `seconds` since
  // the start. `updates` makes a capture of the newest own updates; called on another thread, when somebody asks.
  void look(double seconds, NodeStatus& status, std::function<std::string()> updates);
  // Stops serving; the process is about to end.
  void close();

 private:
  void tell_service(double seconds, const NodeStatus& status);

  Bottleneck bottleneck_;
  bool own_process_;
  double tell_service_at_ = 0;
  RunHistory history_;
  EventJournal journal_;
  std::optional<TensorBoardLog> tensorboard_;
  std::unique_ptr<StatusServer> server_;
};

}  // namespace rumor::daemon
