#include "gossip/protocol.h"

#include <algorithm>

#include "gossip/broadcast/evidence.h"
#include "gossip/broadcast/joining.h"
#include "gossip/broadcast/repair.h"
#include "gossip/broadcast/revoking.h"
#include "gossip/broadcast/spread.h"
#include "gossip/copies/copies.h"
#include "gossip/links/core.h"
#include "gossip/links/link_payload.h"
#include "gossip/overlay/overlay.h"
#include "gossip/overlay/queue_probe.h"
#include "runtime/base/check.h"
#include "runtime/base/mutant.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

struct Protocol::Impl {
  Impl(Options options, UpdateStore& store, Prng prng)
      : core(std::move(options), store, prng),
        overlay(core),
        spread(core),
        probe(core, overlay),
        joining(core),
        evidence(core, overlay),
        repair(core, spread, joining, evidence),
        revoking(core, overlay, spread, joining) {
    if (core.options.copies != nullptr) copies.emplace(core, *core.options.copies);
  }

  // Brackets every handler: the outbox and the time are set inside; what is due at its end happens in the
  // destructor.
  class Turn {
   public:
    Turn(Impl& impl, TimePoint now, Outbox& out) : impl_(impl) { impl.core.begin(now, out); }
    ~Turn() { impl_.finish_turn(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Impl& impl_;
  };

  void finish_turn();
  void detach(Link& link);
  void receive(Link& link, BytesView bytes);
  bool link_may_say(Link& link, BytesView bytes);
  bool has_place(FrameType type) const;

  // One overload per frame.
  void on(Link& link, const Hello& hello);
  void on(Link& link, const Reject& message) { overlay.on_reject(link, message); }
  void on(Link& link, const Bye& message) { overlay.on_bye(link, message); }
  void on(Link& link, const Ping& message) { overlay.on_ping(link, message); }
  void on(Link& link, const Pong& message);
  void on(Link& link, const Peers& message) { overlay.on_peers(link, message); }
  void on(Link& link, const Invite& message) { overlay.on_invite(link, message); }
  void on(Link& link, const StreamDef& message) { spread.on_stream(link, message); }
  void on(Link& link, const Have& message) { spread.on_have(link, message); }
  void on(Link& link, const Want& message) { spread.on_want(link, message); }
  void on(Link& link, const Subscribe& message) { spread.on_subscribe(link, message); }
  void on(Link& link, const Decline& message) { spread.on_decline(link, message); }
  void on(Link& link, const Data& message);
  void on(Link& link, const Digest& message);
  void on(Link& link, const Vector& message) { repair.on_vector(link, message); }
  void on(Link& link, const NotAvailable& message);
  void on(Link& link, const DataMore& message);
  void on(Link& link, const SnapshotAsk& message) { joining.on_ask(link, message); }
  void on(Link& link, const SnapshotJoin& message) { joining.on_join(link, message); }
  void on(Link& link, const SnapshotOffer& message) { joining.on_offer(link, message); }
  void on(Link& link, const SnapshotWant& message) { joining.on_want(link, message); }
  void on(Link& link, const SnapshotData& message);
  void on(Link& link, const Revocations& message) { revoking.on_revocations(link, message); }
  void on(Link& link, const Headers& message) { evidence.on_headers(link, message); }
  void on(Link& link, const Equivocation& message) { evidence.on_equivocation(link, message); }
  void on(Link& link, const CopyAsk& message) { copies->on_ask(link, message); }
  void on(Link& link, const Copy& message) { copies->on_copy(link, message); }
  void on(Link&, const Skipped&) {}
  void after_data(Link& link);
  void installed();

  Core core;
  Overlay overlay;
  Spread spread;
  QueueProbe probe;
  Joining joining;
  Evidence evidence;
  Repair repair;
  Revoking revoking;
  std::optional<Copies> copies;  // with models of their own; then Overlay and this do all
  bool was_busy = false, left = false, started = false;
};

// ---- one turn ----

void Protocol::Impl::finish_turn() {
  for (auto& [id, link] : core.links) {
    if (link.state == Link::State::closing && !link.detached) detach(link);
  }
  if (copies) {
    copies->flush(!copies->ready() && started && overlay.alone());
    return core.end();
  }
  // Range pulls rest while a snapshot is under way.
  if (was_busy && !joining.busy()) core.each_link([&](Link& link) { repair.refill(link); });
  was_busy = joining.busy();
  if (!repair.ready() || core.changed_at == core.now)
    repair.flush(!repair.ready() && started && overlay.alone());
  spread.flush();
  core.end();
}

// Takes the link out of everything; it stays in the list until the driver says that it is down.
void Protocol::Impl::detach(Link& link) {
  link.detached = true;
  if (copies) copies->link_lost(link);
  if (!mutant(21)) spread.link_lost(link);
  joining.link_lost(link);
  overlay.link_lost(link, link.close_reason);
  core.pace.link_lost(link.id);
  link.to_serve.clear();
  link.announcements.clear();
  link.arriving.reset();
  core.forget_brought(link);
}

// ---- frames ----

void Protocol::Impl::receive(Link& link, BytesView bytes) {
  link.heard_at = core.now;
  link.received_bytes += bytes.size();
  core.counters.received_bytes += bytes.size();
  const bool greeting = link.state == Link::State::greeting;
  if (greeting && bytes.size() > limits::hello_bytes_max)
    return core.close(link, "too much before the greeting");
  if (!link_may_say(link, bytes)) return;
  const Result<Frame> frame = decode(bytes);
  if (!frame) return core.ban(link, str("sent a malformed frame: ", frame.error().text));
  const bool polite = std::holds_alternative<Hello>(*frame) || std::holds_alternative<Reject>(*frame) ||
                      std::holds_alternative<Bye>(*frame);
  if (greeting && !polite) return core.close(link, "another frame before the greeting");
  if (!has_place(static_cast<FrameType>(bytes[0])))
    return core.ban(link, str("sent a frame of type ", int{bytes[0]}, ", which has no place in this run's exchange"));
  std::visit([&](const auto& message) { on(link, message); }, *frame);
}

// What is of one exchange only does not come in another.
bool Protocol::Impl::has_place(FrameType type) const {
  switch (type) {
    case FrameType::stream:
    case FrameType::have:
    case FrameType::want:
    case FrameType::subscribe:
    case FrameType::decline:
    case FrameType::vector:
    case FrameType::not_available:
    case FrameType::snapshot_ask:
    case FrameType::snapshot_offer:
    case FrameType::snapshot_want:
    case FrameType::snapshot_data:
    case FrameType::snapshot_join:
    case FrameType::revoke:
    case FrameType::headers:
    case FrameType::equivocation: return !copies;
    case FrameType::copy_ask:
    case FrameType::copy: return copies.has_value();
    default: return true;
  }
}

// Payloads, snapshots and copies are asked for, and streams are counted: all else has a price.
bool Protocol::Impl::link_may_say(Link& link, BytesView bytes) {
  if (bytes.empty()) return true;
  switch (static_cast<FrameType>(bytes[0])) {
    case FrameType::data:
    case FrameType::data_more:
    case FrameType::snapshot_data:
    case FrameType::copy:
    case FrameType::stream: return true;
    default: return core.charge(link, 1 + bytes.size() / limits::control_unit_bytes);
  }
}

void Protocol::Impl::on(Link& link, const Hello& hello) {
  if (link.admitted()) return core.close(link, "a second greeting");
  if (!overlay.on_hello(link, hello)) return;
  if (copies) return copies->admitted(link, hello);
  revoking.admitted(link);
  repair.admitted(link, hello);
}

void Protocol::Impl::on(Link& link, const Pong& message) {
  if (!probe.on_pong(link, message)) overlay.on_pong(link, message);
}

void Protocol::Impl::on(Link& link, const Digest& message) {
  overlay.on_digest(link, message);
  copies ? copies->on_digest(link, message) : repair.on_digest(link, message);
}

void Protocol::Impl::on(Link& link, const Data& message) {
  if (copies) return copies->on_data(link, message);
  spread.on_data(link, message);
  after_data(link);
}

void Protocol::Impl::on(Link& link, const DataMore& message) {
  if (copies) return copies->on_data_more(link, message);
  spread.on_data_more(link, message);
  after_data(link);
}

void Protocol::Impl::after_data(Link& link) {
  if (!core.suspects.empty()) evidence.look_at_suspects();
  if (!link.admitted() || link.to_pull.empty()) return;
  if (core.learns_update_bytes()) joining.consider(link);
  if (link.asked.size() <= spread.window(link) / 2) repair.refill(link);
}

void Protocol::Impl::on(Link& link, const NotAvailable& message) {
  repair.on_not_available(link, message);
  if (!link.admitted()) return;
  spread.on_not_available(link, message);
  if (!link.admitted()) return;
  joining.consider(link);
  joining.look_later();
}

void Protocol::Impl::on(Link& link, const SnapshotData& message) {
  if (joining.on_data(link, message)) installed();
}

void Protocol::Impl::installed() {
  revoking.installed();
  repair.installed();
}

// ---- the public face ----

Protocol::Protocol(Options options, UpdateStore& store, Prng prng)
    : impl_(std::make_unique<Impl>(std::move(options), store, prng)) {}
Protocol::~Protocol() = default;

void Protocol::start(TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  impl_->started = true;
  if (!impl_->copies) {
    impl_->revoking.put_out();
    impl_->joining.start();
  }
  impl_->overlay.start();
}

void Protocol::on_link_up(const LinkUp& up, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  impl_->overlay.on_link_up(up);
}

void Protocol::on_frame(LinkId link, BytesView frame, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  const auto at = impl_->core.links.find(link);
  if (at == impl_->core.links.end() || at->second.state == Link::State::closing) return;
  impl_->receive(at->second, frame);
}

void Protocol::on_link_down(LinkId link, const std::string& reason, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  const auto at = impl_->core.links.find(link);
  if (at == impl_->core.links.end()) return;
  Link& lost = at->second;
  if (!lost.detached) {
    if (lost.state != Link::State::closing) lost.close_reason = reason;
    lost.state = Link::State::closing;
    impl_->detach(lost);
  }
  impl_->core.links.erase(at);
}

void Protocol::on_dial_failed(const std::string& address, const std::string& reason, TimePoint now,
                              Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  impl_->overlay.on_dial_failed(address, reason);
}

void Protocol::on_backlog(LinkId link, bool full, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  Link* const known = impl_->core.find(link);
  if (known == nullptr) return;
  impl_->copies ? impl_->copies->on_backlog(*known, full) : impl_->spread.on_backlog(*known, full);
}

void Protocol::on_time(TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  if (impl_->left || !impl_->started) return;
  if (impl_->overlay.due() <= now) impl_->overlay.tick();
  if (impl_->copies) {
    if (impl_->copies->due() <= now) impl_->copies->tick();
    return;
  }
  if (impl_->spread.due() <= now) impl_->spread.tick();
  if (impl_->probe.due() <= now) impl_->probe.tick();
  if (impl_->joining.due() <= now && impl_->joining.tick()) impl_->installed();
  if (impl_->repair.due() <= now) impl_->repair.tick();
  if (impl_->evidence.due() <= now) impl_->evidence.tick();
}

void Protocol::publish(const StoredUpdate& update, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  if (impl_->copies) return impl_->copies->publish(update);
  impl_->spread.publish(update);
  impl_->probe.published();
}

void Protocol::set_finished(bool finished, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  if (impl_->core.finished == finished) return;
  impl_->core.finished = finished;
  impl_->copies ? impl_->copies->finished_changed() : impl_->repair.finished_changed();
}

void Protocol::leave(TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  impl_->left = true;
  impl_->overlay.leave();
}

void Protocol::set_addresses(std::vector<std::string> addresses, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  impl_->overlay.set_addresses(std::move(addresses));
}

void Protocol::ask_to_be_dialled(TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  impl_->overlay.ask_to_be_dialled();
}

void Protocol::set_rule(AdmissionRule rule, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  AdmissionRule& current = impl_->core.rule;
  rule.owner = current.owner;
  for (const NodeId& gone : current.allowed) {
    if (!rule.everyone && !rule.allowed.contains(gone)) rule.refused.insert(gone);
  }
  for (const NodeId& gone : current.refused) {
    if (!rule.allowed.contains(gone)) rule.refused.insert(gone);
  }
  current = std::move(rule);
  impl_->core.mark_refused();
  if (!impl_->copies) impl_->revoking.put_out();
  impl_->overlay.judge_links();
}

Result<void> Protocol::revoke(const Revocation& revocation, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  if (impl_->copies)
    return Error{Errc::usage,
                 "peers of this run have models of their own, no common weights to take anything back from; take the "
                 "node off the list of who is admitted instead"};
  return impl_->revoking.revoke(revocation, nullptr);
}

TimePoint Protocol::next_deadline() const {
  if (impl_->left || !impl_->started) return never;
  if (impl_->copies) return std::min(impl_->overlay.due(), impl_->copies->due());
  return std::min({impl_->overlay.due(), impl_->spread.due(), impl_->probe.due(), impl_->joining.due(),
                   impl_->repair.due(), impl_->evidence.due()});
}

// A copy is of less use the older it is: little may wait.
BacklogMarks Protocol::backlog_marks() const {
  if (impl_->copies) return {limits::link_backlog_high / 8, limits::link_backlog_low / 8};
  return {};
}

bool Protocol::ready_to_train() const { return impl_->copies ? impl_->copies->ready() : impl_->repair.ready(); }

std::string Protocol::waiting_for() const {
  const Overlay& overlay = impl_->overlay;
  if (impl_->core.admitted_count() == 0) {
    const std::string tried = overlay.tried_text();
    if (!overlay.has_contacts() && overlay.met_own_run()) return "every link is lost; training alone";
    if (!overlay.has_contacts()) return "no seed is given and no peer has come yet; training alone";
    if (!ready_to_train()) return str("waiting for a first answer from ", tried);
    return str(overlay.met_own_run() ? "every link is lost" : "no peer has answered yet", " (tried ", tried,
               "); training alone");
  }
  if (impl_->joining.busy()) return impl_->joining.text();
  if (ready_to_train()) return {};
  if (impl_->copies) return impl_->copies->waiting_for();
  const std::uint64_t lacking = impl_->repair.lacking();
  return lacking == 0 ? "waiting for a peer to say what it has"
                      : str("fetching ", lacking, " updates that the others had when we met");
}

std::string Protocol::refused_by_run() const { return impl_->overlay.refused_by_run(); }
std::string Protocol::divergence() const { return impl_->core.divergence; }
const Bytes& Protocol::own_admit() const {
  return impl_->core.members.self().admit;
}

bool Protocol::may_publish(TimePoint now) const {
  std::size_t links = 0, backlogged = 0;
  impl_->core.each_link([&](const Link& link) {
    ++links;
    backlogged += link.backlogged ? 1 : 0;
  });
  if (links == 0) return true;
  if (impl_->copies) return impl_->copies->may_publish();
  return backlogged < links && impl_->core.pace.may_publish(now);
}

bool Protocol::converged() const {
  const ReplicaDigest ours = impl_->core.store.digest();
  return std::all_of(impl_->core.links.begin(), impl_->core.links.end(), [&](const auto& entry) {
    const Link& link = entry.second;
    return !link.admitted() ||
           (link.digest && link.digest->finished && (impl_->copies || link.digest->replica == ours));
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
      peer.digest_equal =
          link.digest->replica == (impl_->copies ? impl_->core.options.copies->digest_of(link.node) : ours);
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

std::size_t Protocol::members() const { return impl_->core.members.all().size(); }

std::size_t Protocol::members_here() const {
  const auto& all = impl_->core.members.all();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const auto& member) { return !member.second.left; }));
}

const Counters& Protocol::counters() const { return impl_->core.counters; }

const Reach& Protocol::reach() const { return impl_->overlay.reach(); }

void Protocol::check_invariants() const {
  impl_->overlay.check_invariants();
  impl_->spread.check_invariants();
  impl_->joining.check_invariants();
  if (impl_->copies) impl_->copies->check_invariants();
  for (const auto& [id, link] : impl_->core.links) {
    RUMOR_CHECK(link.detached == (link.state == Link::State::closing));
    RUMOR_CHECK(link.want_batch.empty());
  }
}

}  // namespace rumor::gossip
