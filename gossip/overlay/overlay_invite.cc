// The part of Overlay that makes others dial us: members that we cannot dial, and neighbours that test whether we can
// be dialled (PROTOCOL.md 5.10, 5.11).
#include <algorithm>
#include <span>

#include "gossip/overlay/overlay.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

// A member that we cannot dial may be able to dial us: neighbours of both pass the invitation on.
void Overlay::invite(const NodeId& member) {
  if (core_.now - invited_at_ < invite_interval || core_.members.self().addresses.empty()) return;
  const std::uint32_t stage = core_.other_stage(member);
  if (!(stage != 0 ? wants_stage(stage) : wants_links()) || occupied(member) || unwelcome(member)) return;
  invited_at_ = core_.now;
  core_.each_member_link([&](Link& link) { core_.send(link, encode(Invite{member, core_.options.self})); });
}

void Overlay::on_invite(Link& link, const Invite& invite) {
  const bool own_word = invite.from == link.node;
  if (invite.to == core_.options.self) return own_word ? dial_back(link) : dial_inviter(invite.from);
  if (!own_word || core_.now - own(link).invite_passed_at < invite_pass_interval) return;
  Link* next = nullptr;
  core_.each_member_link([&](Link& other) {
    if (next == nullptr && other.node == invite.to) next = &other;
  });
  if (next == nullptr) return;
  own(link).invite_passed_at = core_.now;
  core_.send(*next, encode(invite));
}

// Whether an invitation of this node may make us dial this address.
bool Overlay::follows_invitation(const Address& entry, const NodeId& node) const {
  return entry.node == node && !entry.dialling && !entry.ours && core_.now - entry.invited_at >= invited_interval;
}

// Dials the address that has failed least, however long it should still wait.
void Overlay::dial_inviter(const NodeId& node) {
  if (core_.other_stage(node) == 0 && !full_mesh() && links_coming() >= core_.options.links.high) return;
  std::pair<const std::string, Address>* best = nullptr;
  for (auto& place : book_.all())
    if (follows_invitation(place.second, node) && (best == nullptr || place.second.failures < best->second.failures))
      best = &place;
  if (best == nullptr) return;
  auto& [address, entry] = *best;
  entry.next_try = core_.now;
  if (!may_dial(entry)) return;
  entry.invited_at = core_.now;
  core_.note(Note::Level::info,
             str("dialling ", node.brief(), " at ", address, ", which cannot dial us and asks for it"));
  dial(address, entry);
}

// A neighbour asks whether it can be dialled at its addresses. It sees our connections, which end at once.
void Overlay::dial_back(const Link& link) {
  for (auto& [address, entry] : book_.all()) {
    if (!follows_invitation(entry, link.node)) continue;
    entry.invited_at = core_.now;
    dial(address, entry, Purpose::dial_back);
  }
}

void Overlay::ask_to_be_dialled() {
  std::vector<Link*> links;
  core_.each_member_link([&](Link& link) { links.push_back(&link); });
  if (links.empty() || core_.members.self().addresses.empty()) return;
  core_.prng.shuffle(std::span(links));
  for (Link* link : std::span(links).first(std::min(links.size(), dial_backs_asked))) {
    core_.send(*link, encode(Invite{link->node, core_.options.self}));
  }
  reach_.asked_at = core_.now;
}

}  // namespace rumor::gossip
