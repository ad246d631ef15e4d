// Protocol: the answers to the node's questions.
#include <algorithm>
#include <set>

#include "gossip/links/link_payload.h"
#include "gossip/protocol_impl.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

BacklogMarks Protocol::backlog_marks() const { return impl_->exchange->backlog_marks(); }

bool Protocol::ready_to_train() const { return impl_->exchange->ready(); }

std::string Protocol::waiting_for() const {
  if (impl_->core.admitted_count() > 0 || impl_->core.store.lacks_weights()) return impl_->exchange->waiting_for();
  const Overlay& overlay = impl_->overlay;
  const auto& links = impl_->core.links;
  if (std::any_of(links.begin(), links.end(), [](const auto& one) { return one.second.has_member(); }))
    return ready_to_train() ? "" : "looks for other peers of this stage";
  const std::string tried = overlay.tried_text();
  const std::string alone = impl_->core.options.observes ? "" : "; training alone";
  if (!overlay.has_contacts() && overlay.met_own_run()) return "every link is lost" + alone;
  if (!overlay.has_contacts()) return "no seed is given and no peer has come yet" + alone;
  if (!ready_to_train()) return str("waiting for a first answer from ", tried);
  return str(overlay.met_own_run() ? "every link is lost" : "no peer has answered yet", " (tried ", tried,
             ")", alone);
}

std::string Protocol::refused_by_run() const { return impl_->overlay.refused_by_run(); }
std::string Protocol::divergence() const { return impl_->core.divergence; }
std::string Protocol::superseded() const { return impl_->core.superseded; }
std::string Protocol::identity_trouble() const { return impl_->overlay.duplicate_identities().trouble(); }
const Bytes& Protocol::own_admit() const { return impl_->core.members.self().admit; }

bool Protocol::may_publish(TimePoint now) const {
  return impl_->core.admitted_count() == 0 || impl_->exchange->may_publish(now);
}

TimePoint Protocol::publishes_from() const {
  return impl_->core.admitted_count() == 0 ? long_ago : impl_->exchange->publishes_from();
}

double Protocol::density_factor() const {
  return impl_->core.admitted_count() == 0 ? 1 : impl_->exchange->density_factor();
}

std::optional<StageLinkInfo> Protocol::stage_link(LinkId link) const {
  const auto at = impl_->core.links.find(link);
  if (at == impl_->core.links.end() || at->second.state != Link::State::beside) return std::nullopt;
  return StageLinkInfo{at->second.node, at->second.backlogged, at->second.round_trip};
}

std::size_t Protocol::links_to_stage(std::uint32_t stage) const {
  const auto& links = impl_->core.links;
  return static_cast<std::size_t>(std::count_if(links.begin(), links.end(), [&](const auto& entry) {
    return entry.second.state == Link::State::beside && entry.second.stage == stage;
  }));
}

NodeBuffers Protocol::node_buffers() const { return impl_->exchange->node_buffers(); }

std::uint64_t Protocol::buffers_hash() const { return impl_->core.buffers_hash; }

bool Protocol::converged() const {
  const ReplicaDigest ours = impl_->core.store.digest();
  return std::all_of(impl_->core.links.begin(), impl_->core.links.end(), [&](const auto& entry) {
    const Link& link = entry.second;
    return !link.admitted() ||
           (link.digest && link.digest->finished && impl_->exchange->has_converged(link, ours));
  });
}

std::vector<PeerInfo> Protocol::peers() const {
  const ReplicaDigest ours = impl_->core.store.digest();
  std::vector<PeerInfo> peers;
  for (const auto& [id, link] : impl_->core.links) {
    if (!link.admitted()) continue;
    PeerInfo peer{link.node, link.address,    link.dialled_by_us,  0,              false, false,
                  false,     link.sent_bytes, link.received_bytes, link.round_trip};
    peer.coding = coding_for(impl_->core, link, 0);
    peer.age = impl_->core.now - link.up_at;
    if (link.digest) {
      peer.updates = link.digest->replica.updates;
      peer.digest_known = true;
      peer.digest_equal = link.digest->replica == impl_->exchange->expected_digest(link, ours);
      peer.finished = link.digest->finished;
    }
    peers.push_back(std::move(peer));
  }
  return peers;
}

std::vector<KnownAddress> Protocol::known_addresses() const {
  std::vector<KnownAddress> known;
  for (const auto& [node, member] : impl_->core.members.all()) {
    if (node == impl_->core.options.self) continue;
    for (const std::string& address : member.record.addresses) known.push_back({node, address});
  }
  return known;
}

std::vector<StageMember> Protocol::stage_members() const {
  std::set<NodeId> linked;
  impl_->core.each_member_link([&](const Link& link) { linked.insert(link.node); });
  std::vector<StageMember> members;
  for (const auto& [node, member] : impl_->core.members.all()) {
    if (node == impl_->core.options.self || member.left) continue;
    const PeerRecord& record = member.record;
    members.push_back({node, record.stage, record.addresses, linked.contains(node), member.heard_at});
  }
  return members;
}

std::size_t Protocol::members() const { return impl_->core.members_of_run(); }

std::vector<NodeId> Protocol::nodes() const {
  std::vector<NodeId> nodes;
  for (const auto& [node, member] : impl_->core.members.all())
    if (impl_->core.is_of_run(member.record)) nodes.push_back(node);
  return nodes;
}

std::size_t Protocol::members_here() const {
  const auto& all = impl_->core.members.all();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [this](const auto& member) {
        return !member.second.left && impl_->core.is_of_run(member.second.record);
      }));
}

std::vector<NodeId> Protocol::lost() const {
  std::vector<NodeId> nodes;
  for (const auto& [node, member] : impl_->core.members.all())
    if (member.lost && impl_->core.is_of_run(member.record)) nodes.push_back(node);
  return nodes;
}

const Counters& Protocol::counters() const { return impl_->core.counters; }

const Reach& Protocol::reach() const { return impl_->overlay.reach(); }

void Protocol::check_invariants() const {
  impl_->overlay.check_invariants();
  impl_->exchange->check_invariants();
  for (const auto& [id, link] : impl_->core.links)
    RUMOR_CHECK(link.detached == (link.state == Link::State::closing));
}

}  // namespace rumor::gossip
