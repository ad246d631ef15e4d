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
#include "runtime/run_config.h"

namespace rumor::daemon {

struct PeerOptions {
  RunConfig config;  // listen, seeds, advertise and status are taken from its [network]
  models::Shard shard;
  std::optional<std::string> state;    // directory; none: nothing is kept
  std::optional<std::string> capture;  // file that own updates are written to
  std::optional<std::uint64_t> until_samples;
  std::optional<double> until_seconds;
  Duration checkpoint_every{10s};
  unsigned threads = 0;  // for passes over all weights; 0: by the size of the model. At least optimizer.hogwild
  bool quiet = false;    // no progress lines
};

struct PeerEnd {
  int exit_status = 0;
  std::string status_json;  // the last /status
};

// Runs a peer until it is done, stopped, or fails. What it has to say goes to stderr.
// Errors: what kept it from starting (port in use, damaged data, another run's state).
Result<PeerEnd> run_peer(const PeerOptions& options);

}  // namespace rumor::daemon
