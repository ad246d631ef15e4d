// InjectedFaults: faults that strike the hosts of a training run: sampled at random (light) or planned by a file
// (fault_plan.h). The whole nodes of a cluster and the peers of a model in stages suffer the same ones.
//
// Thread: one owner. Randomness: a generator of its own, so that the faults of a seed do not depend on the run.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/base/prng.h"
#include "runtime/sim/cluster/fault_plan.h"
#include "runtime/sim/world/protocol_world.h"

namespace rumor::sim {

class InjectedFaults {
 public:
  // Questions to the run, and the one thing that it does itself.
  struct Run {
    std::function<bool()> is_over;                             // no fault strikes any more
    std::function<bool()> is_ending;                           // no light fault does: the run must be able to end
    std::function<bool(HostId, bool keeps_disk)> may_die;      // what was learned has another home
    std::function<void(HostId, bool keeps_disk)> starts_again;  // a host that was killed
  };
  // Hosts 0 to `nodes` - 1 are struck. Refers to `world`.
  InjectedFaults(ProtocolWorld& world, std::size_t nodes, std::uint64_t seed, Run run);

  // `plan` must outlive this object.
  void schedule(bool light, const std::vector<PlannedFault>& plan);

  // Breaks every link between hosts of different groups and keeps them apart until heal().
  void partition(const std::vector<std::uint8_t>& group_of_host);
  void heal() { group_.clear(); }
  // Whether the network is parted between the two. Ask it when one dials the other.
  bool parts(HostId from, HostId to) const { return !group_.empty() && group_[from] != group_[to]; }
  void reset_link_of(HostId i);

  std::uint64_t partitions() const { return partitions_; }
  std::uint64_t link_resets() const { return link_resets_; }
  std::uint64_t restarts() const { return restarts_; }

 private:
  void strike_lightly();
  void strike(const PlannedFault& fault);
  void kill_for(HostId victim, Duration away, bool keeps_disk);
  void cut_for(const std::vector<std::uint8_t>& group, Duration apart);
  bool up(HostId i) const { return world_.host(i).up(); }

  ProtocolWorld& world_;
  std::size_t nodes_;
  Prng faults_;
  Run run_;
  std::vector<std::uint8_t> group_;  // of each host, while the network is parted; empty: it is not
  std::uint64_t partitions_ = 0, link_resets_ = 0, restarts_ = 0;
};

}  // namespace rumor::sim
