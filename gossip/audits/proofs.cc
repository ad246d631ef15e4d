#include "gossip/audits/proofs.h"

#include <algorithm>
#include <utility>

#include "runtime/base/text.h"

namespace rumor::gossip {

std::vector<Proofs::Waiting>::iterator Proofs::find(const Revocation& proof) {
  return std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& one) { return one.proof == proof; });
}

void Proofs::on_proof(Link& link, const Revocation& proof) {
  if (core_.store.revocations().contains(proof) || is_needless(proof, core_.store.revocations())) return;
  if (refuted_.contains(proof)) return core_.ban(link, "passes on a proof that proves nothing");
  auto at = find(proof);
  if (at != waiting_.end()) {
    at->senders.insert(link.node);
    if (at->check_at != never && most_say_so(*at)) accept(at);
    return;
  }
  if (waiting_.size() >= waiting_max) return;
  waiting_.push_back({proof, {link.node}});
  core_.options.audits->check(proof, link.node);
}

void Proofs::checked(const Revocation& proof, Checked verdict) {
  const auto at = find(proof);
  if (at == waiting_.end()) return;
  if (is_needless(proof, core_.store.revocations())) return void(waiting_.erase(at));
  if (verdict == Checked::differs) return accept(at);
  if (verdict == Checked::agrees) return refute(at);
  if (most_say_so(*at)) return accept(at);
  at->check_at = core_.now + check_again;
  due_ = std::min(due_, at->check_at);
}

bool Proofs::most_say_so(const Waiting& waiting) const {
  std::size_t links = 0, say_so = 0;
  core_.each_link([&](const Link& link) {
    ++links;
    say_so += waiting.senders.contains(link.node) ? 1 : 0;
  });
  return 2 * say_so > links && say_so >= std::min<std::size_t>(links, 2);
}

void Proofs::accept(std::vector<Waiting>::iterator waiting) {
  const Revocation proof = std::move(waiting->proof);
  waiting_.erase(waiting);
  follow_(proof);
}

void Proofs::refute(std::vector<Waiting>::iterator waiting) {
  const Waiting refuted = std::move(*waiting);
  waiting_.erase(waiting);
  if (refuted_.size() < refuted_max) refuted_.insert(refuted.proof);
  core_.note(Note::Level::warning, str("a proof against ", refuted.proof.node.brief(), " is false: its update ",
                                       refuted.proof.false_update.seq, " of stream ",
                                       refuted.proof.false_update.stream.brief(), " is as it should be"));
  core_.each_link([&](Link& link) {
    if (refuted.senders.contains(link.node)) core_.ban(link, "passes on a proof that proves nothing");
  });
}

void Proofs::tick() {
  due_ = never;
  for (Waiting& one : waiting_) {
    if (one.check_at <= core_.now) {
      one.check_at = never;
      core_.options.audits->check(one.proof, *one.senders.begin());
    }
    due_ = std::min(due_, one.check_at);
  }
}

}  // namespace rumor::gossip
