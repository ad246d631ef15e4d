#include "gossip/copies/copies.h"

#include <algorithm>

#include "gossip/links/link_payload.h"
#include "gossip/trust/signing.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

// ---- links ----

void Copies::on_admitted(Link& link, const Hello& hello) {
  link.digest = hello.digest;
  link.admitted_at = link.data_at = link.progress_at = core_.now;
  Side& side = sides_[link.id];
  side.sent_digest = Digest{link.hello_replica, 0, false, false};
  side.digest_sent_at = link.up_at;
  side.has_model = hello.digest.replica.updates > 0;
  if (!side.has_model) port_.hold_initial(link.node);
  const std::optional<std::uint64_t> held =
      side.has_model ? port_.held(link.node, hello.stream) : std::optional<std::uint64_t>(0);
  core_.send(link, encode(CopyAsk{held}));
  if (held) follow(link, side, *held);
  giver_.admitted(link);
  due_ = std::min(due_, core_.now + digest_changed);
}

// Two nodes that dial each other have two links for a moment, and both bring the same copy.
void Copies::on_detached(Link& link) {
  if (sides_.erase(link.id) == 0) return;
  giver_.link_lost(link);
  const bool twin = std::any_of(sides_.begin(), sides_.end(), [&](const auto& side) {
    return side.second.following && core_.links.at(side.first).node == link.node;
  });
  if (!twin) port_.set_linked(link.node, false, core_.now);
}

void Copies::follow(Link& link, Side& side, std::uint64_t seq) {
  if (!side.following) port_.set_linked(link.node, true, core_.now);
  side.following = true;
  side.seq = seq;
}

void Copies::on_frame(Link& link, const Frame& frame) {
  dispatch_frame<FrameUse::copies>(frame, [&](const auto& message) { on(link, message); });
}

// ---- giving ----

void Copies::give(Link& link) { due_ = std::min(due_, giver_.give(link)); }

void Copies::on(Link& link, const CopyAsk& ask) {
  giver_.on_ask(link, ask);
  give(link);
}

void Copies::publish(const StoredUpdate& update) {
  RUMOR_CHECK(update.header.key.seq == core_.published + 1);
  core_.published = update.header.key.seq;
  giver_.keep(update);
  core_.each_link([&](Link& link) { give(link); });
  due_ = std::min(due_, core_.now + digest_changed);
}

void Copies::on_backlog(Link& link) {
  if (!link.backlogged) give(link);
}

// ---- holding ----

void Copies::on(Link& link, const Copy& piece) {
  Side& side = sides_.at(link.id);
  if (piece.begin) {
    if (side.coming) return core_.ban(link, "begins a copy within another");
    if (piece.begin->bytes > port_.copy_bytes_max()) return core_.ban(link, "sends a copy that is too long");
    side.coming = piece.begin;
  }
  if (!side.coming) return core_.ban(link, "goes on with a copy that it has not begun");
  link.data_at = link.progress_at = core_.now;
  side.arrived.insert(side.arrived.end(), piece.bytes.begin(), piece.bytes.end());
  const bool whole = side.arrived.size() == side.coming->bytes;
  if (side.arrived.size() > side.coming->bytes || piece.more == whole)
    return core_.ban(link, "sends a copy of another length than it said");
  if (!whole) return void(due_ = std::min(due_, core_.now + piece_progress));
  const Result<void> taken = port_.take_copy(link.node, side.arrived);
  if (!taken) return core_.ban(link, str("sent a copy that is none: ", taken.error().text));
  follow(link, side, side.coming->seq);
  side.coming.reset();
  side.arrived = {};
  side.has_model = true;
  core_.scores.has_delivered(link.node, core_.now);
  if (!ready_ && core_.store.digest().updates == 0) begin_with(link.node);
}

void Copies::begin_with(const NodeId& node) {
  port_.begin_with(node);
  ready_ = true;
  giver_.begin_anew();
  core_.each_link([&](Link& link) { give(link); });
}

void Copies::on(Link& link, const Data& message) {
  if (link.arriving) return core_.ban(link, "begins an update within another");
  if (!message.more) return on_whole(link, message);
  begin_arriving(core_, link, message, true);
  due_ = std::min(due_, core_.now + piece_progress);
}

void Copies::on(Link& link, const DataMore& message) {
  std::optional<Arriving> whole = go_on_arriving(core_, link, message);
  if (!whole) return;
  whole->head.payload = whole->bytes;
  on_whole(link, whole->head);
}

