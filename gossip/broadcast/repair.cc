#include "gossip/broadcast/repair.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/mutant.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

void Repair::admitted(Link& link, const Hello& hello) {
  RUMOR_CHECK(link.admitted());
  link.digest = hello.digest;
  link.sent_digest = Digest{link.hello_replica, 0, false, false};
  link.digest_sent_at = link.up_at;
  link.admitted_at = link.data_at = link.progress_at = core_.now;
  const ReplicaDigest& theirs = hello.digest.replica;
  const ReplicaDigest ours = core_.store.digest();
  link.equal_when_met = theirs.updates == 0 || theirs == ours || theirs == link.hello_replica;
  if (theirs.have_hash == ours.have_hash) {
    spread_.know(link, core_.store.have());
    link.divergences = theirs.fingerprint == ours.fingerprint ? 0 : 1;
  } else {
    send_vector(link, false);
  }
  due_by(core_.now + (core_.finished ? finished_quiet : digest_changed));
}

// ---- digests ----

void Repair::send_digest(Link& link, bool reply) {
  const Digest ours = core_.digest(reply);
  core_.send(link, encode(ours));
  link.sent_digest = ours;
  link.sent_digest->reply = false;
  link.digest_sent_at = core_.now;
}

void Repair::on_digest(Link& link, const Digest& digest) {
  link.digest = digest;
  const ReplicaDigest ours = core_.store.digest();
  if (digest.reply) send_digest(link, false);
  if (digest.replica.have_hash == ours.have_hash && digest.replica.fingerprint != ours.fingerprint) {
    if (++link.divergences < 2) return send_digest(link, true);
    return core_.divergence.empty() ? evidence_.investigate(link) : void();
  }
  link.divergences = 0;
  if (digest.replica != ours) return differs(link, digest);
  link.mismatches = 0;
  link.vector_due = never;
  link.equal_when_met = true;
  core_.pace.equal(link.id, core_.now);
  const bool stale = link.sent_digest && link.sent_digest->replica != ours;
  if (core_.finished && stale) send_digest(link, false);
}

void Repair::differs(Link& link, const Digest& digest) {
  if (!mutant(31)) ++link.mismatches;
  const bool both_finished = core_.finished && digest.finished;
  if (!both_finished && link.mismatches < 2) return;
  const bool flowing = core_.now - core_.changed_at < flow_within;
  const auto streams = static_cast<std::int64_t>(core_.store.have().streams().size());
  const Duration in_flow = std::max(vector_in_flow, streams * vector_in_flow_a_stream);
  const Duration interval = both_finished ? vector_finished : flowing ? in_flow : vector_quiet;
  link.vector_due = std::max(core_.now, link.vector_sent_at + interval);
  due_by(link.vector_due);
}

bool Repair::digest_is_due(const Link& link, const Digest& ours) {
  const TimePoint now = core_.now;
  const bool news = !link.sent_digest || link.sent_digest->replica != ours.replica ||
                    link.sent_digest->finished != ours.finished;
  if (news && core_.finished) {
    const TimePoint latest = core_.changed_since == never ? now : core_.changed_since + finished_latest;
    const TimePoint at = std::min(core_.changed_at + finished_quiet, latest);
    if (at > now) due_by(at);
    return at <= now;
  }
  const TimePoint at = link.digest_sent_at + (news ? digest_changed : digest_idle);
  if (at > now) due_by(at);
  return at <= now;
}

void Repair::finished_changed() {
  core_.each_link([&](Link& link) { send_digest(link, false); });
  core_.changed_since = never;
}

// ---- vectors ----

void Repair::send_vector(Link& link, bool reply) {
  link.vector_sent_at = core_.now;
  link.vector_due = never;
  HaveSet part;
  std::size_t ranges = 0, total = 0;
  const auto send = [&](bool more) {
    core_.send(link, encode(Vector{std::move(part), more, reply && !more}));
    part = {};
    ranges = 0;
  };
  for (const auto& [stream, list] : core_.store.have().streams()) {
    for (const SeqRange& range : list) {
      if (total++ == limits::vector_ranges_max) return send(false);  // more shows when this has been fixed
      if (ranges == limits::ranges_per_frame_max) send(true);
      part.insert(stream, range);
      ++ranges;
    }
  }
  send(false);
}

