// The taking half of Joining: when to take a snapshot, from which links, and its installation.
#include "gossip/broadcast/joining.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/mutant.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

std::string megabytes(std::uint64_t bytes) {
  return fixed(static_cast<double>(bytes) * 1e-6, 1);
}

// SNAPSHOT_JOIN names a cut to another donor in one frame.
bool fits_a_frame(const HaveSet& names) {
  ByteWriter out;
  names.encode(out);
  return out.size() + Hash256::size + 1 <= limits::frame_bytes_max;
}

}  // namespace

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
  const bool stuck = !streams_.cannot_revoke.empty();
  if (lacking == 0 && !stuck) return;
  needed_ = stuck || needed(link);
  // While the size of a snapshot is unknown (0), any large lack is worth the question.
  if (!needed_ && !cheaper(lacking, snapshot_bytes_)) return;
  const bool mutual = !holds_all(streams_.keepable(parts(link).repair.vector->missing_from(core_.store.have())));
  if (mutual && !needed_) return;
  phase_ = Phase::asking;
  first_ = link.id;
  asked_ = ask_now(mutual);
  donors_[link.id].deadline = core_.now + answer_deadline;
  due_by(core_.now + answer_deadline);
  core_.send(link, encode(asked_));
}

void Joining::start() {
  const Manifest* kept = core_.store.snapshots().intake();
  if (kept == nullptr) return;
  if (core_.store.have().includes(kept->names)) return core_.store.snapshots().drop_intake();
  hash_ = sha256(kept->encode());
  needed_ = true;
  begin_fetching();
  core_.note(Note::Level::info, str("going on with a download of the weights: ", left_, " of ",
                                    kept->chunks.size(), " chunks are missing"));
}

// ---- donors ----

// Any donor may be asked for its parts now.
void Joining::take_back(Donor& donor) {
  unasked_.insert(donor.parts.begin(), donor.parts.end());
  donor.parts.clear();
  donor.arriving = {};
}

void Joining::drop_donor(LinkId link) {
  const auto at = donors_.find(link);
  if (at == donors_.end()) return;
  take_back(at->second);
  donors_.erase(at);
}

// A donor that refused for good is not asked again while this cut is fetched.
Joining::Donor Joining::refusal(bool later) const {
  Donor donor;
  donor.state = Donor::State::refused;
  donor.later = later;
  donor.again = true;
  donor.deadline = later ? core_.now + refused_for : never;
  return donor;
}

// Ends asking and fetching.
void Joining::stop() {
  for (const auto& [id, donor] : donors_) {
    Link* link = core_.find(id);
    if (link != nullptr && donor.number != 0) core_.send(*link, encode(SnapshotWant{donor.number, 0, true}));
  }
  donors_.clear();
  first_.reset();
  unasked_.clear();
  left_ = 0;
  knows_cut_ = false;
  if (!mutant(37)) phase_ = Phase::idle;
  due_by(core_.now + look_again);
}

void Joining::abandon() {
  stop();
  core_.store.snapshots().drop_intake();
}

void Joining::link_lost(Link& link) {
  JoiningLink& its = parts(link).joining;
  its.serving.reset();
  its.awaits_cut = false;
  drop_donor(link.id);
  if (busy() && !knows_cut_ && donors_.empty()) stop();
  due_by(core_.now);
}

void Joining::on_offer(Link& link, const SnapshotOffer& offer) {
  const auto at = donors_.find(link.id);
  if (at == donors_.end()) {
    if (offer.number != 0) core_.send(link, encode(SnapshotWant{offer.number, 0, true}));
    return;
  }
  Donor& donor = at->second;
  if (offer.number == 0) {
    take_back(donor);
    parts(link).joining.ask_again_at =
        core_.now + look_again + Duration(static_cast<std::int64_t>(core_.prng.below(1'000'000)));
    core_.note(Note::Level::debug, str(link.node.brief(), " gives no snapshot: ", offer.refusal));
    if (!knows_cut_) return stop();
    donor = refusal(offer.later);
    return;
  }
  if (donor.state == Donor::State::giving) return core_.close(link, "offers what it gives already");
  donor.number = offer.number;
  if (phase_ == Phase::asking) return first_offer(link, offer);
  if (offer.hash != hash_) {
    core_.send(link, encode(SnapshotWant{offer.number, 0, true}));
    donor = refusal(false);
    return;
  }
  period_ = std::max(period_, offer.period);
  donor.state = Donor::State::giving;
  donor.deadline = core_.now + progress_deadline;
  want_more(link, donor);
}

void Joining::first_offer(Link& link, const SnapshotOffer& offer) {
  snapshot_bytes_ = offer.bytes;
  mean_update_bytes_ = offer.mean_update_bytes;
  const HaveSet lacking = core_.store.have().missing_from(*parts(link).repair.vector);
  if (!needed_ && !cheaper(lacking.count(), offer.bytes)) return stop();
  phase_ = Phase::fetching;
  hash_ = offer.hash;
  manifest_bytes_ = offer.manifest_bytes;
  period_ = offer.period;
  Donor& donor = donors_.at(link.id);
  donor.state = Donor::State::giving;
  donor.deadline = core_.now + progress_deadline;
  unasked_ = {0};
  left_ = 1;
  core_.note(Note::Level::info,
             str("downloading the weights from ", link.node.brief(), ", ", megabytes(offer.bytes),
                 " MB: ", needed_ ? "updates we lack are no longer kept" : "cheaper than updates"));
  want_more(link, donor);
}

