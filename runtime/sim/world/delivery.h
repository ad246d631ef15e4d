// Delivery: how long updates take to reach every node, over how many hops, and whether any arrives twice or never.
//
// Thread: one owner. Memory: O(updates * nodes) bytes.
#pragma once

#include <map>
#include <vector>

#include "runtime/base/time.h"
#include "runtime/base/types.h"
#include "runtime/sim/record/sim_result.h"

namespace rumor::sim {

class Delivery {
 public:
  explicit Delivery(std::size_t nodes) : nodes_(nodes) {}

  void published(const UpdateKey& key, std::size_t by, TimePoint now);
  // `node` applied it, from a frame of `from`. Updates that came inside a snapshot are not reported here.
  void applied(const UpdateKey& key, std::size_t node, std::size_t from, TimePoint now);
  // A process that restarts empty may apply everything again, rightly.
  void restarted(std::size_t node);

  std::uint64_t updates() const { return updates_.size(); }
  // The number of updates that `holds` (const UpdateKey& -> bool) denies and that never reached another node.
  template <class Holds>
  std::uint64_t undelivered(Holds holds) const {
    std::uint64_t count = 0;
    for (const auto& [key, update] : updates_) count += !update.delivered && !holds(key) ? 1 : 0;
    return count;
  }

  // Fills delivery_*, hops_*, doubled.
  void summarize(SimResult& result) const;

 private:
  static constexpr std::uint8_t unseen = 0xff;
  struct Update {
    TimePoint at;
    TimePoint last;
    std::vector<std::uint8_t> hops;  // by node; unseen where it has not been applied
    bool delivered = false;          // to another node than its maker's, at some time
  };
  std::size_t nodes_;
  std::map<UpdateKey, Update> updates_;
  std::uint64_t doubled_ = 0;
  std::vector<float> delays_;  // seconds, one per delivery
  std::uint64_t hops_sum_ = 0, hops_max_ = 0;
};

}  // namespace rumor::sim
