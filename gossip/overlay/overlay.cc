#include "gossip/overlay/overlay.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/mutant.h"
#include "runtime/base/run_part.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

std::string run_text(const std::string& name, const RunId& run) {
  return str('"', name, "\" (", run.brief(), ')');
}

}  // namespace

void Overlay::start() {
  for (const std::string& seed : core_.options.seeds) book_.add_contact(seed, true);
  for (const std::string& known : core_.options.known_addresses) book_.add_contact(known, false);
  for (auto& [address, entry] : book_.all()) entry.next_try = core_.now;
  feeler_at_ = core_.now + jittered(feeler_interval, core_.prng);
  renew_at_ = core_.now + renew_interval;
  tick();
}

void Overlay::on_link_up(Link& link) {
  link.overlay = std::make_unique<OverlayLink>();
  Address* entry = link.dialled_by_us ? book_.find(link.address) : nullptr;
  if (entry != nullptr) {
    own(link).purpose = entry->purpose;
    entry->dialling = false;
    entry->node = link.node;
  }
  if (core_.scores.is_banned(link.node, core_.now)) {
    core_.close(link, "it is banned for what it did before");
  } else if (link.dialled_by_us && core_.rule.refused.contains(link.node)) {
    core_.close(link, "it is refused here");  // a node that dials us learns the reason, after its greeting
  } else if (own(link).purpose == Purpose::dial_back) {
    core_.close(link, "it can be dialled, which it wanted to know");
  } else if (leaving_) {
    core_.close(link, "we are leaving");
  } else if (own(link).purpose == Purpose::duplicate && link.node != core_.options.self) {
    core_.close(link, "another node lives at an address of ours");
  } else if (link.dialled_by_us || is_listed(core_.rule, link.node) || link.node == core_.options.self) {
    send_hello(link);  // a stranger that came to us speaks first, and learns nothing until it is admitted
  }
  if (!link.dialled_by_us) {
    if (link.node != core_.options.self) reach_.by = link.node, reach_.at = core_.now;
    bound_greetings();
  }
  wake();
}

// Too many links that came to us and are not admitted: closes the oldest.
void Overlay::bound_greetings() {
  Link* oldest = nullptr;
  std::size_t count = 0;
  for (auto& [id, link] : core_.links) {
    if (link.state != Link::State::greeting || link.dialled_by_us) continue;
    if (oldest == nullptr) oldest = &link;
    ++count;
  }
  if (count > limits::greeting_max) core_.close(*oldest, "too many peers that do not greet");
}

void Overlay::ping(Link& link) {
  own(link).ping = core_.prng.next();
  own(link).ping_sent_at = core_.now;
  core_.send(link, encode(Ping{*own(link).ping}));
}

void Overlay::on_pong(Link& link, const Pong& pong) {
  met_own_run_ = true;  // they have admitted us, or they would not answer
  if (pong.nonce != own(link).ping) return;
  own(link).ping.reset();
  link.round_trip = core_.now - own(link).ping_sent_at;
  if (!std::exchange(own(link).returned, false)) return;
  duplicates_.answered(link);
  tell_duplicate(link);
}

void Overlay::send_hello(Link& link) {
  Hello hello;
  hello.run = core_.options.run;
  hello.run_name = core_.options.run_name;
  hello.stream = core_.options.stream;
  hello.self = core_.members.self();
  hello.digest = core_.digest();
  hello.lonely = core_.admitted_count() < core_.options.links.low;
  hello.began = core_.options.began;
  hello.errand = own(link).purpose == Purpose::errand && link.dialled_by_us;
  if (core_.options.stage) hello.pipeline = core_.options.stage->pipeline;
  link.hello_replica = hello.digest.replica;
  own(link).greeted = true;
  core_.send(link, encode(hello));
}