void Joining::want_more(Link& link, Donor& donor) {
  while (donor.parts.size() < parts_in_flight && !unasked_.empty()) {
    donor.parts.push_back(*unasked_.begin());
    unasked_.erase(unasked_.begin());
    core_.send(link, encode(SnapshotWant{donor.number, donor.parts.back(), false}));
  }
}

// ---- parts that come ----

bool Joining::on_data(Link& link, const SnapshotData& data) {
  const auto at = donors_.find(link.id);
  if (at == donors_.end() || at->second.state != Donor::State::giving) return false;
  Donor& donor = at->second;
  if (data.number != donor.number) return false;
  const std::size_t bytes_max = data.part == 0 ? manifest_bytes_ : limits::packed_chunk_bytes_max;
  if (donor.parts.empty() || donor.parts.front() != data.part ||
      donor.arriving.size() + data.bytes.size() > bytes_max) {
    core_.close(link, "sends a snapshot in wrong pieces");
    return false;
  }
  donor.arriving.insert(donor.arriving.end(), data.bytes.begin(), data.bytes.end());
  donor.deadline = core_.now + progress_deadline;
  link.data_at = link.progress_at = core_.now;
  if (data.more) return false;
  const Bytes part = std::move(donor.arriving);
  donor.arriving = {};
  return take_part(link, data.part, part);
}

bool Joining::take_part(Link& link, std::uint32_t part, const Bytes& bytes) {
  if (part == 0) {
    take_manifest(link, bytes);
  } else if (const Result<void> taken = core_.store.snapshots().take_chunk(part - 1, bytes); !taken) {
    const bool is_its_cut = first_ == link.id;  // then perhaps no peer can make it
    core_.ban(link, str("gives another snapshot than it promised: ", taken.error().text));
    if (is_its_cut && busy()) abandon();
    return false;
  }
  if (!link.admitted() || !busy()) return false;
  Donor& donor = donors_.at(link.id);
  if (part != 0) {
    donor.parts.erase(donor.parts.begin());
    --left_;
    progress_at_ = core_.now;
  }
  if (knows_cut_ && left_ == 0) return install();
  want_more(link, donor);
  return false;
}

// Whether the cut has the updates for which it was asked. Updates that only the donor had may be gone meanwhile: the
// donor may have taken over a replica without them.
bool Joining::helps(const Link& link, const Manifest& manifest) const {
  if (!streams_.cannot_revoke.empty()) return true;
  const HaveSet& ours = core_.store.have();
  if (!needed_) return !ours.includes(manifest.names);
  const HaveSet lost = ours.missing_from(parts(link).repair.gone);
  return manifest.names.missing_from(lost).count() < lost.count();
}

void Joining::take_manifest(Link& link, const Bytes& bytes) {
  if (sha256(bytes) != hash_) return core_.ban(link, "gives a snapshot without the hash it promised");
  const Result<Manifest> manifest = Manifest::decode(bytes);
  if (!manifest) return core_.ban(link, str("gives an invalid snapshot: ", manifest.error().text));
  if (!helps(link, *manifest)) {
    parts(link).joining.ask_again_at = core_.now + refused_for;  // no honest donor offers this twice
    return stop();
  }
  if (const Result<void> begun = core_.store.snapshots().begin_intake(*manifest); !begun)
    return core_.close(link, str("its snapshot is of no use: ", begun.error().text));
  Donor& donor = donors_.at(link.id);
  donor.parts.clear();
  begin_fetching();
}

// Plans the missing chunks. Requires: the manifest is known.
void Joining::begin_fetching() {
  const SnapshotPort& snapshots = core_.store.snapshots();
  phase_ = Phase::fetching;
  knows_cut_ = true;
  progress_at_ = core_.now;
  unasked_.clear();
  for (std::uint32_t n = 0; n < snapshots.intake()->chunks.size(); ++n)
    if (!snapshots.holds_chunk(n)) unasked_.insert(n + 1);
  left_ = unasked_.size();
  due_by(core_.now);
}

