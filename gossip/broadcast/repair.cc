#include "gossip/broadcast/repair.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/mutant.h"

namespace rumor::gossip {

void Repair::admitted(Link& link, const Hello& hello) {
  RepairLink& its = parts(link).repair;
  RUMOR_CHECK(link.admitted());
  link.digest = hello.digest;
  its.sent_digest = Digest{link.hello_replica, 0, false, false};
  its.digest_sent_at = link.up_at;
  link.admitted_at = link.data_at = link.progress_at = core_.now;
  const ReplicaDigest& theirs = hello.digest.replica;
  const ReplicaDigest ours = core_.store.digest();
  its.equal_when_met = theirs.updates == 0 || theirs == ours || theirs == link.hello_replica;
  if (theirs.have_hash == ours.have_hash) {
    streams_.know(link, core_.store.have());
    its.divergences = theirs.fingerprint == ours.fingerprint ? 0 : 1;
  } else {
    send_vector(link, false);
  }
  due_by(core_.now + (core_.finished ? finished_quiet : digest_changed));
}

// ---- digests ----

void Repair::send_digest(Link& link, bool reply) {
  RepairLink& its = parts(link).repair;
  const Digest ours = core_.digest(reply);
  core_.send(link, encode(ours));
  its.sent_digest = ours;
  its.sent_digest->reply = false;
  its.digest_sent_at = core_.now;
}

void Repair::on_digest(Link& link, const Digest& digest) {
  RepairLink& its = parts(link).repair;
  link.digest = digest;
  const ReplicaDigest ours = core_.store.digest();
  if (digest.reply) send_digest(link, false);
  if (digest.replica.have_hash == ours.have_hash && digest.replica.fingerprint != ours.fingerprint) {
    if (++its.divergences < 2) return send_digest(link, true);
    return core_.divergence.empty() ? evidence_.investigate(link) : void();
  }
  its.divergences = 0;
  if (digest.replica != ours) return differs(link, digest);
  its.mismatches = 0;
  its.vector_due = never;
  its.equal_when_met = true;
  pace_.equal(link.id, core_.now);
  const bool stale = its.sent_digest && its.sent_digest->replica != ours;
  if (core_.finished && stale) send_digest(link, false);
}

void Repair::differs(Link& link, const Digest& digest) {
  RepairLink& its = parts(link).repair;
  if (!mutant(31)) ++its.mismatches;
  const bool both_finished = core_.finished && digest.finished;
  if (!both_finished && its.mismatches < 2) return;
  const bool flowing = core_.now - flow_.changed_at < flow_within;
  const auto streams = static_cast<std::int64_t>(core_.store.have().streams().size());
  const Duration in_flow = std::max(vector_in_flow, streams * vector_in_flow_a_stream);
  const Duration interval = both_finished ? vector_finished : flowing ? in_flow : vector_quiet;
  its.vector_due = std::max(core_.now, its.vector_sent_at + interval);
  due_by(its.vector_due);
}

bool Repair::digest_is_due(const Link& link, const Digest& ours) {
  const RepairLink& its = parts(link).repair;
  const TimePoint now = core_.now;
  const bool news = !its.sent_digest || its.sent_digest->replica != ours.replica ||
                    its.sent_digest->finished != ours.finished || its.sent_digest->buffers != ours.buffers;
  if (news && core_.finished) {
    const TimePoint latest = flow_.changed_since == never ? now : flow_.changed_since + finished_latest;
    const TimePoint at = std::min(flow_.changed_at + finished_quiet, latest);
    if (at > now) due_by(at);
    return at <= now;
  }
  const TimePoint at = its.digest_sent_at + (news ? digest_changed : digest_idle);
  if (at > now) due_by(at);
  return at <= now;
}

void Repair::finished_changed() {
  core_.each_link([&](Link& link) { send_digest(link, false); });
  flow_.changed_since = never;
}

// ---- vectors ----

void Repair::send_vector(Link& link, bool reply) {
  RepairLink& its = parts(link).repair;
  its.vector_sent_at = core_.now;
  its.vector_due = never;
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
  RepairLink& its = parts(link).repair;
  if (message.more && ++its.vector_parts > vector_parts_max) return core_.shun(link, "sends a vector without end");
  its.assembling.merge(message.part);
  if (mutant(35) && its.assembling.streams().size() > 2) its.assembling = {};
  if (its.assembling.streams().size() > limits::streams_max)
    return core_.shun(link, "names more streams than a run may have");
  if (its.assembling.range_count() > limits::vector_ranges_max)
    return core_.shun(link, "names more ranges than a vector may");
  count_names(link);
  if (message.more || !link.admitted()) return;
  its.vector = streams_.wanted(its.assembling);
  its.assembling = {};
  its.vector_parts = 0;
  // An update that the link has dropped stays dropped. Vectors may come every second: forgetting this with each of them
  // would hide for ever that nobody keeps the update.
  its.gone = its.vector->missing_from(its.gone).missing_from(its.gone);
  if (mutant(34)) its.gone = {};
  streams_.know(link, *its.vector);
  const auto own = its.vector->streams().find(core_.options.stream);
  pace_.shown(link.id, own == its.vector->streams().end() ? SeqRanges{} : own->second, core_.now);
  if (!ready_ && !its.first_vector) its.first_vector = its.vector;
  if (message.reply) answer(link);
  joining_.consider(link);
  plan_pulls(link);
}

// Counts the vector before, the first one, and the new one twice, since it becomes the plan of pulls too.
void Repair::count_names(Link& link) {
  RepairLink& its = parts(link).repair;
  const std::size_t kept = its.vector ? its.vector->memory_bytes() : 0;
  const std::size_t first = its.first_vector ? its.first_vector->memory_bytes() : 0;
  its.names_bytes = kept + first + 2 * its.assembling.memory_bytes();
  bound_names();
}

void Repair::bound_names() {
  const std::size_t own = core_.store.have().memory_bytes();
  std::size_t total = 0, allowed = limits::names_bytes_max;
  Link* largest = nullptr;
  core_.each_link([&](Link& link) {
    const std::size_t bytes = parts(link).repair.names_bytes;
    total += bytes;
    allowed += own;
    if (largest == nullptr || bytes > parts(*largest).repair.names_bytes) largest = &link;
  });
  if (total > allowed) core_.close(*largest, "names more updates than there is room for");
}

// A few bytes ask for all our names, so the answer comes no more often than an honest peer would ask.
void Repair::answer(Link& link) {
  RepairLink& its = parts(link).repair;
  const TimePoint at = its.vector_sent_at + vector_finished / 2;
  if (at <= core_.now) return send_vector(link, false);
  its.vector_due = std::min(its.vector_due, at);
  due_by(its.vector_due);
}

void Repair::installed() {
  missing_.drop_held();
  flow_.changed(core_.now);
  core_.each_link([&](Link& link) {
    RepairLink& its = parts(link).repair;
    its.gone = {};
    its.to_pull.clear();
    its.pull_later.clear();
    its.pull_later_at = never;
    send_vector(link, true);
  });
}

// Reports the updates that every member is known to hold. While a member has never been a neighbour there is no such
// set, and the log keeps all it can.
void Repair::report_acknowledged() {
  acknowledge_at_ = core_.now + acknowledge_every;
  const HaveSet& ours = core_.store.have();
  const ReplicaDigest digest = core_.store.digest();
  core_.each_link([&](const Link& link) {
    const RepairLink& its = parts(link).repair;
    if (link.digest && link.digest->replica == digest) {
      held_by_[link.node] = ours;
    } else if (its.vector) {
      held_by_[link.node] = *its.vector;
    }
  });
  const auto& members = core_.members.all();
  std::erase_if(held_by_, [&](const auto& entry) { return !members.contains(entry.first); });
  HaveSet by_all = ours;
  for (const auto& [node, member] : members) {
    if (node == core_.options.self || !core_.is_of_run(member.record)) continue;
    const auto held = held_by_.find(node);
    if (held == held_by_.end() || members.size() > acknowledged_members_max) return;
    by_all = held->second.missing_from(by_all).missing_from(by_all);
  }
  core_.store.acknowledged(by_all, core_.now);
}

// ---- time ----

void Repair::tick() {
  const TimePoint now = core_.now;
  due_ = core_.admitted_count() == 0 ? never : now + digest_changed;
  if (acknowledge_at_ <= now) report_acknowledged();
  const Digest ours = core_.digest();
  bool all_sent = true;
  core_.each_link([&](Link& link) {
    RepairLink& its = parts(link).repair;
    if (digest_is_due(link, ours)) send_digest(link, false);
    if (its.sent_digest->replica != ours.replica) all_sent = false;
    if (its.vector_due <= now) {
      if (link.digest && link.digest->replica != ours.replica) {
        send_vector(link, true);
        // Once more later, in case this does not fix it.
        if (core_.finished) its.vector_due = now + vector_quiet;
      } else {
        its.vector_due = never;
      }
    }
    due_by(its.vector_due);
    watch_pulls(link);
  });
  if (all_sent) flow_.changed_since = never;
}

void Repair::flush(bool alone) {
  const bool fresh = flow_.changed_at == core_.now;
  if (fresh && core_.finished) due_by(core_.now + finished_quiet);
  if (ready_ || core_.store.lacks_weights()) return;
  ready_ = alone;
  core_.each_link([&](const Link& link) {
    const RepairLink& its = parts(link).repair;
    if (its.equal_when_met) ready_ = true;
    if (!ready_ && its.first_vector && core_.store.have().includes(*its.first_vector)) ready_ = true;
  });
  if (!ready_) return;
  for (auto& [id, link] : core_.links) parts(link).repair.first_vector.reset();
}

std::uint64_t Repair::lacking() const {
  std::uint64_t least = 0;
  core_.each_link([&](const Link& link) {
    const RepairLink& its = parts(link).repair;
    if (!its.first_vector) return;
    const std::uint64_t count = core_.store.have().missing_from(*its.first_vector).count();
    least = least == 0 ? count : std::min(least, count);
  });
  return least;
}

}  // namespace rumor::gossip
