// StateShares: how many states each asker gets, so that a flood of wishes costs a peer little. An asker gets one at
// once, then `per_segment` for each segment of ours, and saves up four at most.
//
// Thread: one owner. Memory: 48 bytes an asker, askers_max of them; a further one takes the place of another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "runtime/base/types.h"

namespace rumor {

class StateShares {
 public:
  static constexpr std::size_t askers_max = 4096;
  static constexpr double saved_max = 4;

  explicit StateShares(double per_segment) : per_segment_(per_segment) {}

  // Whether this asker gets a state now, when we have begun so many segments; it has had it then.
  bool take(const NodeId& asker, std::uint64_t segments) {
    if (shares_.size() >= askers_max && !shares_.contains(asker)) shares_.erase(shares_.begin());
    Share& share = shares_.try_emplace(asker, Share{1, segments}).first->second;
    const double earned = per_segment_ * static_cast<double>(segments - share.segments);
    share = {std::min(saved_max, share.states + earned), segments};
    if (share.states < 1) return false;
    share.states -= 1;
    return true;
  }

  // Every asker gets one at once again, and loses what it has saved up.
  void begin_again() { shares_.clear(); }
  std::size_t askers() const { return shares_.size(); }

 private:
  struct Share {
    double states;
    std::uint64_t segments;  // of ours, when it was counted last
  };
  double per_segment_;
  std::map<NodeId, Share> shares_;
};

}  // namespace rumor
