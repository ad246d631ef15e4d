// RunHistory: the curves of a peer since it started, for who looks at its page later.
//
// A point every `spacing` seconds, one at first. When there are 512, every second is let go and the spacing doubles:
// so the whole life is there at all times, in 256 to 512 points.
//
// Thread: one owner. Memory: 64 bytes a point, 32 KiB at most.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/node/node_status.h"

namespace rumor::daemon {

class RunHistory {
 public:
  // Keeps a point when it is time for one. `seconds` since the start, never less than before.
  void observe(double seconds, const NodeStatus& status);

  // Columns of equal length, oldest first: {"spacing_s", "seconds", "samples", "loss", "train_loss", "accuracy",
  // "sent_bytes", "received_bytes", "dense_bytes", "live_peers"}; null where nothing was measured yet.
  const std::string& json();

  std::size_t size() const { return points_.size(); }

 private:
  struct Point {
    double seconds = 0;
    std::uint64_t samples = 0, sent = 0, received = 0, dense = 0, live = 0;
    double train_loss = 0;
    std::optional<float> loss, accuracy;
  };
  double spacing_ = 1, next_ = 0;
  std::vector<Point> points_;
  std::string json_;  // empty when it must be made anew
};

}  // namespace rumor::daemon
