#include "gossip/broadcast/revoking.h"

#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

Bytes revocation_frame(const Revocation& revocation) {
  if (revocation.kind == Revocation::Kind::owner) return encode(Revocations{{revocation}});
  return encode(TakenBack{revocation});
}

std::string_view who_takes_back(const Revocation& revocation) {
  switch (revocation.kind) {
    case Revocation::Kind::owner:
      return "the run's owner has taken back ";
    case Revocation::Kind::withdrawn:
      return "their peer found an error in its memory or on its disk, and has taken back ";
    case Revocation::Kind::proven:
      return "an update was proven false, which takes back ";
  }
  return {};
}

}  // namespace

void Revoking::admitted(Link& link) {
  Revocations owners;
  for (const Revocation& known : core_.store.revocations()) {
    if (known.kind == Revocation::Kind::owner) owners.list.push_back(known);
    else core_.send(link, encode(TakenBack{known}));
  }
  if (!owners.list.empty()) core_.send(link, encode(owners));
}

void Revoking::on_revocations(Link& link, const Revocations& message) {
  for (const Revocation& revocation : message.list) {
    if (link.state == Link::State::closing) return;
    follow(link, revocation);
  }
}

void Revoking::follow(Link& link, const Revocation& revocation) {
  const Result<void> taken = revoke(revocation, &link);
  if (!taken.ok() && taken.error().code != Errc::limit)
    core_.ban(link, str("passes on a revocation that is none: ", taken.error().text));
}

Result<void> Revoking::revoke(const Revocation& revocation, const Link* from) {
  const auto& known = core_.store.revocations();
  if (known.contains(revocation) || is_needless(revocation, known)) return {};
  if (!revocation_is_signed(core_.keys, core_.membership(), core_.rule.owner, revocation))
    return Error{Errc::mismatch,
                 str("it takes back ", revocation.text(), ", and is not signed by ",
                     revocation.kind == Revocation::Kind::owner ? "the owner of this run" : "their origin")};
  if (known.size() >= limits::revocations_max) return Error{Errc::limit, "too many revocations"};
  const std::uint64_t before = core_.store.have().count();
  if (const Result<void> done = core_.store.revoke(revocation); !done) {
    core_.note(Note::Level::warning,
               str("cannot take back ", revocation.text(), " by itself: ", done.error().text,
                   "; taking over the weights of a peer that could"));
    streams_.cannot_revoke.insert(revocation);
    joining_.look_later();
    return done;
  }
  core_.note(Note::Level::warning, str(who_takes_back(revocation), revocation.text(), "; ",
                                       before - core_.store.have().count(), " were applied here"));
  flow_.changed(core_.now);
  forget_done();
  missing_.drop_held();
  const Bytes frame = revocation_frame(revocation);
  core_.each_link([&](Link& link) {
    if (&link != from) core_.send(link, frame);
    RepairLink& repair = parts(link).repair;
    if (repair.vector) repair.vector = streams_.wanted(*repair.vector);
    if (repair.first_vector) repair.first_vector = streams_.wanted(*repair.first_vector);
  });
  put_out();
  return {};
}

void Revoking::installed() {
  forget_done();
  put_out();
}

void Revoking::forget_done() {
  const auto& known = core_.store.revocations();
  std::erase_if(streams_.cannot_revoke,
                [&](const Revocation& one) { return known.contains(one) || is_needless(one, known); });
}

void Revoking::put_out() {
  bool news = false;
  for (const Revocation& revocation : core_.store.revocations())
    if (revocation.stream.is_zero()) news |= core_.rule.refused.insert(revocation.node).second;
  if (!news) return;
  streams_.mark_refused();
  overlay_.judge_links();
}

}  // namespace rumor::gossip