bool Overlay::on_hello(Link& link, const Hello& hello) {
  const auto& options = core_.options;
  if (hello.run != options.run && !is_of_other_stage(hello)) {
    const std::string theirs = run_text(hello.run_name, hello.run),
                      ours = run_text(options.run_name, options.run);
    own(link).other_run = theirs;
    if (link.dialled_by_us) return false;  // its REJECT, which is on its way, says more
    refuse(link, Reject::Code::other_run, str("this peer trains run ", ours, ", not yours"));
    return false;
  }
  if (hello.version_min > protocol_version_max || hello.version_max < protocol_version_min) {
    refuse(link, Reject::Code::version,
           str("this peer speaks protocol versions ", protocol_version_min, " to ", protocol_version_max,
               ": update the older one"));
    return false;
  }
  if (hello.self.node != link.node) {
    refuse(link, Reject::Code::identity, "the greeting names another node than the connection");
    return false;
  }
  if (!stream_belongs_to(hello.stream, link.node)) {
    refuse(link, Reject::Code::identity, "the greeting names a stream that is not the node's");
    return false;
  }
  if (hello.run == options.run && !names_our_stage(hello)) {
    refuse(link, Reject::Code::identity, "the greeting names another stage than the run's");
    return false;
  }
  if (link.node == core_.options.self) {
    duplicates_.on_own_key(link, hello);
    return false;
  }
  PeerRecord record = hello.self;
  if (!admits(link, record) || !records_.learn(link, record)) return false;
  if (!own(link).greeted) send_hello(link);
  if (!keep_one_of_twins(link, hello.stream)) return false;
  link.stage = hello.self.stage;
  if (hello.errand && !link.dialled_by_us) own(link).purpose = Purpose::errand;
  const bool of_run = hello.run == options.run;
  if (!(of_run ? make_room(link, hello.lonely) : make_room_beside(link))) return false;
  own(link).returned = duplicates_.greeted(link, hello);
  admitted(link, hello);
  tell_duplicate(link);
  return link.admitted();
}

// Each of the two processes hears of the other once, and may dial again at once.
void Overlay::tell_duplicate(Link& link) {
  const std::string word = duplicates_.word_for(link);
  if (word.empty()) return;
  core_.send(link, encode(Bye{Bye::Code::duplicate, word.substr(0, 512), {}}));
  core_.close(link, "another process has its key");
}

bool Overlay::admits(Link& link, PeerRecord& record) {
  JudgeView view{core_.keys, core_.membership(), core_.unix_now(), 0, false};
  Result<Admit> shown = Admit::decode(record.admit);
  if (shown.ok()) {
    view.uses = core_.members.joined_by(shown->token.id, record.node);
    view.admitter_known =
        shown->by && (*shown->by == core_.options.self || is_listed(core_.rule, *shown->by) ||
                      core_.members.find(*shown->by) != nullptr);
  }
  const Result<Verdict> verdict = judge(core_.rule, record.node, record.admit, view);
  if (!verdict) {
    core_.note(Note::Level::warning,
               str("not admitted: ", record.node.brief(), " at ", link.address, ": ", verdict.error().text));
    refuse(link, Reject::Code::not_admitted, verdict.error().text);
    return false;
  }
  link.observer = verdict->role == Role::observe;
  if (verdict->countersign) {
    shown->by = core_.options.self;
    shown->by_signature = core_.keys.sign(admit_message(core_.membership(), record.node, shown->token.id));
    record.admit = shown->encode();
  }
  return true;
}

void Overlay::set_addresses(std::vector<std::string> addresses) {
  if (!core_.members.set_addresses(fit_addresses(core_.options.self, std::move(addresses)))) return;
  records_.own_changed();
}

void Overlay::judge_links() {
  for (auto& [id, link] : core_.links) {
    const Member* member = core_.members.find(link.node);
    if (!link.has_member() || member == nullptr) continue;
    PeerRecord record = member->record;
    admits(link, record);
  }
}

void Overlay::refuse(Link& link, Reject::Code code, const std::string& text) {
  Reject reject{code, text.substr(0, 512), core_.options.run, core_.options.run_name, {}, {}, {}};
  if (code == Reject::Code::not_admitted) reject.run = {}, reject.run_name.clear();
  if (code == Reject::Code::full) reject.others = records_.some();
  if (code == Reject::Code::other_run) {
    reject.start = core_.options.start;
    for (const RunPart& part : core_.options.parts)
      if (reject.parts.size() < limits::run_parts_max) reject.parts.push_back(part.hash);
  }
  core_.send(link, encode(reject));
  core_.close(link, text);
}

// Two links to one node: returns true when this one stays, and closes the others.
bool Overlay::keep_one_of_twins(Link& link, const StreamId& stream) {
  const bool we_are_lower = core_.options.self < link.node;
  for (auto& [id, other] : core_.links) {
    if (&other == &link || !other.has_member() || other.node != link.node) continue;
    const bool restarted = other.their_stream != stream;
    const bool stale = core_.now - other.heard_at > stale_after;
    if (other.dialled_by_us == link.dialled_by_us && !restarted && !stale) {
      if (!link.dialled_by_us) continue;  // the dialler decides
      core_.close(link, "linked already");
      return false;
    }
    const bool other_is_lowers = other.dialled_by_us == we_are_lower;
    if (!restarted && !stale && other_is_lowers) {
      core_.close(link, "linked already");
      return false;
    }
    core_.close(other, restarted ? "the peer has restarted" : "a better link to it is up");
  }
  return true;
}

