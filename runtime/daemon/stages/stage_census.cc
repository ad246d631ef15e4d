#include "runtime/daemon/stages/stage_census.h"

#include <algorithm>
#include <utility>

namespace rumor::daemon {

void StageCensus::look(std::vector<gossip::StageMember> members, Done done) {
  done_ = std::move(done);
  stages_.clear();
  live_.clear();
  dials_ = 0;
  transport_.emplace(io_, net::Identity::ephemeral(), static_cast<net::TransportEvents&>(*this));
  std::stable_sort(members.begin(), members.end(),
                   [](const auto& a, const auto& b) { return a.heard_at > b.heard_at; });
  std::map<std::uint32_t, std::size_t> dialled;
  for (const gossip::StageMember& member : members) {
    stages_[member.node] = member.stage;
    if (member.linked) live_.insert(member.node);
    if (member.linked || member.addresses.empty() || ++dialled[member.stage] > dialled_of_stage) continue;
    for (const std::string& address : member.addresses) {
      transport_->dial(address);
      ++dials_;
    }
  }
  wait(dials_ == 0 ? Duration{0} : patience);
}

void StageCensus::wait(Duration time) {
  timer_.expires_after(time);
  timer_.async_wait([this](const asio::error_code& error) {
    if (error || !done_) return;
    std::vector<StagePeer> live;
    for (const NodeId& node : live_) live.push_back({node, stages_.at(node)});
    const Done done = std::exchange(done_, nullptr);
    transport_.reset();
    done(std::move(live));
  });
}

void StageCensus::stop() {
  done_ = nullptr;
  timer_.cancel();
  transport_.reset();
}

void StageCensus::on_link_up(const gossip::LinkUp& up) {
  if (stages_.contains(up.peer)) live_.insert(up.peer);
  transport_->close(up.link, "it lives, which we wanted to know");
  answered();
}

// The transport may not end within its own event, so the timer does that.
void StageCensus::answered() {
  if (--dials_ == 0 && done_) wait(Duration{0});
}

}  // namespace rumor::daemon
