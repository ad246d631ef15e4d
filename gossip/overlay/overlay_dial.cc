// The part of Overlay that works by the clock: dialling addresses, again when a link is lost, watching and dropping
// links, and its texts about both.
#include <algorithm>
#include <set>

#include "gossip/overlay/overlay.h"
#include "runtime/base/mutant.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

void Overlay::on_dial_failed(const std::string& address, const std::string& reason) {
  Address* entry = book_.find(address);
  if (entry == nullptr) return;
  if (entry->purpose == Purpose::dial_back || entry->purpose == Purpose::duplicate) {  // it is of no use to us
    entry->dialling = false;
    return;
  }
  if (entry->seed && entry->failures == 0) {
    core_.note(Note::Level::warning, str("seed ", address, " does not answer: ", reason, "; trying on"));
  }
  book_.failed(address, reason, core_.now, core_.prng);
  // Not at the first failure: a node that has just gone cannot answer an invitation either.
  if (entry->node && entry->failures >= 2) invite(*entry->node);
  wake();
}

void Overlay::link_lost(const Link& link, const std::string& reason) {
  wake();
  if (own(link).was_admitted && link.stage != core_.own_stage() && core_.is_beside(link.stage))
    core_.options.stage_links->unlinked(link.id);
  Address* entry = link.dialled_by_us ? book_.find(link.address) : nullptr;
  if (entry != nullptr) entry->tried = true;
  if (entry != nullptr && entry->other_run.empty()) entry->other_run = own(link).other_run;
  if ((entry != nullptr && entry->ours) || own(link).purpose == Purpose::dial_back) return;
  if (own(link).purpose == Purpose::duplicate) return;
  if (!own(link).was_admitted) {
    if (entry != nullptr) book_.failed(link.address, reason, core_.now, core_.prng);
    return;
  }
  core_.note(Note::Level::info,
             str("link to ", link.node.brief(), " at ", link.address, " is down: ", reason));
  if (!own(link).goodbye && !occupied(link.node)) core_.members.lost(link.node);
  if (own(link).goodbye) {
    book_.retry_node(link.node, core_.now + jittered(feeler_interval, core_.prng));
  } else if (core_.now - link.up_at >= short_lived) {
    if (entry != nullptr) entry->failures = 0;
    const bool higher = link.node < core_.options.self;
    book_.retry_node(link.node, core_.now + (higher ? AddressBook::higher_id_waits : Duration{0}));
  } else if (entry != nullptr) {
    book_.failed(link.address, reason, core_.now, core_.prng);
  }
}

void Overlay::tick() {
  const TimePoint now = core_.now;
  if (leaving_) {
    due_ = never;
    return;
  }
  watch_links();
  if (now >= renew_at_) {
    renew_at_ = now + renew_interval;
    core_.members.renew_self();
    core_.members.forget(now);
    records_.own_renewed();
    book_.keep_only([&](const std::string& address, const Address& entry) {
      const Member* member = entry.node ? core_.members.find(*entry.node) : nullptr;
      if (entry.first_contact() || member == nullptr) return entry.first_contact();
      const auto& listed = member->record.addresses;
      return std::find(listed.begin(), listed.end(), address) != listed.end();
    });
  }
  records_.tick();
  dial_contacts();
  dial_members();
  dial_stages();
  if (now >= feeler_at_) {
    feeler_at_ = now + jittered(feeler_interval, core_.prng);
    dial_feeler();
  }
  due_ = std::min({next_dial(), feeler_at_, renew_at_, records_.changes_due()});
  if (!core_.links.empty()) due_ = std::min(due_, now + 1s);
  due_ = std::max(due_, now + 10ms);
}

