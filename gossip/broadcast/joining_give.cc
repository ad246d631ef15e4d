// The giving half of Joining: which links get a cut, making it bit by bit, and serving its parts.
#include <algorithm>

#include "gossip/broadcast/joining.h"
#include "runtime/base/check.h"
#include "runtime/base/mutant.h"

namespace rumor::gossip {

namespace {

// The side with fewer updates takes the other's replica; with equal numbers, the side of lower hash. The content of a
// replica decides, never its owner: else two nodes that yield to no neighbour could hold different replicas, and a node
// between them would take one and then the other, for ever.
bool yields(const SnapshotAsk& one, const SnapshotAsk& other) {
  if (mutant(36)) return true;
  return one.updates != other.updates ? one.updates < other.updates : one.have_hash < other.have_hash;
}

}  // namespace

std::string Joining::too_busy(const Link& link) const {
  if (download_.fetching()) return "it is fetching one itself";
  std::size_t serving = 0;
  core_.each_link([&](const Link& other) {
    serving += (parts(other).joining.serving || parts(other).joining.awaits_cut) && other.id != link.id ? 1 : 0;
  });
  return serving >= joiners_max ? "it serves others" : "";
}

// Returns an empty text when the link may have a snapshot.
std::string Joining::reason_to_refuse(Link& link, const SnapshotAsk& ask) {
  if (core_.store.lacks_weights()) return "it lacks the weights itself";
  if (std::string busy = too_busy(link); !busy.empty()) return busy;
  if (download_.awaits_offer(link.id)) {
    // The asks have crossed. Both sides compare the same numbers, so exactly one gives.
    const bool they_take = ask.mutual != asked_.mutual ? !ask.mutual : yields(ask, asked_);
    if (!they_take) return "the asker's replica is the one to keep";
    download_.stop();
    return {};
  }
  if (ask.mutual && !yields(ask, ask_now(true))) return "the asker's replica is the one to keep";
  return {};
}

void Joining::refuse(Link& link, std::string reason, bool later) {
  SnapshotOffer offer;
  offer.refusal = std::move(reason);
  offer.later = later;
  core_.send(link, encode(offer));
}

// A cut is usable while all later updates are in the log, where the joiner can pull them, and are too few for a joiner
// to choose another snapshot.
bool Joining::usable(const Cut& cut) const {
  const HaveSet& names = cut.manifest().names;
  if (mutant(45)) return true;
  const HaveSet later = names.missing_from(core_.store.have());
  return core_.store.have().includes(names) && later.count() < choice_min && holds_all(later);
}

void Joining::on_ask(Link& link, const SnapshotAsk& ask) {
  if (std::string reason = reason_to_refuse(link, ask); !reason.empty())
    return refuse(link, std::move(reason), true);
  const std::shared_ptr<const Cut> cut = core_.store.snapshots().cut();
  if (!making_ && cut && usable(*cut)) return offer(link, cut);
  make(link, {}, nullptr);
}

void Joining::on_join(Link& link, const SnapshotJoin& join) {
  if (busy()) return refuse(link, "it is fetching one itself", true);
  if (core_.store.lacks_weights()) return refuse(link, "it lacks the weights itself", true);
  if (std::string busy = too_busy(link); !busy.empty()) return refuse(link, std::move(busy), true);
  const std::shared_ptr<const Cut> cut = core_.store.snapshots().cut();
  if (!making_ && cut && cut->hash() == join.hash) return offer(link, cut);
  if (!core_.store.have().includes(join.names)) return refuse(link, "it lacks updates of that cut", false);
  make(link, join.hash, &join.names);
}

void Joining::make(Link& link, const Hash256& hash, const HaveSet* names) {
  JoiningLink& its = parts(link).joining;
  if (making_ && making_->hash != hash) return refuse(link, "it makes another cut", true);
  if (!making_) {
    const Result<void> begun = core_.store.snapshots().begin_cut(names);
    if (!begun) return refuse(link, begun.error().text, false);
    making_ = Making{hash, {}};
  }
  if (!its.awaits_cut) making_->links.push_back(link.id);
  its.awaits_cut = true;
  work();
}

// Works for a few milliseconds, then lets the links have their turn.
void Joining::work() {
  SnapshotPort& snapshots = core_.store.snapshots();
  if (!snapshots.advance_cut()) return due_by(core_.now + work_again);
  const Making made = std::move(*making_);
  making_.reset();
  const std::shared_ptr<const Cut> cut = snapshots.cut();
  cut_used_at_ = core_.now;
  for (const LinkId id : made.links) {
    Link* link = core_.find(id);
    if (link == nullptr) continue;
    parts(*link).joining.awaits_cut = false;
    if (cut != nullptr && cut->encoded_manifest().size() <= limits::manifest_bytes_max) {
      offer(*link, cut);
    } else {
      refuse(*link, "it has none to give", false);
    }
  }
}

void Joining::offer(Link& link, const std::shared_ptr<const Cut>& cut) {
  if (++offers_ == 0) offers_ = 1;
  SnapshotOffer offer{offers_, cut->hash(), cut->manifest().bytes, cut->manifest().names.count(),
                      flow_.mean_bytes()};
  offer.manifest_bytes = cut->encoded_manifest().size();
  offer.period = cut->period();
  parts(link).joining.serving = Serving{offers_, cut, core_.now};
  cut_used_at_ = core_.now;
  due_by(core_.now + offer_kept);
  core_.send(link, encode(offer));
}

void Joining::on_want(Link& link, const SnapshotWant& want) {
  JoiningLink& its = parts(link).joining;
  const bool current = its.serving && its.serving->number == want.number;
  if (want.done) {
    if (current) its.serving.reset();
    return;
  }
  if (!current) return refuse(link, "the offer has expired", true);
  const Cut& cut = *its.serving->cut;
  if (want.part > cut.manifest().chunks.size()) return core_.close(link, "asks for a chunk beyond the end");
  Bytes chunk;
  if (want.part > 0) chunk = cut.chunk(want.part - 1);
  BytesView left = want.part == 0 ? BytesView(cut.encoded_manifest()) : BytesView(chunk);
  its.serving->used_at = cut_used_at_ = core_.now;
  while (!left.empty()) {
    const BytesView piece = left.first(std::min(left.size(), limits::piece_bytes_max));
    left = left.subspan(piece.size());
    core_.send(link, encode(SnapshotData{want.number, want.part, piece, !left.empty()}));
  }
}

// Returns true while there is something to watch.
bool Joining::watch_joiners() {
  if (making_) work();
  bool serving = making_.has_value();
  core_.each_link([&](Link& link) {
    JoiningLink& its = parts(link).joining;
    if (its.serving && core_.now - its.serving->used_at >= offer_kept) its.serving.reset();
    if (its.serving) cut_used_at_ = core_.now;
    serving = serving || its.serving;
  });
  if (cut_used_at_ == never) return serving;
  if (!making_ && core_.now - cut_used_at_ >= cut_kept) {
    core_.store.snapshots().drop_cut();
    cut_used_at_ = never;
  }
  return true;
}

}  // namespace rumor::gossip
