#include "gossip/broadcast/broadcast.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/mutant.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

Broadcast::Broadcast(Core& core, Overlay& overlay)
    : core_(core),
      state_(core),
      spread_(state_),
      probe_(state_, overlay),
      joining_(state_),
      evidence_(state_, overlay),
      repair_(state_, spread_, joining_, evidence_),
      revoking_(state_, overlay, joining_),
      // Where the log lacks an update to take back, a snapshot brings the weights without it.
      proofs_(core, [this](const Revocation& proof) { (void)revoking_.revoke(proof, nullptr); }),
      states_(core, overlay),
      buffers_(core) {}

// ---- links ----

void Broadcast::on_admitted(Link& link, const Hello& hello) {
  revoking_.admitted(link);
  repair_.admitted(link, hello);
  buffers_.admitted(link);
  states_.admitted(link);
}

void Broadcast::on_detached(Link& link) {
  if (!mutant(21)) spread_.link_lost(link);
  joining_.link_lost(link);
  buffers_.link_lost(link);
  states_.link_lost(link);
  state_.pace.link_lost(link.id);
  parts(link).spread.to_serve.clear();
  parts(link).spread.announcements.clear();
  state_.streams.forget_brought(link);
}

// ---- frames ----

void Broadcast::on_frame(Link& link, const Frame& frame) {
  dispatch_frame<FrameUse::broadcast>(frame, [&](const auto& message) { on(link, message); });
}

void Broadcast::on(Link& link, const Data& message) {
  spread_.on_data(link, message);
  after_data(link);
}

void Broadcast::on(Link& link, const DataMore& message) {
  spread_.on_data_more(link, message);
  after_data(link);
}

void Broadcast::after_data(Link& link) {
  evidence_.look_at(spread_.take_suspects());
  if (!link.admitted() || parts(link).repair.to_pull.empty()) return;
  if (state_.flow.learns_bytes()) joining_.consider(link);
  if (parts(link).spread.asked.size() <= spread_.window(link) / 2) repair_.refill(link);
}

void Broadcast::on(Link& link, const NotAvailable& message) {
  repair_.on_not_available(link, message);
  if (!link.admitted()) return;
  spread_.on_not_available(link, message);
  if (!link.admitted()) return;
  joining_.consider(link);
  joining_.look_later();
}

void Broadcast::on(Link& link, const SnapshotData& message) {
  if (joining_.on_data(link, message)) installed();
}

void Broadcast::on(Link& link, const TakenBack& message) {
  if (core_.options.audits == nullptr) return;
  if (message.revocation.kind == Revocation::Kind::proven) return proofs_.on_proof(link, message.revocation);
  revoking_.follow(link, message.revocation);
}

// Only the origin can withdraw an update, and only once it has published it.
void Broadcast::on(Link&, const Charge& message) {
  const bool ours = message.update.stream == core_.options.stream && message.update.seq <= core_.published;
  if (ours && core_.options.audits != nullptr) core_.options.audits->charged(message.update);
}

void Broadcast::charge(const UpdateKey& update, const NodeId& origin) {
  if (Link* const link = core_.link_to(origin)) core_.send(*link, encode(Charge{update}));
}

void Broadcast::installed() {
  revoking_.installed();
  repair_.installed();
}

// ---- the node's own part ----

void Broadcast::start() {
  revoking_.put_out();
  joining_.start();
}

void Broadcast::publish(const StoredUpdate& update) {
  spread_.publish(update);
  probe_.published();
}

bool Broadcast::may_publish(TimePoint now) const {
  bool room = false;
  core_.each_link([&](const Link& link) { room = room || !link.backlogged; });
  return room && state_.pace.may_publish(now);
}

double Broadcast::density_factor() const {
  return static_cast<double>(state_.pace.density_factor()) / static_cast<double>(OriginPace::whole);
}

void Broadcast::rule_changed() {
  state_.streams.mark_refused();
  revoking_.put_out();
}

// ---- time ----

void Broadcast::end_turn(bool alone) {
  // Range pulls rest while a snapshot is under way.
  if (was_busy_ && !joining_.busy()) core_.each_link([&](Link& link) { repair_.refill(link); });
  was_busy_ = joining_.busy();
  if (std::exchange(buffers_before_, core_.buffers_hash) != core_.buffers_hash) state_.flow.changed(core_.now);
  if (!repair_.ready() || state_.flow.changed_at == core_.now) repair_.flush(alone);
  spread_.flush();
  buffers_.flush();
}

void Broadcast::tick() {
  const TimePoint now = core_.now;
  if (spread_.due() <= now) spread_.tick();
  if (probe_.due() <= now) probe_.tick();
  if (joining_.due() <= now && joining_.tick()) installed();
  if (repair_.due() <= now) repair_.tick();
  if (evidence_.due() <= now) evidence_.tick();
  if (buffers_.due() <= now) buffers_.flush();
  if (proofs_.due() <= now) proofs_.tick();
  if (states_.due() <= now) states_.tick();
}

TimePoint Broadcast::due() const {
  return std::min({spread_.due(), probe_.due(), joining_.due(), repair_.due(), evidence_.due(), buffers_.due(),
                   proofs_.due(), states_.due()});
}

// ---- what it knows ----

std::string Broadcast::waiting_for() const {
  if (joining_.busy()) return joining_.text();
  if (ready()) return {};
  if (state_.core.store.lacks_weights()) return "waiting for a peer that has the run's weights";
  const std::uint64_t lacking = repair_.lacking();
  return lacking == 0 ? "waiting for a peer to say what it has"
                      : str("fetching ", lacking, " updates that the others had when we met");
}

bool Broadcast::has_converged(const Link& link, const ReplicaDigest& ours) const {
  return link.digest->replica == ours && buffers_.has_converged(link);
}

void Broadcast::check_invariants() const {
  state_.missing.check_invariants();
  spread_.check_invariants();
  joining_.check_invariants();
  for (const auto& [id, link] : core_.links) RUMOR_CHECK(parts(link).spread.want_batch.empty());
}

}  // namespace rumor::gossip
