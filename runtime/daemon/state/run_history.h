// RunHistory: the curves of a peer since it started, for the page: every figure that has a column (runtime/base/
// figures.h).
//
// A point every `spacing` seconds, one at first. When there are 512 points, every second one is dropped and the spacing
// doubles. So the curves always reach back to the start, in 256 to 512 points.
//
// Thread: one owner. Memory: 8 bytes a column and point, 40 KiB at most with nine columns.
#pragma once

#include <string>
#include <vector>

#include "runtime/node/node_status.h"

namespace rumor::daemon {

class RunHistory {
 public:
  // Keeps a point when one is due. `seconds` since the start, never less than before.
  void observe(double seconds, const NodeStatus& status);

  // Columns of equal length, oldest first: {"spacing_s", "seconds", "samples", "loss", "train_loss", "accuracy",
  // "sent_bytes", "received_bytes", "dense_bytes", "live_peers"}; null where nothing was measured yet.
  const std::string& json();

  std::size_t size() const { return seconds_.size(); }

 private:
  struct Column {
    std::string name;
    bool whole = false;  // counts, without a fraction
    std::vector<double> points;  // not a number: not measured
  };
  double spacing_ = 1, next_ = 0;
  std::vector<double> seconds_;
  std::vector<Column> columns_;
  std::string json_;  // empty when it must be made anew
};

}  // namespace rumor::daemon
