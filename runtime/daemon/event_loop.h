// EventLoop: the thin real driver of one node. Sockets, timers, threads and files on one side, runtime/node.h
// on the other; no decision of the protocol is taken here.
//
// Threads: the caller of run() is the protocol thread; one worker computes, one writes files, the status
// server has its own. Signals: the first SIGINT or SIGTERM ends the run cleanly (checkpoint, goodbye), a
// second one at once.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gossip/asio/identity.h"
#include "models/dataset.h"
#include "runtime/base/result.h"
#include "runtime/base/time.h"
#include "runtime/daemon/handover.h"
#include "runtime/run_config.h"

namespace rumor::daemon {

struct PeerOptions {
  RunConfig config;  // listen, seeds, advertise, status and its token are taken from its [network]
  models::Shard shard;
  std::optional<std::string> state;    // directory; none: nothing is kept
  std::optional<std::string> capture;  // file that own updates are written to
  std::optional<std::uint64_t> until_samples;
  std::optional<double> until_seconds;
  Duration checkpoint_every{10s};
  unsigned threads = 0;  // for passes over all weights; 0: by the size of the model. At least optimizer.hogwild
  bool quiet = false;    // no progress lines
};

// A training loop of another program that trains in place of the built-in models, on its own thread.
struct Guest {
  // The node has it while run_peer() runs; it is back when that returns, and its view shows the last weights.
  std::unique_ptr<Trainer> trainer;
  std::shared_ptr<const models::StartWeights> start;  // null: from the run's seed
  Handover handover;                                  // disconnected when run_peer() returns
};

struct PeerEnd {
  int exit_status = 0;
  std::string status_json;  // the last /status
};

// Runs a peer until it is done, stopped, or fails. What it has to say goes to stderr.
// Errors: what kept it from starting (port in use, damaged data, another run's state).
// With a guest no data set is loaded, and signals are left to the program whose guest it is.
Result<PeerEnd> run_peer(const PeerOptions& options, Guest* guest = nullptr);

}  // namespace rumor::daemon
