// The part of Overlay for a run that is a stage of a pipeline: links to peers of other stages (PIPELINE.md 9).
#include <algorithm>
#include <set>

#include "gossip/overlay/overlay.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

bool Overlay::is_of_other_stage(const Hello& hello) const {
  const auto& ours = core_.options.stage;
  return ours && hello.pipeline == ours->pipeline && hello.self.stage != ours->stage &&
         hello.self.stage <= ours->stages;
}

// Whether a greeting of our own run names the stage that the run is.
bool Overlay::names_our_stage(const Hello& hello) const {
  const auto& ours = core_.options.stage;
  return hello.pipeline == (ours ? ours->pipeline : PipelineId{}) && hello.self.stage == core_.own_stage();
}

bool Overlay::make_room_beside(Link& link) {
  std::size_t count = 0;
  core_.each_member_link([&](const Link& other) { count += other.stage == link.stage; });
  if (count < core_.options.stage_link_counts.high) return true;
  refuse(link, Reject::Code::full, str("this peer has enough links to stage ", link.stage));
  return false;
}

// A peer of a stage that is no neighbour has shown us its table, and we ours.
void Overlay::let_go(Link& link) {
  if (core_.is_beside(link.stage) || core_.now - link.up_at < tables_cross) return;
  const char* const reason = "its stage is no neighbour of ours, and tables are exchanged";
  core_.send(link, encode(Bye{Bye::Code::surplus, reason, {}}));
  own(link).goodbye = true;
  core_.close(link, reason);
}

// Links to this stage that are open or under way.
std::size_t Overlay::links_coming_to(std::uint32_t stage) const {
  const auto open = std::count_if(core_.links.begin(), core_.links.end(), [&](const auto& entry) {
    return entry.second.state != Link::State::closing && core_.other_stage(entry.second.node) == stage;
  });
  const auto dials = std::count_if(book_.all().begin(), book_.all().end(), [&](const auto& entry) {
    return entry.second.dialling && core_.other_stage(entry.second.node) == stage;
  });
  return static_cast<std::size_t>(open + dials);
}

bool Overlay::wants_stage(std::uint32_t stage) const {
  if (core_.is_beside(stage)) return links_coming_to(stage) < core_.options.stage_link_counts.target;
  const auto& links = core_.links;
  return std::all_of(links.begin(), links.end(), [](const auto& entry) {
    return entry.second.state == Link::State::closing;
  });
}

// Dials members of other stages in random order, one address of each at a time.
void Overlay::dial_stages() {
  if (!core_.options.stage) return;
  std::vector<std::string> candidates;
  std::set<NodeId> dialling;
  for (const auto& [address, entry] : book_.all()) {
    if (core_.other_stage(entry.node) == 0) continue;
    if (entry.dialling) dialling.insert(*entry.node);
    if (may_dial(entry)) candidates.push_back(address);
  }
  core_.prng.shuffle(std::span(candidates));
  for (const std::string& address : candidates) {
    Address& entry = book_.at(address);
    if (dialling.size() >= dials_max) return;
    if (may_dial(entry) && dialling.insert(*entry.node).second) dial(address, entry);
  }
}

// A link to a peer of another stage, which has told us all members that it knows.
bool Overlay::has_told_all(const NodeId& node) const {
  return std::any_of(core_.links.begin(), core_.links.end(), [&](const auto& entry) {
    const Link& link = entry.second;
    return link.node == node && link.state == Link::State::beside && own(link).table_came;
  });
}

// Whether no member of our own stage is known that may still answer.
bool Overlay::alone_in_stage() const {
  if (!core_.options.stage) return true;
  return std::all_of(book_.all().begin(), book_.all().end(), [&](const auto& place) {
    const Address& entry = place.second;
    if (!entry.node || entry.ours || entry.tried || unwelcome(*entry.node)) return true;
    const Member* const member = core_.members.find(*entry.node);
    return member == nullptr || member->left || !core_.is_of_run(member->record) ||
           *entry.node == core_.options.self;
  });
}

}  // namespace rumor::gossip