void Overlay::watch_links() {
  const TimePoint now = core_.now;
  const std::size_t admitted = core_.admitted_count();
  for (auto& [id, link] : core_.links) {
    if (link.state == Link::State::greeting && now - link.up_at >= greeting_deadline) {
      core_.close(link, "no greeting within 5 s");
    }
    if (!link.has_member()) continue;
    if (now - link.heard_at >= dead_after && !mutant(40)) {
      core_.close(link, "silent for 15 s");
      continue;
    }
    core_.members.heard(link.node, link.heard_at);
    if (now - link.sent_at >= ping_interval) ping(link);
    if (link.state == Link::State::beside) {
      let_go(link);
      continue;
    }
    const bool idle = link.providing == 0 && link.taking == 0;
    const bool spare = admitted > core_.options.links.target && !full_mesh();
    if (own(link).purpose == Purpose::feeler && idle && now - link.up_at >= feeler_age && spare)
      part(link, "no stream takes this way");
    if (own(link).purpose == Purpose::errand && spare && errand_has_ended(link)) part(link, "the errand is done");
  }
}

// The side that did not dial cannot know, so it only bounds the time.
bool Overlay::errand_has_ended(const Link& link) const {
  if (!link.dialled_by_us) return core_.now - link.up_at >= errand_max;
  const TimePoint over = own(link).errand_over_at;
  return over != never && core_.now - over >= feeler_age;
}

void Overlay::part(Link& link, const std::string& why) {
  core_.send(link, encode(Bye{Bye::Code::surplus, why, {}}));
  own(link).goodbye = true;
  core_.close(link, why);
}

void Overlay::errand_over(LinkId link) {
  const auto at = core_.links.find(link);
  if (at != core_.links.end()) own(at->second).errand_over_at = core_.now;
}

bool Overlay::is_coming(const NodeId& node) const {
  return occupied(node) || std::any_of(book_.all().begin(), book_.all().end(), [&](const auto& entry) {
           return entry.second.dialling && entry.second.node == node;
         });
}

bool Overlay::occupied(const NodeId& node) const {
  if (node == core_.options.self) return true;
  for (const auto& [id, link] : core_.links) {
    if (link.state != Link::State::closing && link.node == node) return true;
  }
  return false;
}

bool Overlay::unwelcome(const NodeId& node) const {
  return core_.rule.refused.contains(node) || core_.scores.is_banned(node, core_.now);
}

bool Overlay::may_dial(const Address& entry) const {
  if (entry.dialling || entry.ours || entry.next_try > core_.now) return false;
  if (!entry.node) return true;
  if (occupied(*entry.node) || unwelcome(*entry.node)) return false;
  const std::uint32_t stage = core_.other_stage(entry.node);
  if (stage != 0 && !wants_stage(stage)) return false;
  const Member* member = core_.members.find(*entry.node);
  return entry.seed || member == nullptr || !member->left;
}

void Overlay::dial(const std::string& address, Address& entry, Purpose purpose) {
  entry.dialling = true;
  entry.purpose = purpose;
  core_.dial(address);
}

std::size_t Overlay::links_coming() const { return links_coming_to(0); }

std::size_t Overlay::dialled_links() const {
  const auto open = std::count_if(core_.links.begin(), core_.links.end(), [&](const auto& entry) {
    const Link& link = entry.second;
    return link.state != Link::State::closing && link.dialled_by_us && core_.other_stage(link.node) == 0;
  });
  const auto dials = std::count_if(book_.all().begin(), book_.all().end(), [&](const auto& entry) {
    return entry.second.dialling && core_.other_stage(entry.second.node) == 0;
  });
  return static_cast<std::size_t>(open + dials);
}

bool Overlay::wants_links() const {
  const std::size_t coming = links_coming();
  return full_mesh() || coming < core_.options.links.target ||
         (dialled_links() < core_.options.links.dialled && coming < core_.options.links.high);
}

// Dials seeds and known addresses: all at once the first time, later while links are wanted, and now and then anyway.
void Overlay::dial_contacts() {
  for (auto& [address, entry] : book_.all()) {
    if (!entry.first_contact() || !may_dial(entry)) continue;
    const bool for_run = links_coming() < core_.options.links.target || full_mesh();
    const bool wanted = core_.other_stage(entry.node) != 0 || !entry.tried || for_run;
    if (!wanted && entry.failures == 0) {
      // Enough links: look again in ten minutes, since another node may live there by then.
      entry.failures = 1;
      entry.next_try = core_.now + jittered(seed_interval, core_.prng);
      continue;
    }
    dial(address, entry);
  }
}