void Copies::on_whole(Link& link, const Data& message) {
  Side& side = sides_.at(link.id);
  if (message.stream != CopyGiver::own_index) return core_.ban(link, "sends an update of another stream than its own");
  if (!side.following || side.coming || message.header.key.seq != side.seq + 1)
    return core_.ban(link, "sends an update that is not the next of its copy");
  if (link.observer) return core_.close(link, "brings an update of its own, and may only observe");
  link.data_at = link.progress_at = core_.now;
  Result<Bytes> payload = canonical_payload(link, message);
  if (!payload) {
    ++core_.counters.updates_invalid;
    return core_.close(link, str("sent an invalid update: ", payload.error().text));
  }
  StoredUpdate update{message.header, std::make_shared<const Bytes>(std::move(payload).value())};
  update.header.key.stream = link.their_stream;
  update.header.origin = link.node;
  update.header.payload_hash = core_.store.hash_of(*update.payload);
  Result<void> taken = Error{Errc::corrupt, str("it is not signed by ", link.node.brief(), ", its origin")};
  if (update_is_signed(core_.keys, core_.options.run, update.header)) taken = port_.take_update(update);
  if (!taken) {
    ++core_.counters.updates_invalid;
    return core_.ban(link, str("sent an invalid update: ", taken.error().text));
  }
  side.seq = message.header.key.seq;
  others_began_ = true;
  ++core_.counters.updates_received;
  core_.scores.has_delivered(link.node, core_.now);
}

// ---- digests ----

void Copies::send_digest(Link& link, bool reply) {
  Side& side = sides_.at(link.id);
  side.sent_digest = core_.digest(reply);
  side.digest_sent_at = core_.now;
  core_.send(link, encode(side.sent_digest));
}

void Copies::on(Link& link, const Digest& digest) {
  link.digest = digest;
  if (digest.reply) send_digest(link, false);
  const std::optional<ReplicaDigest> held = port_.digest_of(link.node);
  if (!held || held->have_hash != digest.replica.have_hash || held->fingerprint == digest.replica.fingerprint)
    return;
  core_.divergence =
      str("the public copy of ", link.node.brief(), " that is held here has all its updates and other ",
          "bits than it says: memory or a program is damaged, at one of the two");
}

Result<void> Copies::revoke(const Revocation&) {
  return Error{Errc::usage,
               "peers of this run have models of their own, no common weights to take anything back from; take the "
               "node off the list of who is admitted instead"};
}

void Copies::finished_changed() {
  core_.each_link([&](Link& link) { send_digest(link, false); });
}

// ---- time ----

// Ready at once with updates of an earlier life, or alone. Otherwise it waits for a neighbour's model; where no
// neighbour has one, for links enough: they come soon, and cost nothing as long as no peer has published.
void Copies::end_turn(bool alone) {
  if (ready_) return;
  const std::size_t others = core_.members.all().size() - 1;
  ready_ = core_.store.digest().updates > 0 || (alone && others == 0);
  if (ready_ || (sides_.empty() && !alone)) return;
  first_at_ = std::min(first_at_, core_.now);
  if (std::any_of(sides_.begin(), sides_.end(), [](const auto& side) { return side.second.has_model; })) return;
  const Duration waited = core_.now - first_at_;
  const std::size_t wanted = std::min(core_.options.links.target, others);
  ready_ = others_began_ || waited >= (sides_.size() >= wanted ? members_awaited : links_awaited);
  if (!ready_) due_ = std::min(due_, first_at_ + (waited < members_awaited ? members_awaited : links_awaited));
}

std::string Copies::waiting_for() const {
  if (ready_) return {};
  std::uint64_t arrived = 0, coming = 0;
  for (const auto& [id, side] : sides_) {
    if (!side.coming) continue;
    arrived += side.arrived.size();
    coming += side.coming->bytes;
  }
  if (coming == 0) return "waiting for neighbours, and for weights of theirs";
  return str("downloading a neighbour's weights: ", fixed(static_cast<double>(arrived) / 1e6, 1), " of ",
             fixed(static_cast<double>(coming) / 1e6, 1), " MB");
}

void Copies::tick() {
  due_ = core_.admitted_count() == 0 ? never : core_.now + digest_changed;
  const Digest ours = core_.digest();
  core_.each_link([&](Link& link) {
    give(link);
    const Side& side = sides_.at(link.id);
    const bool news = side.sent_digest.replica != ours.replica || side.sent_digest.finished != ours.finished;
    const TimePoint at = side.digest_sent_at + (news ? digest_changed : digest_idle);
    if (at <= core_.now) send_digest(link, false);
    due_ = std::min(due_, watch_arriving(core_, link));
    if (side.following && !side.coming) return;
    if (core_.now >= link.data_at + piece_progress)
      return core_.shun(link, side.coming ? "begins a copy and does not go on with it" : "does not give its copy");
    due_ = std::min(due_, link.data_at + piece_progress);
  });
  due_ = std::max(due_, core_.now + Duration{1});
}

void Copies::check_invariants() const {
  for (const auto& [id, link] : core_.links) RUMOR_CHECK(!link.admitted() || sides_.contains(id));
  for (const auto& [id, side] : sides_) RUMOR_CHECK(!side.coming || side.arrived.size() < side.coming->bytes);
  giver_.check_invariants();
}

}  // namespace rumor::gossip
