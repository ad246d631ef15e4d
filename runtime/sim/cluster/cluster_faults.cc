// What goes wrong in a training cluster: drawn at random (light) or planned by a file (fault_plan.h).
#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/sim/cluster/cluster.h"

namespace rumor::sim {

void Cluster::kill(std::size_t i) {
  RUMOR_CHECK(nodes_[i].node != nullptr);
  trace(7, i, 0);
  record_->ended(i, *nodes_[i].node);
  nodes_[i].node.reset();
  nodes_[i].wake_at = never;
  for (std::size_t at = 0; at < links_.size(); ++at)
    for (int side : {0, 1})
      if (links_[at].end[side] == i && links_[at].open[side]) {
        links_[at].open[side] = false;
        queue_.push(now_ + network_.latency(i, links_[at].end[1 - side]),
                    LinkBreaks{at, 1 - side, "connection reset by peer"});
      }
}

void Cluster::restart(std::size_t i) {
  RUMOR_CHECK(nodes_[i].node == nullptr);
  trace(8, i, 0);
  record_->restarted(i);
  const auto started = start_node(i);
  RUMOR_CHECK(started.ok());  // it started once with the same options
}

void Cluster::partition(const std::vector<std::uint8_t>& group_of_node) {
  RUMOR_CHECK(group_of_node.size() == nodes_.size());
  group_ = group_of_node;
  for (std::size_t at = 0; at < links_.size(); ++at) {
    Link& link = links_[at];
    if (group_[link.end[0]] == group_[link.end[1]]) continue;
    for (int side : {0, 1})
      if (link.open[side]) queue_.push(now_ + Duration{1}, LinkBreaks{at, side, "connection timed out"});
  }
}

void Cluster::reset_link_of(std::size_t i) {
  std::vector<std::size_t> mine;
  for (std::size_t at = 0; at < links_.size(); ++at)
    if ((links_[at].end[0] == i || links_[at].end[1] == i) && links_[at].open[0] && links_[at].open[1])
      mine.push_back(at);
  if (mine.empty()) return;
  const std::size_t at = mine[faults_.below(mine.size())];
  for (int side : {0, 1}) queue_.push(now_ + Duration{1}, LinkBreaks{at, side, "connection reset by peer"});
  ++link_resets_;
}

// Never below two alive, so that what was learned has a home.
bool Cluster::kill_for(std::size_t victim, Duration away) {
  const auto alive =
      std::count_if(nodes_.begin(), nodes_.end(), [](const Slot& s) { return s.node != nullptr; });
  if (!nodes_[victim].node || alive <= 2 || restarts_ >= 1000) return false;
  kill(victim);
  ++restarts_;
  queue_.push(now_ + away, Restart{victim});
  return true;
}

void Cluster::cut_for(const std::vector<std::uint8_t>& group, Duration apart) {
  partition(group);
  queue_.push(now_ + apart, Heal{++partitions_});
}

void Cluster::on(Heal& e) {
  if (e.number == partitions_) heal();
}

void Cluster::on(Fault&) {
  if (all_complete()) return;
  const std::size_t victim = faults_.below(nodes_.size());
  // Not in the closing tenth: the run must be able to end.
  const bool late = nodes_[0].node && nodes_[0].node->replica().samples() * 10 > config_.samples * 9;
  if (!late) {
    const bool kills = faults_.chance(1, 10) && nodes_.size() > 2;
    if (!kills || !nodes_[victim].node) {
      reset_link_of(victim);
    } else {
      kill_for(victim, Duration(faults_.between(200'000, 2'000'000)));
    }
  }
  queue_.push(now_ + Duration(faults_.between(200'000, 2'000'000)), Fault{});
}

void Cluster::on(Planned& e) {
  if (all_complete()) return;
  const PlannedFault& fault = options_.planned_faults[e.number];
  std::vector<std::uint8_t> group(nodes_.size(), 0);
  for (const std::size_t node : fault.nodes) {
    group[node] = 1;
    if (fault.kind == PlannedFault::Kind::kill) kill_for(node, fault.lasts);
    if (fault.kind == PlannedFault::Kind::reset) reset_link_of(node);
  }
  if (fault.kind == PlannedFault::Kind::partition) cut_for(group, fault.lasts);
  if (fault.every > Duration{0}) queue_.push(now_ + fault.every, Planned{e.number});
}

void Cluster::on(Restart& e) {
  restart(e.node);
}

}  // namespace rumor::sim