bool Joining::install() {
  SnapshotPort& snapshots = core_.store.snapshots();
  const std::optional<LinkId> first = first_;
  const std::size_t donors = donors_.size();
  stop();
  const HaveSet before = core_.store.have();
  const Result<void> done = snapshots.install(period_);
  if (!done) {
    core_.note(Note::Level::warning, str("the downloaded weights are of no use: ", done.error().text));
    if (Link* donor = core_.find(first))
      core_.close(*donor, str("its snapshot is invalid: ", done.error().text));
    return false;
  }
  ++core_.counters.snapshots_installed;
  core_.note(Note::Level::info, str("took over the weights of ", donors, donors == 1 ? " peer" : " peers",
                                    " with ", core_.store.have().count(), " updates"));
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

// Gives up on silent donors; donors that refused may be asked again.
void Joining::watch_donors() {
  for (auto at = donors_.begin(); at != donors_.end();) {
    Donor& donor = at->second;
    const bool idle = donor.state == Donor::State::giving && donor.parts.empty();
    const bool refused = donor.state == Donor::State::refused;
    if (idle || refused || core_.now < donor.deadline) {
      if (!idle && !refused) due_by(donor.deadline);
      ++at;
      continue;
    }
    Link* link = core_.find(at->first);
    if (link != nullptr) parts(*link).joining.ask_again_at = core_.now + progress_deadline;
    if (link != nullptr && donor.number != 0) core_.send(*link, encode(SnapshotWant{donor.number, 0, true}));
    take_back(donor);
    if (knows_cut_) {
      donor = refusal(true);  // else a donor that never answers could keep us at this cut for ever
      donor.silent = true;
      ++at;
    } else {
      at = donors_.erase(at);
    }
  }
  if (!knows_cut_ && donors_.empty()) stop();
}

// Asks further links that may be able to make this cut.
void Joining::seek_donors() {
  const Manifest& manifest = *core_.store.snapshots().intake();
  const bool asks = fits_a_frame(manifest.names);
  std::size_t useful = 0, hopeful = 0, refused = 0, silent = 0, links = 0;
  for (const auto& [id, donor] : donors_) {
    const bool no = donor.state == Donor::State::refused;
    useful += no ? 0 : 1;
    hopeful += donor.state == Donor::State::giving || (!no && !donor.again) ? 1 : 0;
    refused += no && !donor.later ? 1 : 0;
    silent += donor.silent ? 1 : 0;
  }
  core_.each_link([&](Link& link) {
    JoiningLink& its = parts(link).joining;
    ++links;
    const auto at = donors_.find(link.id);
    const bool known = at != donors_.end();
    if (known && at->second.state == Donor::State::giving) want_more(link, at->second);
    const bool again = known && at->second.state == Donor::State::refused && core_.now >= at->second.deadline;
    const bool may = asks && (!known || again) && !its.serving && core_.now >= its.ask_again_at;
    if (!may || useful >= donors_max || unasked_.empty()) return;
    ++useful;
    hopeful += again ? 0 : 1;
    Donor& donor = donors_[link.id];
    donor.state = Donor::State::asked;
    donor.deadline = core_.now + answer_deadline;
    core_.send(link, encode(SnapshotJoin{hash_, manifest.names}));
  });
  const Duration waited = core_.now - progress_at_;
  const bool nobody = links > 0 && hopeful == 0;
  const Duration patience = silent == 0 ? answer_deadline : silence_deadline;
  if ((nobody && refused == links && waited >= given_up_after) || (nobody && waited >= patience)) {
    core_.note(Note::Level::info, "nobody can go on with the download of the weights; beginning a new one");
    abandon();
  }
}

bool Joining::tick() {
  due_ = never;
  if (knows_cut_ && left_ == 0 && install()) return true;  // an earlier process had fetched it all
  if (busy()) watch_donors();
  if (busy() && knows_cut_) seek_donors();
  const bool serving = watch_joiners();
  bool wanting = false;
  // Also while updates are on their way: their size is known only once the first has come.
  const bool any = streams_.missing_total != 0 || !streams_.cannot_revoke.empty();
  core_.each_link([&](Link& link) {
    if (parts(link).repair.gone.empty() && parts(link).repair.to_pull.empty() && !any) return;
    wanting = true;
    consider(link);
  });
  if (!abandoned_.empty()) judge_lost();
  if (wanting || serving || knows_cut_ || !abandoned_.empty()) due_by(core_.now + look_again);
  return false;
}

std::string Joining::text() const {
  if (phase_ == Phase::asking) {
    const Link* donor = core_.find(first_);
    return donor == nullptr ? "" : str("asking ", donor->node.brief(), " for its weights");
  }
  if (!knows_cut_) return busy() ? "downloading the weights" : "";
  const std::uint64_t bytes = core_.store.snapshots().intake()->bytes;
  const std::uint64_t left = std::min(bytes, left_ * chunk_bytes_of(bytes));
  const auto giving = std::count_if(donors_.begin(), donors_.end(), [](const auto& entry) {
    return entry.second.state == Donor::State::giving;
  });
  return str("downloading the weights from ", giving,
             giving == 1 ? " peer: " : " peers: ", megabytes(bytes - left), " of ", megabytes(bytes), " MB");
}

void Joining::check_invariants() const {
  RUMOR_CHECK(knows_cut_ == (knows_cut_ && core_.store.snapshots().intake() != nullptr));
  std::size_t asked = 0;
  for (const auto& [id, donor] : donors_) {
    RUMOR_CHECK(donor.parts.size() <= parts_in_flight);
    RUMOR_CHECK(donor.arriving.size() <= limits::manifest_bytes_max);
    asked += donor.parts.size();
  }
  RUMOR_CHECK(asked + unasked_.size() == left_);
}

}  // namespace rumor::gossip