// Dials members in random order, one address of each at a time, until there are links enough.
void Overlay::dial_members() {
  std::vector<std::string> candidates;
  for (const auto& [address, entry] : book_.all()) {
    if (entry.node && core_.other_stage(entry.node) == 0 && may_dial(entry)) candidates.push_back(address);
  }
  if (candidates.empty()) return;
  core_.prng.shuffle(std::span(candidates));
  std::set<NodeId> dialling;
  for (const auto& [address, entry] : book_.all()) {
    if (entry.dialling && entry.node) dialling.insert(*entry.node);
  }
  for (const std::string& address : candidates) {
    if (!wants_links() || dialling.size() >= dials_max) return;
    Address& entry = book_.at(address);
    if (dialling.insert(*entry.node).second) dial(address, entry);
  }
}

void Overlay::dial_feeler() {
  if (!tries_others_ || full_mesh() || core_.admitted_count() >= core_.options.links.high) return;
  std::vector<std::string> candidates;
  for (const auto& [address, entry] : book_.all()) {
    if (entry.node && core_.other_stage(entry.node) == 0 && may_dial(entry)) candidates.push_back(address);
  }
  if (candidates.empty()) return;
  const std::string& address = candidates[core_.prng.below(candidates.size())];
  Address& entry = book_.at(address);
  dial(address, entry, Purpose::feeler);
}

bool Overlay::dial_member(const NodeId& node) {
  for (auto& [address, entry] : book_.all()) {
    if (entry.node != node || unwelcome(node)) continue;
    if (entry.dialling) return true;
    entry.next_try = core_.now;  // however long it should still wait
    if (!may_dial(entry)) continue;
    dial(address, entry, Purpose::errand);
    return true;
  }
  return false;
}

TimePoint Overlay::next_dial() const {
  const bool wanted = wants_links();
  TimePoint soonest = never;
  for (const auto& [address, entry] : book_.all()) {
    const bool is_wanted = wanted || entry.first_contact() || core_.other_stage(entry.node) != 0;
    if (entry.dialling || entry.ours || !is_wanted) continue;
    if (entry.node && (occupied(*entry.node) || unwelcome(*entry.node))) continue;
    if (const std::uint32_t stage = core_.other_stage(entry.node); stage != 0 && !wants_stage(stage)) continue;
    soonest = std::min(soonest, std::max(entry.next_try, core_.now + 50ms));
  }
  return soonest;
}

bool Overlay::alone() const {
  if (!std::all_of(core_.links.begin(), core_.links.end(), [](const auto& entry) {
        const Link& link = entry.second;
        return link.state == Link::State::closing || (link.state == Link::State::beside && own(link).table_came);
      }))
    return false;
  const bool all_tried = std::all_of(book_.all().begin(), book_.all().end(), [&](const auto& entry) {
    return !entry.second.first_contact() ||
           (entry.second.tried && (!entry.second.dialling || entry.second.failures > 0)) ||
           (entry.second.node && has_told_all(*entry.second.node));
  });
  return all_tried && alone_in_stage();
}

bool Overlay::has_contacts() const {
  return std::any_of(book_.all().begin(), book_.all().end(),
                     [](const auto& entry) { return entry.second.first_contact() && !entry.second.ours; });
}

std::string Overlay::tried_text() const {
  std::string text;
  for (const auto& [address, entry] : book_.all()) {
    if (!entry.first_contact() || entry.ours) continue;
    text += (text.empty() ? "" : ", ") + address;
    if (!entry.trouble.empty()) text += ": " + entry.trouble;
  }
  return text;
}

std::string Overlay::refused_by_run() const {
  if (met_own_run_) return {};
  for (const auto& [address, entry] : book_.all()) {
    if (entry.seed && !entry.not_admitted.empty())
      return str("seed ", address, " does not admit this peer: ", entry.not_admitted);
    if (!entry.seed || entry.other_run.empty()) continue;
    return str("seed ", address, " trains run ", entry.other_run, ", we train \"", core_.options.run_name,
               "\" (", core_.options.run.brief(), "): ", entry.unlike, entry.unlike.empty() ? "" : "; ",
               "use the same run file, or other seeds");
  }
  return {};
}

}  // namespace rumor::gossip