void Repair::on_vector(Link& link, const Vector& message) {
  if (message.more && ++link.parts > vector_parts_max) return core_.shun(link, "sends a vector without end");
  link.assembling.merge(message.part);
  if (mutant(35) && link.assembling.streams().size() > 2) link.assembling = {};
  if (link.assembling.streams().size() > limits::streams_max)
    return core_.shun(link, "names more streams than a run may have");
  if (link.assembling.range_count() > limits::vector_ranges_max)
    return core_.shun(link, "names more ranges than a vector may");
  count_names(link);
  if (message.more || !link.admitted()) return;
  link.vector = core_.wanted(link.assembling);
  link.assembling = {};
  link.parts = 0;
  // What it no longer kept it will not keep again; forgetting that with every vector, which may come every
  // second, would hide for ever that nobody keeps it.
  link.gone = link.vector->missing_from(link.gone).missing_from(link.gone);
  if (mutant(34)) link.gone = {};
  spread_.know(link, *link.vector);
  const auto own = link.vector->streams().find(core_.options.stream);
  core_.pace.shown(link.id, own == link.vector->streams().end() ? SeqRanges{} : own->second, core_.now);
  if (!ready_ && !link.first_vector) link.first_vector = link.vector;
  if (message.reply) answer(link);
  joining_.consider(link);
  plan_pulls(link);
}

// Its vector before, the one it began with, and the new one, which becomes the plan of pulls too.
void Repair::count_names(Link& link) {
  const std::size_t kept = link.vector ? link.vector->memory_bytes() : 0;
  const std::size_t first = link.first_vector ? link.first_vector->memory_bytes() : 0;
  link.names_bytes = kept + first + 2 * link.assembling.memory_bytes();
  core_.bound_names();
}

// A few bytes ask for all our names: not more often than an honest peer would.
void Repair::answer(Link& link) {
  const TimePoint at = link.vector_sent_at + vector_finished / 2;
  if (at <= core_.now) return send_vector(link, false);
  link.vector_due = std::min(link.vector_due, at);
  due_by(link.vector_due);
}

// Whether what is new of this stream may be expected of its provider. When training has ended here and there, only
// while that still gives something.
bool Repair::is_pushed(const Stream& stream, const Link& link) const {
  const Link* provider = core_.find(stream.provider);
  if (provider == nullptr) return false;
  const bool both_finished = core_.finished && link.digest && link.digest->finished;
  return !both_finished || core_.now - provider->data_at < flow_within;
}

void Repair::plan_pulls(Link& link) {
  link.to_pull.clear();
  link.pull_later.clear();
  HaveSet lacking = link.gone.missing_from(core_.store.have().missing_from(*link.vector));
  if (mutant(30) && lacking.count() == 1) lacking = {};
  for (const auto& [id, ranges] : lacking.streams()) {
    const auto stream = core_.intern(link, id);
    if (!stream) continue;  // later, when something of those before has come
    const std::uint64_t head = core_.store.have().head(id);
    // What lies above our head is probably on its way from the provider.
    const bool flows = is_pushed(core_.streams[*stream], link);
    for (const SeqRange& range : ranges) {
      (flows && range.first > head ? link.pull_later : link.to_pull).push_back({*stream, range});
    }
  }
  // The grace runs from the first vector that showed it: vectors may come more often than it lasts.
  link.pull_later_at =
      link.pull_later.empty() ? never : std::min(link.pull_later_at, core_.now + pull_grace);
  due_by(link.pull_later_at);
  refill(link);
}

void Repair::refill(Link& link) {
  if (joining_.busy() || !link.admitted()) return;
  while (!link.to_pull.empty()) {
    LocalRange& next = link.to_pull.front();
    const LocalKey key{next.stream, next.range.first};
    if (!core_.have(key) && !spread_.pull(link, key)) return;
    if (++next.range.first > next.range.last) link.to_pull.pop_front();
  }
}

