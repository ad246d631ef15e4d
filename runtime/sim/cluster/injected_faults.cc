#include "runtime/sim/cluster/injected_faults.h"

#include <utility>

#include "runtime/base/check.h"

namespace rumor::sim {

namespace {
constexpr std::int64_t light_least_us = 200'000, light_most_us = 2'000'000;  // between faults; of an absence
constexpr std::uint64_t restarts_max = 1000;
}  // namespace

InjectedFaults::InjectedFaults(ProtocolWorld& world, std::size_t nodes, std::uint64_t seed, Run run)
    : world_(world), nodes_(nodes), faults_(Prng::named(seed, "faults")), run_(std::move(run)) {}

void InjectedFaults::partition(const std::vector<std::uint8_t>& group) {
  RUMOR_CHECK(group.size() == nodes_);
  group_ = group;
  Fabric& fabric = world_.fabric();
  const std::size_t connections = fabric.connections();
  for (ConnectionId c = 0; c < connections; ++c)
    if (group[fabric.host({c, 0})] != group[fabric.host({c, 1})]) world_.cut(c, "connection timed out");
}

void InjectedFaults::reset_link_of(HostId i) {
  const auto connection = world_.fabric().some_connection(i, faults_);
  if (!connection) return;
  world_.cut(*connection, "connection reset by peer");
  ++link_resets_;
}

void InjectedFaults::kill_for(HostId victim, Duration away, bool keeps_disk) {
  if (!up(victim) || restarts_ >= restarts_max || !run_.may_die(victim, keeps_disk)) return;
  world_.kill(victim, false);
  ++restarts_;
  world_.at(world_.now() + away, [this, victim, keeps_disk] { run_.starts_again(victim, keeps_disk); });
}

void InjectedFaults::cut_for(const std::vector<std::uint8_t>& group, Duration apart) {
  partition(group);
  world_.at(world_.now() + apart, [this, number = ++partitions_] {
    if (number == partitions_) heal();
  });
}

void InjectedFaults::schedule(bool light, const std::vector<PlannedFault>& plan) {
  if (light) world_.at(TimePoint{500ms}, [this] { strike_lightly(); });
  for (const PlannedFault& fault : plan)
    world_.at(TimePoint{fault.at}, [this, &fault] { strike(fault); });
}

void InjectedFaults::strike_lightly() {
  if (run_.is_over()) return;
  const auto victim = static_cast<HostId>(faults_.below(nodes_));
  if (!run_.is_ending()) {
    const bool kills = faults_.chance(1, 10) && nodes_ > 2;
    if (!kills || !up(victim)) {
      reset_link_of(victim);
    } else {
      kill_for(victim, Duration(faults_.between(light_least_us, light_most_us)), false);
    }
  }
  world_.at(world_.now() + Duration(faults_.between(light_least_us, light_most_us)),
            [this] { strike_lightly(); });
}

void InjectedFaults::strike(const PlannedFault& fault) {
  if (run_.is_over()) return;
  std::vector<std::uint8_t> group(nodes_, 0);
  for (const std::size_t node : fault.nodes) {
    group[node] = 1;
    const auto host = static_cast<HostId>(node);
    if (fault.kind == PlannedFault::Kind::kill) kill_for(host, fault.lasts, fault.keeps_disk);
    if (fault.kind == PlannedFault::Kind::reset) reset_link_of(host);
  }
  if (fault.kind == PlannedFault::Kind::partition) cut_for(group, fault.lasts);
  if (fault.every > Duration{0}) world_.at(world_.now() + fault.every, [this, &fault] { strike(fault); });
}

}  // namespace rumor::sim
