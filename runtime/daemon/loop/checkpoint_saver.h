// CheckpointSaver: writes checkpoints on the storage thread, one at a time. A disk that is slower than checkpoints are
// made gets the newest, not all of them.
//
// Thread: the protocol thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gossip/links/figures.h"
#include "runtime/daemon/console/console.h"
#include "runtime/daemon/loop/worker.h"
#include "runtime/daemon/state/peer_files.h"
#include "runtime/node/node_events.h"

namespace rumor::daemon {

class CheckpointSaver {
 public:
  // All three outlive it, or at least the jobs of the worker.
  CheckpointSaver(const PeerFiles& files, Worker& storage, Console& console)
      : files_(files), storage_(storage), console_(console) {}

  // `known`: addresses of other peers, kept beside the checkpoint.
  void save(SaveCheckpoint checkpoint, const std::vector<gossip::KnownAddress>& known);
  // Writes the one that waits, although another may be under way: the process ends.
  void last() { write_waiting(); }
  // Why the last checkpoint was not written; empty: it was.
  const std::string& trouble() const { return trouble_; }

 private:
  struct Save {
    SaveCheckpoint checkpoint;
    std::string addresses;
  };
  void write_waiting();
  void written(const Result<void>& saved);

  const PeerFiles& files_;
  Worker& storage_;
  Console& console_;
  std::optional<Save> waiting_;
  int under_way_ = 0;  // two at most, at the end; else one
  std::string trouble_;
};

}  // namespace rumor::daemon
