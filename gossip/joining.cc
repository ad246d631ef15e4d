#include "gossip/joining.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/mutant.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

std::uint64_t chunk_count(std::uint64_t bytes) {
  return (bytes + limits::snapshot_chunk_bytes - 1) / limits::snapshot_chunk_bytes;
}

// The side with fewer updates takes the other's replica; of equals the lower node id.
bool yields(std::uint64_t updates, const NodeId& node, std::uint64_t other_updates,
            const NodeId& other_node) {
  if (mutant(36)) return true;
  return updates != other_updates ? updates < other_updates : node < other_node;
}

std::string megabytes(std::uint64_t bytes) { return fixed(static_cast<double>(bytes) * 1e-6, 1); }

}  // namespace

// ---- taking ----

// A key that this link no longer has and that no other link claims to have.
bool Joining::needed(const Link& link) const {
  if (link.gone.empty()) return false;
  HaveSet lost = core_.store.have().missing_from(link.gone);
  core_.each_link([&](const Link& other) {
    if (other.id == link.id || !other.vector || lost.empty()) return;
    const HaveSet offered = other.gone.missing_from(*other.vector);
    lost = offered.missing_from(lost);
  });
  return !lost.empty();
}

bool Joining::holds_all(const HaveSet& keys) const {
  if (keys.count() > held_checks_max) return false;
  for (const auto& [stream, ranges] : keys.streams()) {
    for (const SeqRange& range : ranges) {
      for (std::uint64_t seq = range.first; seq <= range.last; ++seq) {
        if (!core_.store.find({stream, seq})) return false;
      }
    }
  }
  return true;
}

bool Joining::cheaper(std::uint64_t lacking, std::uint64_t snapshot_bytes) const {
  const std::uint64_t mean = core_.mean_update_bytes() != 0 ? core_.mean_update_bytes() : mean_update_bytes_;
  return lacking >= choice_min && lacking > snapshot_bytes / (mean + frame_overhead);
}

void Joining::consider(Link& link) {
  RUMOR_CHECK(link.admitted());
  if (busy() || link.serving || !link.vector || core_.now < link.ask_again_at) return;
  const std::uint64_t lacking = core_.store.have().missing_from(*link.vector).count();
  const bool stuck = !core_.cannot_revoke.empty();
  if (lacking == 0 && !stuck) return;
  needed_ = stuck || needed(link);
  // With no size known yet (0) any large lack is worth the question.
  if (!needed_ && (lacking < choice_min || !cheaper(lacking, snapshot_bytes_))) return;
  const bool mutual = !holds_all(core_.keepable(link.vector->missing_from(core_.store.have())));
  if (mutual && !needed_) return;
  phase_ = Phase::asking;
  donor_ = link.id;
  asked_ = {core_.store.have().count(), mutual};
  deadline_ = core_.now + progress_deadline;
  due_ = std::min(due_, deadline_);
  core_.send(link, encode(asked_));
}

void Joining::stop() {
  if (!mutant(37)) phase_ = Phase::idle;
  donor_.reset();
  buffer_ = {};
  deadline_ = never;
  due_ = std::min(due_, core_.now + look_again);
}

void Joining::on_offer(Link& link, const SnapshotOffer& offer) {
  if (!busy() || donor_ != link.id) return;
  if (offer.number == 0) {
    link.ask_again_at =
        core_.now + look_again + Duration(static_cast<std::int64_t>(core_.prng.below(1'000'000)));
    core_.note(Note::Level::debug, str(link.node.brief(), " gives no snapshot: ", offer.refusal));
    return stop();
  }
  if (phase_ != Phase::asking) return;
  snapshot_bytes_ = offer.bytes;
  mean_update_bytes_ = offer.mean_update_bytes;
  const HaveSet lacking = core_.store.have().missing_from(*link.vector);
  if (!needed_ && !cheaper(lacking.count(), offer.bytes)) return stop();
  phase_ = Phase::fetching;
  offer_ = offer;
  next_want_ = next_chunk_ = 0;
  deadline_ = core_.now + progress_deadline;
  core_.note(Note::Level::info,
             str("downloading the weights from ", link.node.brief(), ", ", megabytes(offer.bytes),
                 " MB: ", needed_ ? "updates we lack are no longer kept" : "cheaper than updates"));
  want_more(link);
}

void Joining::want_more(Link& link) {
  while (next_want_ < chunk_count(offer_.bytes) && next_want_ < next_chunk_ + chunks_in_flight) {
    core_.send(link, encode(SnapshotWant{offer_.number, next_want_++}));
  }
}

bool Joining::on_data(Link& link, const SnapshotData& data) {
  if (phase_ != Phase::fetching || donor_ != link.id || data.number != offer_.number) return false;
  const std::uint64_t left = offer_.bytes - buffer_.size();
  if (data.chunk != next_chunk_ ||
      data.bytes.size() != std::min<std::uint64_t>(left, limits::snapshot_chunk_bytes)) {
    core_.close(link, "sends a snapshot in wrong pieces");
    return false;
  }
  buffer_.insert(buffer_.end(), data.bytes.begin(), data.bytes.end());
  ++next_chunk_;
  deadline_ = core_.now + progress_deadline;
  link.data_at = core_.now;
  if (buffer_.size() == offer_.bytes) return install(link);
  want_more(link);
  return false;
}