// Errands that others come for are few. Our own are as few as the states that are fetched at a time.
bool Overlay::has_room_for_errand(const Link& link) {
  if (own(link).purpose != Purpose::errand) return false;
  std::size_t taken = 0;
  core_.each_link([&](const Link& other) {
    taken += !other.dialled_by_us && own(other).purpose == Purpose::errand ? 1 : 0;
  });
  return link.dialled_by_us || taken < errands_taken;
}

// Returns true when the link may stay although others came before it.
bool Overlay::make_room(Link& link, bool lonely) {
  std::vector<Link*> accepted;
  std::size_t count = 0;
  core_.each_link([&](Link& other) {
    ++count;
    if (!other.dialled_by_us) accepted.push_back(&other);
  });
  if (count < core_.options.links.high || mutant(39) || has_room_for_errand(link)) return true;
  if (!lonely || accepted.empty()) {
    refuse(link, Reject::Code::full, "this peer has enough links");
    return false;
  }
  // The link that gives least goes, of equals the youngest: newcomers that give nothing only replace each other.
  Link& victim = **std::min_element(accepted.begin(), accepted.end(), [&](const Link* a, const Link* b) {
    const auto a_points = core_.scores.points(a->node), b_points = core_.scores.points(b->node);
    return a_points != b_points ? a_points < b_points : a->up_at > b->up_at;
  });
  core_.send(victim,
             encode(Bye{Bye::Code::surplus, "making room for a peer with few links", records_.some()}));
  core_.close(victim, "making room for a peer with few links");
  return true;
}

void Overlay::admitted(Link& link, const Hello& hello) {
  const bool of_run = hello.run == core_.options.run;
  link.state = of_run ? Link::State::admitted : Link::State::beside;
  own(link).was_admitted = true;
  link.their_stream = hello.stream;
  link.codings = hello.codings;
  if (link.dialled_by_us) met_own_run_ = true;  // a node that we dialled greets after it has admitted us
  ping(link);                                   // at once, for the round trip
  records_.send_table(link);
  core_.members.heard(link.node, core_.now);
  if (Address* entry = link.dialled_by_us ? book_.find(link.address) : nullptr) {
    entry->other_run.clear();
    if (entry->failures > 0) book_.network_is_back(core_.now, core_.prng);
  }
  core_.note(Note::Level::info, str("linked to ", link.node.brief(), " at ", link.address,
                                   of_run ? "" : str(", of stage ", link.stage)));
  if (!of_run && core_.is_beside(link.stage)) core_.options.stage_links->linked(link.id);
  wake();
}

void Overlay::on_reject(Link& link, const Reject& reject) {
  if (reject.code == Reject::Code::other_run && reject.run != core_.options.run) {
    if (Address* entry = link.dialled_by_us ? book_.find(link.address) : nullptr) {
      entry->other_run = run_text(reject.run_name, reject.run);
      entry->unlike = unlike_parts(core_.options.parts, reject.parts);
    }
  }
  if (reject.code == Reject::Code::not_admitted) {
    if (Address* entry = link.dialled_by_us ? book_.find(link.address) : nullptr)
      entry->not_admitted = reject.text;
  }
  if (reject.code == Reject::Code::full && own(link).was_admitted) {
    records_.learn_all(link, reject.others);
  }
  core_.close(link, str("refused: ", reject.text));
}

void Overlay::on_bye(Link& link, const Bye& bye) {
  own(link).goodbye = bye.code != Bye::Code::duplicate;
  if (own(link).was_admitted) {
    records_.learn_all(link, bye.others);
    if (bye.code == Bye::Code::leaving) core_.members.left(link.node);
    if (bye.code == Bye::Code::duplicate) duplicates_.on_word(link, bye.text);
  }
  core_.close(link, bye.text.empty() ? "goodbye" : str("goodbye: ", bye.text));
}

void Overlay::leave() {
  leaving_ = true;
  core_.each_member_link([&](Link& link) { core_.send(link, encode(Bye{Bye::Code::leaving, "leaving", {}})); });
  for (auto& [id, link] : core_.links) core_.close(link, "leaving");
}

void Overlay::check_invariants() const { core_.members.check_invariants(); }

}  // namespace rumor::gossip
