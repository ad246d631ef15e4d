// Faults of a training run: sampled at random (light) or planned by a file (fault_plan.h).
#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/sim/cluster/cluster.h"

namespace rumor::sim {

Result<void> Cluster::revoke(std::size_t i, const gossip::Revocation& revocation) {
  const auto host = static_cast<HostId>(i);
  Result<void> done;
  world_.turn(host, host, [&](gossip::Outbox& out) { done = peer(i).revoke(revocation, now(), out); });
  return done;
}

void Cluster::send(std::size_t i, std::size_t to, const Bytes& frame) {
  const Fabric& fabric = world_.fabric();
  const std::size_t connections = fabric.connections();
  for (ConnectionId c = 0; c < connections; ++c)
    for (const int side : {0, 1})
      if (fabric.is_open({c, side}) && fabric.host({c, side}) == i && fabric.host({c, 1 - side}) == to)
        world_.stranger_sends({c, side}, frame);
}

namespace {
constexpr std::int64_t light_least_us = 200'000, light_most_us = 2'000'000;  // between faults; of an absence
}  // namespace

void Cluster::partition(const std::vector<std::uint8_t>& group) {
  RUMOR_CHECK(group.size() == options_.nodes);
  group_ = group;  // dials across are refused, see world_options()
  Fabric& fabric = world_.fabric();
  const std::size_t connections = fabric.connections();
  for (ConnectionId c = 0; c < connections; ++c)
    if (group[fabric.host({c, 0})] != group[fabric.host({c, 1})]) world_.cut(c, "connection timed out");
}

void Cluster::reset_link_of(std::size_t i) {
  const auto connection = world_.fabric().some_connection(static_cast<HostId>(i), faults_);
  if (!connection) return;
  world_.cut(*connection, "connection reset by peer");
  ++link_resets_;
}

// Never below two alive, so that what was learned has a home.
bool Cluster::kill_for(std::size_t victim, Duration away) {
  std::size_t alive = 0;
  for (std::size_t i = 0; i < options_.nodes; ++i) alive += up(i) ? 1 : 0;
  if (!up(victim) || alive <= 2 || restarts_ >= 1000) return false;
  kill(victim);
  ++restarts_;
  world_.at(now() + away, [this, victim] { restart(victim); });
  return true;
}

void Cluster::cut_for(const std::vector<std::uint8_t>& group, Duration apart) {
  partition(group);
  world_.at(now() + apart, [this, number = ++partitions_] {
    if (number == partitions_) heal();
  });
}

void Cluster::schedule_faults() {
  if (options_.light_faults) world_.at(TimePoint{500ms}, [this] { strike_lightly(); });
  for (const PlannedFault& fault : options_.planned_faults)
    world_.at(TimePoint{fault.at}, [this, &fault] { strike(fault); });
}

void Cluster::strike_lightly() {
  if (all_complete()) return;
  const std::size_t victim = faults_.below(options_.nodes);
  // Not in the closing tenth: the run must be able to end.
  const bool late = up(0) && node(0)->replica().samples() * 10 > config_.samples * 9;
  if (!late) {
    const bool kills = faults_.chance(1, 10) && options_.nodes > 2;
    if (!kills || !up(victim)) {
      reset_link_of(victim);
    } else {
      kill_for(victim, Duration(faults_.between(light_least_us, light_most_us)));
    }
  }
  world_.at(now() + Duration(faults_.between(light_least_us, light_most_us)), [this] { strike_lightly(); });
}

void Cluster::strike(const PlannedFault& fault) {
  if (all_complete()) return;
  std::vector<std::uint8_t> group(options_.nodes, 0);
  for (const std::size_t node : fault.nodes) {
    group[node] = 1;
    if (fault.kind == PlannedFault::Kind::kill) kill_for(node, fault.lasts);
    if (fault.kind == PlannedFault::Kind::reset) reset_link_of(node);
  }
  if (fault.kind == PlannedFault::Kind::partition) cut_for(group, fault.lasts);
  if (fault.every > Duration{0}) world_.at(now() + fault.every, [this, &fault] { strike(fault); });
}

}  // namespace rumor::sim