bool Joining::install(Link& link) {
  const Bytes snapshot = std::move(buffer_);
  const Hash256 promised = offer_.hash;
  stop();
  if (sha256(snapshot) != promised) {
    core_.close(link, "its snapshot does not have the hash it promised");
    return false;
  }
  const HaveSet before = core_.store.have();
  const Result<void> done = core_.store.install(snapshot);
  if (!done) {
    core_.close(link, str("its snapshot is invalid: ", done.error().text));
    return false;
  }
  ++core_.counters.snapshots_installed;
  core_.note(Note::Level::info, str("took over the weights of ", link.node.brief(), " with ",
                                    core_.store.have().count(), " updates"));
  if (!mutant(38)) abandoned_.merge(core_.store.have().missing_from(before));
  core_.counters.updates_lost = abandoned_.count();
  if (!abandoned_.empty()) judged_at_ = core_.now + judged_after;
  return true;
}

// Others may still have had what a snapshot took from us; then it has been pulled by now.
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

// ---- giving ----

// Empty when the link may have a snapshot.
std::string Joining::reason_to_refuse(Link& link, const SnapshotAsk& ask) {
  if (phase_ == Phase::fetching) return "it is fetching one itself";
  std::size_t serving = 0;
  core_.each_link([&](const Link& other) { serving += other.serving && other.id != link.id ? 1 : 0; });
  if (serving >= joiners_max) return "it serves others";
  const NodeId& self = core_.options.self;
  if (phase_ == Phase::asking && donor_ == link.id) {
    // The asks have crossed. Both sides compare the same numbers, so exactly one gives.
    const bool they_take =
        ask.mutual != asked_.mutual ? !ask.mutual : yields(ask.updates, link.node, asked_.updates, self);
    if (!they_take) return "the asker's replica is the one to keep";
    stop();
    return {};
  }
  if (ask.mutual && !yields(ask.updates, link.node, core_.store.have().count(), self)) {
    return "the asker's replica is the one to keep";
  }
  return {};
}

void Joining::on_ask(Link& link, const SnapshotAsk& ask) {
  SnapshotOffer offer;
  offer.refusal = reason_to_refuse(link, ask);
  if (!offer.refusal.empty()) return core_.send(link, encode(offer));
  const std::shared_ptr<const Bytes> snapshot = core_.store.snapshot();
  if (snapshot == nullptr || snapshot->empty() || snapshot->size() > limits::snapshot_bytes_max) {
    offer.refusal = "it has none to give";
    return core_.send(link, encode(offer));
  }
  if (snapshot != hashed_) {
    hashed_ = snapshot;
    hash_ = sha256(*snapshot);
  }
  if (++offers_ == 0) offers_ = 1;
  offer = {offers_, hash_, snapshot->size(), core_.store.have().count(), core_.mean_update_bytes(), {}};
  link.serving = Serving{offers_, snapshot, core_.now};
  due_ = std::min(due_, core_.now + offer_kept);
  core_.send(link, encode(offer));
}

void Joining::on_want(Link& link, const SnapshotWant& want) {
  if (!link.serving || link.serving->number != want.number) {
    SnapshotOffer offer;
    offer.refusal = "the offer has expired";
    return core_.send(link, encode(offer));
  }
  const Bytes& snapshot = *link.serving->snapshot;
  const std::uint64_t chunks = chunk_count(snapshot.size());
  if (want.chunk >= chunks) return core_.close(link, "asks for a chunk beyond the end");
  const std::size_t first = std::size_t{want.chunk} * limits::snapshot_chunk_bytes;
  const std::size_t size = std::min(limits::snapshot_chunk_bytes, snapshot.size() - first);
  core_.send(link, encode(SnapshotData{want.number, want.chunk, BytesView(snapshot).subspan(first, size)}));
  link.serving->used_at = core_.now;
  if (want.chunk + 1 == chunks) link.serving.reset();
}

// ---- time ----

void Joining::link_lost(const Link& link) {
  if (donor_ == link.id) stop();
}

void Joining::tick() {
  due_ = never;
  if (busy() && core_.now >= deadline_) {
    if (Link* donor = core_.find(donor_)) donor->ask_again_at = core_.now + progress_deadline;
    stop();
  }
  bool wanting = false;
  bool serving = false;
  core_.each_link([&](Link& link) {
    if (link.serving && core_.now - link.serving->used_at >= offer_kept) link.serving.reset();
    serving = serving || link.serving.has_value();
    if (link.gone.empty() && link.to_pull.empty() && core_.cannot_revoke.empty()) return;
    wanting = true;
    consider(link);
  });
  if (!serving) hashed_.reset();
  if (!abandoned_.empty()) judge_lost();
  if (wanting || serving || !abandoned_.empty()) due_ = std::min(due_, core_.now + look_again);
  due_ = std::min(due_, deadline_);
}

std::string Joining::text() const {
  const Link* donor = core_.find(donor_);
  if (donor == nullptr) return {};
  if (phase_ == Phase::asking) return str("asking ", donor->node.brief(), " for its weights");
  return str("downloading the weights from ", donor->node.brief(), ": ", megabytes(buffer_.size()), " of ",
             megabytes(offer_.bytes), " MB");
}

}  // namespace rumor::gossip
