#include "gossip/broadcast/download.h"

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

}  // namespace

// ---- from the beginning to the end ----

void Download::resume() {
  const Manifest* kept = core_.store.snapshots().intake();
  if (kept == nullptr) return;
  if (!core_.store.lacks_weights() && core_.store.have().includes(kept->names))
    return core_.store.snapshots().drop_intake();
  hash_ = sha256(kept->encode());
  needed_ = true;
  plan_chunks();
  core_.note(Note::Level::info, str("going on with a download of the weights: ", left_, " of ",
                                    kept->chunks.size(), " chunks are missing"));
}

void Download::await_offer(Link& link, bool needed) {
  RUMOR_CHECK(!busy());
  phase_ = Phase::asking;
  needed_ = needed;
  first_ = link.id;
  donors_[link.id].deadline = core_.now + answer_deadline;
  due_by(core_.now + answer_deadline);
}

void Download::begin(Link& link, const SnapshotOffer& offer) {
  phase_ = Phase::fetching;
  hash_ = offer.hash;
  manifest_bytes_ = offer.manifest_bytes;
  period_ = offer.period;
  Donor& donor = donors_.at(link.id);
  donor.state = Donor::State::giving;
  donor.deadline = core_.now + progress_deadline;
  unasked_ = {0};
  left_ = 1;
  const char* const why = core_.store.lacks_weights() ? "this peer has others than the run's"
                          : needed_                  ? "updates we lack are no longer kept"
                                                     : "cheaper than updates";
  core_.note(Note::Level::info, str("downloading the weights from ", link.node.brief(), ", ", megabytes(offer.bytes),
                                    " MB: ", why));
  want_more(link, donor);
}

void Download::stop() {
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

void Download::abandon() {
  stop();
  core_.store.snapshots().drop_intake();
}

Download::Source Download::end() {
  RUMOR_CHECK(whole());
  const Source source{first_, donors_.size(), period_};
  stop();
  return source;
}

// ---- offers ----

bool Download::on_offer(Link& link, const SnapshotOffer& offer) {
  const auto at = donors_.find(link.id);
  if (at == donors_.end()) {
    if (offer.number != 0) core_.send(link, encode(SnapshotWant{offer.number, 0, true}));
    return false;
  }
  Donor& donor = at->second;
  if (offer.number == 0) {
    on_refusal(link, donor, offer);
    return false;
  }
  if (donor.state == Donor::State::giving) {
    core_.close(link, "offers what it gives already");
    return false;
  }
  donor.number = offer.number;
  if (phase_ == Phase::asking) return true;
  if (offer.hash != hash_) {
    core_.send(link, encode(SnapshotWant{offer.number, 0, true}));
    donor = refusal(false);
    return false;
  }
  period_ = std::max(period_, offer.period);
  donor.state = Donor::State::giving;
  donor.deadline = core_.now + progress_deadline;
  want_more(link, donor);
  return false;
}

void Download::on_refusal(Link& link, Donor& donor, const SnapshotOffer& offer) {
  take_back(donor);
  parts(link).joining.ask_again_at =
      core_.now + look_again + Duration(static_cast<std::int64_t>(core_.prng.below(1'000'000)));
  core_.note(Note::Level::debug, str(link.node.brief(), " gives no snapshot: ", offer.refusal));
  if (!knows_cut_) return stop();
  donor = refusal(offer.later);
}

// ---- parts that come ----

bool Download::on_data(Link& link, const SnapshotData& data) {
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

bool Download::take_part(Link& link, std::uint32_t part, const Bytes& bytes) {
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
  if (knows_cut_ && left_ == 0) return true;
  want_more(link, donor);
  return false;
}

// Whether the cut has the updates for which it was asked. Updates that only the donor had may be gone meanwhile: the
// donor may have taken over a replica without them.
bool Download::helps(const Link& link, const Manifest& manifest) const {
  if (!streams_.cannot_revoke.empty() || core_.store.lacks_weights()) return true;
  const HaveSet& ours = core_.store.have();
  if (!needed_) return !ours.includes(manifest.names);
  const HaveSet lost = ours.missing_from(parts(link).repair.gone);
  return manifest.names.missing_from(lost).count() < lost.count();
}

void Download::take_manifest(Link& link, const Bytes& bytes) {
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
  plan_chunks();
}

// Plans the missing chunks. Requires: the manifest is known.
void Download::plan_chunks() {
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

// ---- time ----

void Download::tick() {
  due_ = never;
  if (whole()) return;
  if (busy()) watch_donors();
  if (busy() && knows_cut_) seek_donors();
}

// ---- what it knows ----

std::string Download::text() const {
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

void Download::check_invariants() const {
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
