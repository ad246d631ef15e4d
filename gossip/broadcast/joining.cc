// The taking half of Joining: when to take a snapshot, of which link to ask it, and its installation.
#include "gossip/broadcast/joining.h"

#include "runtime/base/check.h"
#include "runtime/base/mutant.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

// ---- whether to ask ----

// Returns true when this link has dropped an update that no other link claims to have.
bool Joining::needed(const Link& link) const {
  if (parts(link).repair.gone.empty()) return false;
  HaveSet lost = core_.store.have().missing_from(parts(link).repair.gone);
  core_.each_link([&](const Link& other) {
    if (other.id == link.id || !parts(other).repair.vector || lost.empty()) return;
    const HaveSet offered = parts(other).repair.gone.missing_from(*parts(other).repair.vector);
    lost = offered.missing_from(lost);
  });
  return !lost.empty();
}

bool Joining::holds_all(const HaveSet& keys) const {
  if (keys.count() > held_checks_max) return false;
  for (const auto& [stream, ranges] : keys.streams()) {
    for (const SeqRange& range : ranges) {
      for (std::uint64_t seq = range.first; seq <= range.last; ++seq) {
        if (!core_.store.keeps({stream, seq})) return false;
      }
    }
  }
  return true;
}

bool Joining::cheaper(std::uint64_t lacking, std::uint64_t snapshot_bytes) const {
  const std::uint64_t mean = flow_.mean_bytes() != 0 ? flow_.mean_bytes() : mean_update_bytes_;
  const std::uint64_t each = mean + frame_overhead;
  return (lacking >= choice_min || lacking >= choice_bytes_min / each) && lacking > snapshot_bytes / each;
}

SnapshotAsk Joining::ask_now(bool mutual) const {
  const ReplicaDigest ours = core_.store.digest();
  return {ours.updates, mutual, ours.have_hash};
}

void Joining::consider(Link& link) {
  JoiningLink& its = parts(link).joining;
  RUMOR_CHECK(link.admitted());
  if (busy() || its.serving || its.awaits_cut || !parts(link).repair.vector || core_.now < its.ask_again_at) return;
  const std::uint64_t lacking = core_.store.have().missing_from(*parts(link).repair.vector).count();
  if (lacking == 0 && !stuck()) return;
  const bool need = stuck() || needed(link);
  // While the size of a snapshot is unknown (0), any large lack is worth the question.
  if (!need && !cheaper(lacking, snapshot_bytes_)) return;
  const bool mutual = !holds_all(streams_.keepable(parts(link).repair.vector->missing_from(core_.store.have())));
  if (mutual && !need) return;
  asked_ = ask_now(mutual);
  download_.await_offer(link, need);
  core_.send(link, encode(asked_));
}

// ---- taking what is offered ----

void Joining::on_offer(Link& link, const SnapshotOffer& offer) {
  if (!download_.on_offer(link, offer)) return;
  snapshot_bytes_ = offer.bytes;
  mean_update_bytes_ = offer.mean_update_bytes;
  const HaveSet lacking = core_.store.have().missing_from(*parts(link).repair.vector);
  if (!download_.needed() && !cheaper(lacking.count(), offer.bytes)) return download_.stop();
  download_.begin(link, offer);
}

bool Joining::on_data(Link& link, const SnapshotData& data) { return download_.on_data(link, data) && install(); }

void Joining::link_lost(Link& link) {
  JoiningLink& its = parts(link).joining;
  its.serving.reset();
  its.awaits_cut = false;
  download_.link_lost(link.id);
  due_by(core_.now);
}

bool Joining::install() {
  const Download::Source source = download_.end();
  const HaveSet before = core_.store.have();
  const Result<void> done = core_.store.snapshots().install(source.period);
  if (!done) {
    core_.note(Note::Level::warning, str("the downloaded weights are of no use: ", done.error().text));
    if (Link* donor = core_.find(source.first))
      core_.close(*donor, str("its snapshot is invalid: ", done.error().text));
    return false;
  }
  ++core_.counters.snapshots_installed;
  core_.note(Note::Level::info,
             str("took over the weights of ", source.donors, source.donors == 1 ? " peer" : " peers", " with ",
                 core_.store.have().count(), " updates"));
  if (!mutant(38)) abandoned_.merge(core_.store.have().missing_from(before));
  core_.counters.updates_lost = abandoned_.count();
  if (!abandoned_.empty()) judged_at_ = core_.now + judged_after;
  return true;
}

// Other peers may still have had the updates that a snapshot took from us; those have been pulled by now.
void Joining::judge_lost() {
  abandoned_ = core_.store.have().missing_from(abandoned_);
  core_.counters.updates_lost = abandoned_.count();
  if (core_.now < judged_at_) return;
  judged_at_ = never;
  if (abandoned_.empty()) return;
  core_.note(Note::Level::warning,
             str(abandoned_.count(),
                 " updates are lost: only this side had applied them, and no log held them any more "
                 "when it took over another's weights (a larger log would have saved them)"));
}

// ---- time ----

bool Joining::tick() {
  due_ = never;
  download_.tick();
  if (download_.whole() && install()) return true;  // an earlier process had fetched it all
  const bool serving = watch_joiners();
  bool wanting = false;
  // Also while updates are on their way: their size is known only once the first has come.
  const bool any = missing_.count() != 0 || stuck();
  core_.each_link([&](Link& link) {
    if (parts(link).repair.gone.empty() && parts(link).repair.to_pull.empty() && !any) return;
    wanting = true;
    consider(link);
  });
  if (!abandoned_.empty()) judge_lost();
  if (wanting || serving || download_.knows_cut() || !abandoned_.empty()) due_by(core_.now + look_again);
  return false;
}

}  // namespace rumor::gossip
