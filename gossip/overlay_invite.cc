// The Overlay where others are to dial us: those whom we cannot dial, and neighbours that try whether one can
// (PROTOCOL.md 5.10, 5.11).
#include <algorithm>

#include "gossip/overlay.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

// Whom we cannot dial may be able to dial us: neighbours of both pass that on.
void Overlay::invite(const NodeId& member) {
  if (core_.now - invited_at_ < invite_interval || core_.members.self().addresses.empty()) return;
  if (!wants_links() || occupied(member) || unwelcome(member)) return;
  invited_at_ = core_.now;
  core_.each_link([&](Link& link) { core_.send(link, encode(Invite{member, core_.options.self})); });
}

void Overlay::on_invite(Link& link, const Invite& invite) {
  const bool own_word = invite.from == link.node;
  if (invite.to == core_.options.self) return own_word ? dial_back(link) : dial_inviter(invite.from);
  if (!own_word || core_.now - link.invite_passed_at < invite_pass_interval) return;
  Link* const next = core_.link_to(invite.to);
  if (next == nullptr) return;
  link.invite_passed_at = core_.now;
  core_.send(*next, encode(invite));
}

// Of a node's addresses that we were not asked to dial just now, the one that has failed least.
Overlay::Place* Overlay::place_of_inviter(const NodeId& node) {
  Place* best = nullptr;
  for (Place& place : book_.all()) {
    const Address& entry = place.second;
    if (entry.node != node || entry.dialling || entry.ours || core_.now - entry.invited_at < invited_interval) continue;
    if (best == nullptr || entry.failures < best->second.failures) best = &place;
  }
  return best;
}

// However long the address should still wait.
void Overlay::dial_inviter(const NodeId& node) {
  if (!full_mesh() && links_coming() >= limits::links_high) return;
  Place* const place = place_of_inviter(node);
  if (place == nullptr) return;
  auto& [address, entry] = *place;
  entry.next_try = core_.now;
  if (!may_dial(entry)) return;
  entry.invited_at = core_.now;
  core_.note(Note::Level::info,
             str("dialling ", node.brief(), " at ", address, ", which cannot dial us and asks for it"));
  dial(address, entry);
}

// A neighbour wants to know whether it can be dialled: it sees our connection, which ends at once.
void Overlay::dial_back(const Link& link) {
  Place* const place = place_of_inviter(link.node);
  if (place == nullptr) return;
  place->second.invited_at = core_.now;
  place->second.dialled_back = true;
  dial(place->first, place->second);
}

void Overlay::ask_to_be_dialled() {
  std::vector<Link*> links;
  core_.each_link([&](Link& link) { links.push_back(&link); });
  if (links.empty() || core_.members.self().addresses.empty()) return;
  core_.prng.shuffle(std::span(links));
  links.resize(std::min(links.size(), dial_backs_asked));
  for (Link* link : links) core_.send(*link, encode(Invite{link->node, core_.options.self}));
  reach_.asked_at = core_.now;
}

}  // namespace rumor::gossip
