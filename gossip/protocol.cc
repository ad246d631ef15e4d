// Protocol: construction, the end of a turn, and what the node does. incoming.cc and answers.cc have the rest.
#include "gossip/protocol.h"

#include <algorithm>

#include "gossip/broadcast/broadcast.h"
#include "gossip/copies/copies.h"
#include "gossip/protocol_impl.h"

namespace rumor::gossip {

namespace {

// The only place that knows which exchanges there are.
std::unique_ptr<Exchange> exchange_of(Core& core, Overlay& overlay) {
  if (core.options.copies != nullptr) return std::make_unique<Copies>(core, *core.options.copies);
  return std::make_unique<Broadcast>(core, overlay);
}

}  // namespace

Protocol::Impl::Impl(Options options, UpdateStore& store, Prng prng)
    : core(std::move(options), store, prng), overlay(core), exchange(exchange_of(core, overlay)) {
  overlay.try_other_links(exchange->links_are_cheap());
}

Protocol::Protocol(Options options, UpdateStore& store, Prng prng)
    : impl_(std::make_unique<Impl>(std::move(options), store, prng)) {}
Protocol::~Protocol() = default;

// ---- the turn ----

void Protocol::Impl::end_turn() {
  for (auto& [id, link] : core.links) {
    if (link.state == Link::State::closing && !link.detached) detach(link);
  }
  exchange->end_turn(!exchange->ready() && started && overlay.alone());
  core.end();
}

void Protocol::Impl::detach(Link& link) {
  link.detached = true;
  exchange->on_detached(link);
  overlay.link_lost(link, link.close_reason);
  link.arriving.reset();
}

void Protocol::on_time(TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  if (impl_->left || !impl_->started) return;
  if (impl_->overlay.due() <= now) impl_->overlay.tick();
  if (impl_->exchange->due() <= now) impl_->exchange->tick();
}

TimePoint Protocol::next_deadline() const {
  if (impl_->left || !impl_->started) return never;
  return std::min(impl_->overlay.due(), impl_->exchange->due());
}

// ---- what the node does ----

void Protocol::start(TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  impl_->started = true;
  impl_->exchange->start();
  impl_->overlay.start();
}

void Protocol::publish(const StoredUpdate& update, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  impl_->exchange->publish(update);
}

void Protocol::set_finished(bool finished, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  if (impl_->core.finished == finished) return;
  impl_->core.finished = finished;
  impl_->exchange->finished_changed();
}

void Protocol::share_buffers(Bytes values, std::uint64_t progress, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  impl_->exchange->share_buffers(std::move(values), progress);
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
  impl_->exchange->rule_changed();
  impl_->overlay.judge_links();
}

Result<void> Protocol::revoke(const Revocation& revocation, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  return impl_->exchange->revoke(revocation);
}

// ---- links to neighbouring stages ----

void Protocol::send_to_stage(LinkId link, OutFrame frame, Lane lane, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  if (Link* const to = impl_->beside(link)) impl_->core.send(*to, std::move(frame), lane);
}

void Protocol::ban_from_stage(LinkId link, const std::string& reason, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  if (Link* const to = impl_->beside(link)) impl_->core.ban(*to, reason);
}

// ---- audits ----

void Protocol::want_state(WantedState wanted, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  impl_->exchange->want_state(std::move(wanted));
}

bool Protocol::gives_state() const { return impl_->exchange->gives_state(); }

void Protocol::charge(const UpdateKey& update, const NodeId& origin, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  impl_->exchange->charge(update, origin);
}

void Protocol::checked(const Revocation& proof, Checked verdict, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  impl_->exchange->checked(proof, verdict);
}

Result<void> Protocol::withdraw(std::uint64_t first, TimePoint now, Outbox& out) {
  const Core& core = impl_->core;
  Revocation withdrawal = Revocation::withdrawal(core.options.self, {core.options.stream, first});
  withdrawal.signature = core.keys.sign(revoke_message(core.membership(), withdrawal));
  return revoke(withdrawal, now, out);
}

}  // namespace rumor::gossip
