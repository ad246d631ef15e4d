#include "gossip/broadcast/revoking.h"

#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

std::string name_of(const Revocation& revocation) {
  if (revocation.stream.is_zero()) return str("all updates of ", revocation.node.brief());
  return str("updates ", revocation.range.first, " to ", revocation.range.last, " of stream ",
             revocation.stream.brief(), " of ", revocation.node.brief());
}

}  // namespace

void Revoking::admitted(Link& link) {
  const auto& known = core_.store.revocations();
  if (!known.empty()) core_.send(link, encode(Revocations{{known.begin(), known.end()}}));
}

void Revoking::on_revocations(Link& link, const Revocations& message) {
  for (const Revocation& revocation : message.list) {
    const Result<void> taken = revoke(revocation, &link);
    if (taken.ok() || taken.error().code == Errc::limit) continue;
    return core_.ban(link, str("passes on a revocation that is none: ", taken.error().text));
  }
}

Result<void> Revoking::revoke(const Revocation& revocation, Link* from) {
  const auto& known = core_.store.revocations();
  if (known.contains(revocation)) return {};
  if (!core_.rule.owner ||
      !revocation_is_signed(core_.keys, core_.options.run, *core_.rule.owner, revocation))
    return Error{Errc::mismatch, str("it takes back ", name_of(revocation),
                                     ", and is not signed by the owner of "
                                     "this run")};
  if (known.size() >= limits::revocations_max) return Error{Errc::limit, "too many revocations"};
  const std::uint64_t before = core_.store.have().count();
  if (const Result<void> done = core_.store.revoke(revocation); !done) {
    core_.note(Note::Level::warning,
               str("cannot take back ", name_of(revocation), " by itself: ", done.error().text,
                   "; taking over the weights of a peer that could"));
    streams_.cannot_revoke.insert(revocation);
    joining_.look_later();
    return done;
  }
  core_.note(Note::Level::warning, str("the run's owner has taken back ", name_of(revocation), "; ",
                                       before - core_.store.have().count(), " were applied here"));
  flow_.changed(core_.now);
  streams_.cannot_revoke.erase(revocation);
  missing_.drop_held();
  const Bytes frame = encode(Revocations{{revocation}});
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
  for (const Revocation& revocation : core_.store.revocations()) streams_.cannot_revoke.erase(revocation);
  put_out();
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