void Repair::on_not_available(Link& link, const NotAvailable& message) {
  for (const WireRange& wire : message.ranges) {
    if (wire.stream >= link.their_streams.size()) return;  // Spread closes the link for it
    const StreamIndex stream = link.their_streams[wire.stream].stream;
    for (const AskedKey& asked : link.asked) {
      const LocalKey key = asked.key;
      const bool named = key.stream == stream && wire.range.first <= key.seq && key.seq <= wire.range.last;
      if (named && !core_.have(key)) link.gone.insert(core_.key_of(key));
    }
  }
  if (link.gone.count() > gone_max) return core_.shun(link, "cannot give what it claims to have");
}

void Repair::installed() {
  spread_.drop_held();
  core_.changed();
  core_.each_link([&](Link& link) {
    link.gone = {};
    link.to_pull.clear();
    link.pull_later.clear();
    link.pull_later_at = never;
    send_vector(link, true);
  });
}

// What every member holds, as far as they have said it. Of one that never was a neighbour nothing is known,
// so then the log keeps what it can.
void Repair::tell_acknowledged() {
  acknowledge_at_ = core_.now + acknowledge_every;
  const HaveSet& ours = core_.store.have();
  const ReplicaDigest digest = core_.store.digest();
  core_.each_link([&](const Link& link) {
    if (link.digest && link.digest->replica == digest) {
      core_.held_by[link.node] = ours;
    } else if (link.vector) {
      core_.held_by[link.node] = *link.vector;
    }
  });
  const auto& members = core_.members.all();
  std::erase_if(core_.held_by, [&](const auto& entry) { return !members.contains(entry.first); });
  HaveSet by_all = ours;
  for (const auto& [node, member] : members) {
    if (node == core_.options.self) continue;
    const auto held = core_.held_by.find(node);
    if (held == core_.held_by.end() || members.size() > acknowledged_members_max) return;
    by_all = held->second.missing_from(by_all).missing_from(by_all);
  }
  core_.store.acknowledged(by_all, core_.now);
}

// ---- time ----

void Repair::tick() {
  const TimePoint now = core_.now;
  due_ = core_.admitted_count() == 0 ? never : now + digest_changed;
  if (acknowledge_at_ <= now) tell_acknowledged();
  const Digest ours = core_.digest();
  bool all_told = true;
  core_.each_link([&](Link& link) {
    if (digest_is_due(link, ours)) send_digest(link, false);
    if (link.sent_digest->replica != ours.replica) all_told = false;
    if (link.vector_due <= now) {
      if (link.digest && link.digest->replica != ours.replica) {
        send_vector(link, true);
        // Once more later, should this not fix it.
        if (core_.finished) link.vector_due = now + vector_quiet;
      } else {
        link.vector_due = never;
      }
    }
    due_by(link.vector_due);
    if (link.pull_later_at <= now) {
      link.pull_later_at = never;
      link.to_pull.insert(link.to_pull.end(), link.pull_later.begin(), link.pull_later.end());
      link.pull_later.clear();
    }
    due_by(link.pull_later_at);
    refill(link);
  });
  if (all_told) core_.changed_since = never;
}

void Repair::flush(bool alone) {
  const bool fresh = core_.changed_at == core_.now;
  if (fresh && core_.finished) due_by(core_.now + finished_quiet);
  if (ready_) return;
  ready_ = alone;
  core_.each_link([&](const Link& link) {
    if (link.equal_when_met) ready_ = true;
    if (!ready_ && link.first_vector && core_.store.have().includes(*link.first_vector)) ready_ = true;
  });
  if (!ready_) return;
  for (auto& [id, link] : core_.links) link.first_vector.reset();
}

std::uint64_t Repair::lacking() const {
  std::uint64_t least = 0;
  core_.each_link([&](const Link& link) {
    if (!link.first_vector) return;
    const std::uint64_t count = core_.store.have().missing_from(*link.first_vector).count();
    least = least == 0 ? count : std::min(least, count);
  });
  return least;
}

}  // namespace rumor::gossip
