// PeerView: everything by which a running peer can be watched, except its console: the status address, the curves of
// its page, the journal of events, TensorBoard's file, the cause that limits training, and messages to the service
// manager. The event loop calls it.
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

  // Opens what network.status, status_token, events and tensorboard name. Errors: as StatusServer::start,
  // read_status_token, RotatingFile::open and TensorBoardLog::open.
  Result<void> open(const RunConfig& config);
  // The address of the status server; empty: there is none.
  std::string address() const { return server_ ? server_->address() : ""; }

  // Tells the runner of a program of each event (EventJournal::listen).
  void listen(std::function<void(const std::string&)> listener) { journal_.listen(std::move(listener)); }
  void progressed(const std::string& text);
  // Journals a line of the console.
  void said(gossip::Note::Level level, const std::string& text);
  // Adds the time that a step or an evaluation took.
  void computed(double seconds) { bottleneck_.computed(seconds); }
  // Completes `status` (limit, uptime) and publishes it. Call some times a second, with `seconds` since the start.
  // `updates` makes a capture of the newest own updates; it is called on another thread, when a client asks.
  void look(double seconds, NodeStatus& status, std::function<std::string()> updates);
  // Stops serving: the process is about to end.
  void close(bool process_ends = true);

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
