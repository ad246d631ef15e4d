// The ends of audits: counts, charges, proofs and answers to them.
#include <algorithm>
#include <utility>

#include "runtime/audit/proof.h"
#include "runtime/base/text.h"
#include "runtime/node/audits.h"

namespace rumor {

void Audits::conclude(const Outcome& outcome, Turn& turn) {
  switch (job_->purpose) {
    case Purpose::drawn: conclude_drawn(outcome, turn); break;
    case Purpose::proof: conclude_proof(outcome, turn); break;
    case Purpose::charge: conclude_charge(outcome, turn); break;
  }
  if (over_ != never && job_->purpose == Purpose::drawn) {
    last_took_ += job_->took;
    last_counts_.add(outcome.finding);
  }
  job_.reset();
}

void Audits::conclude_drawn(const Outcome& outcome, Turn& turn) {
  if (job_->refused) return;  // nothing was to be expected, so it counts nowhere
  const audit::Segment& segment = job_->segments.front();
  // Only a whole audit says what one costs.
  if (outcome.agreed == segment_ && step_seconds_ > 0)
    audit_steps_ += 0.25 * (to_seconds(job_->took) / step_seconds_ - audit_steps_);
  judge_state(outcome, turn);
  counts_[segment.origin].add(outcome.finding);
  if (outcome.finding.verdict != audit::Verdict::differs) return;
  const UpdateKey update{segment.stream, outcome.seq};
  turn.note(gossip::Note::Level::warning, str("update ", update.seq, " of peer ", segment.origin.brief(),
                                              " is not what its record says: ", outcome.finding.why));
  auto proof = audit::proof_of(segment.origin, update, outcome.view);
  if (!proof || accusations_.size() >= accusations_max) return;
  keep_evidence();
  const TimePoint at = turn.now + std::max(patience_min, patience * job_->took);
  accusations_.emplace(update, std::pair(at, *std::move(proof)));
  core_.protocol->charge(update, segment.origin, turn.now, turn.network);
}

// Nobody can prove that a state was withheld, so this warns and does nothing else.
void Audits::judge_state(const Outcome& outcome, Turn& turn) {
  if (!job_->owed) return;
  const NodeId& origin = job_->segments.front().origin;
  const bool in_time = job_->state && !(job_->slow && outcome.gone && outcome.agreed == 0);
  if (in_time) return withheld_.given(origin);
  if (withheld_.withheld(origin)) turn.note(gossip::Note::Level::warning, withheld_trouble_of(origin));
}

std::string Audits::withheld_trouble_of(const NodeId& peer) const {
  return str("peer ", peer.hex(), " has not given the trainer's state of ", withheld_.in_a_row(peer),
             " drawn segments in a row, so nobody can tell how it trains: it withholds them, is too slow, is out of "
             "reach or keeps restarting. Ask who runs it, or take its updates back as the run's owner: rumor key "
             "revoke RUN ", peer.hex(), " --owner DIR");
}

std::string Audits::withheld_trouble() const {
  const NodeId worst = withheld_.worst();
  return worst.is_zero() ? std::string() : withheld_trouble_of(worst);
}

// Checkers ask for the state, which its origin may no longer give.
void Audits::keep_evidence() {
  if (!job_->state || job_->state->empty()) return;
  const audit::Segment& segment = job_->segments.front();
  const UpdateKey key{segment.stream, segment.first};
  if (held_state(key)) return;
  if (evidence_.size() == evidence_max) evidence_.pop_front();
  evidence_.emplace_back(key, gossip::keep_state(*std::move(job_->state)));
}

void Audits::carry_out_accusations(Turn& turn) {
  for (auto at = accusations_.begin(); at != accusations_.end();) {
    const auto& [time, proof] = at->second;
    const bool gone = over_ != never && !is_linked(proof.node);  // it will not answer any more
    if (time > turn.now && !gone) {
      ++at;
      continue;
    }
    if (!incoming_.replica().is_revoked(at->first))
      if (auto followed = core_.protocol->revoke(proof, turn.now, turn.network); !followed)
        turn.note(gossip::Note::Level::warning, "a false update is not taken back: " + followed.error().text);
    at = accusations_.erase(at);
  }
}

// An earlier false update is another proof's; this one is then built on it.
void Audits::conclude_proof(const Outcome& outcome, Turn& turn) {
  const gossip::Revocation& proof = job_->proof;
  gossip::Checked verdict = gossip::Checked::cannot_tell;
  if (outcome.finding.verdict == audit::Verdict::agrees && !job_->untold) verdict = gossip::Checked::agrees;
  if (outcome.finding.verdict == audit::Verdict::differs && outcome.seq > proof.false_update.seq)
    verdict = gossip::Checked::agrees;
  if (outcome.finding.verdict == audit::Verdict::differs && outcome.seq == proof.false_update.seq) {
    const auto right = audit::proof_of(proof.node, proof.false_update, outcome.view);
    verdict = right == proof ? gossip::Checked::differs : gossip::Checked::agrees;
    keep_evidence();
  }
  core_.protocol->checked(proof, verdict, turn.now, turn.network);
}

void Audits::conclude_charge(const Outcome& outcome, Turn& turn) {
  if (outcome.finding.verdict != audit::Verdict::differs || outcome.seq > core_.own_updates) return;
  turn.note(gossip::Note::Level::error, str("update ", outcome.seq, " of this peer is not what its step makes: ",
                                            outcome.finding.why, "; it is taken back"));
  if (auto done = core_.protocol->withdraw(outcome.seq, turn.now, turn.network); !done)
    turn.note(gossip::Note::Level::error, "it could not be taken back: " + done.error().text);
}

}  // namespace rumor
