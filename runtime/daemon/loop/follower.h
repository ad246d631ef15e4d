// Follower: the driver's part of a peer that follows its run. It copies the weights when an export is due, and has the
// storage thread write them.
//
// Copies are made between two turns of the node, so each is a replica with one set of updates, which its digest names.
//
// Thread: the protocol thread. Memory: a copy of the weights as floats while an export is written; with
// ExportPlan::best another one while an evaluation is under way.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/daemon/console/console.h"
#include "runtime/daemon/export/folder_exports.h"
#include "runtime/daemon/loop/event_loop.h"
#include "runtime/daemon/loop/worker.h"
#include "runtime/node/node.h"

namespace rumor::daemon {

class Follower {
 public:
  // All outlive it. Errors: those of FolderExports::open.
  static Result<std::unique_ptr<Follower>> open(const Following& following, FolderExports::Description description,
                                                Worker& storage, Console& console);

  // Makes a node a follower: it observes, has one link, and tells nobody an address.
  static void adapt(const Following& following, NodeOptions& node);

  // Exports what is due. Call some times a second, and once when the node has ended (`leaving`).
  void look(Node& node, TimePoint now, bool leaving);
  // An evaluation of the weights of this moment begins; it ended with this loss.
  void evaluating(const Node& node, TimePoint now);
  void evaluated(double loss, TimePoint now);

  // Following::once has been served, or cannot be: the peer ends now.
  bool done() const { return done_; }
  // A peer without weights, or whose last export was not written, has not ended well.
  void judge(PeerEnd& end) const;
  ExportStatus status(TimePoint now) const { return exports_ ? exports_->status(now) : ExportStatus{}; }

 private:
  Follower(const Following& following, Worker& storage, Console& console)
      : following_(following), storage_(storage), console_(console) {}
  void hand_over(const Node& node, TimePoint now);
  void write(ExportedWeights weights, TimePoint now);

  const Following& following_;
  Worker& storage_;
  Console& console_;
  std::optional<FolderExports> exports_;
  std::optional<ExportedWeights> evaluated_;  // weights that are being evaluated
  bool done_ = false;
  std::string trouble_;  // why there are no weights, or why the last export was not written; empty: all is well
};

}  // namespace rumor::daemon
