#include "runtime/audit/run_audit.h"

#include <algorithm>
#include <utility>

#include "runtime/base/text.h"

namespace rumor::audit {

namespace {

// From which update a stream goes on, as its first update says; nothing where that cannot be read.
std::optional<UpdateKey> continued_by(const gossip::StoredUpdate& first, std::uint64_t segment) {
  const auto parts = compress::split_record(*first.payload);
  if (!parts) return std::nullopt;
  const auto tape = TapeReader(segment).read(parts->record);
  if (!tape || tape->empty() || !tape->front().record.start) return std::nullopt;
  return tape->front().record.start->continues;
}

void count(const Finding& found, std::uint64_t seq, StreamFindings& findings) {
  findings.agree += found.verdict == Verdict::agrees ? 1 : 0;
  findings.differ += found.verdict == Verdict::differs ? 1 : 0;
  findings.cannot_tell += found.verdict == Verdict::cannot_tell ? 1 : 0;
  if (found.verdict == Verdict::agrees || findings.first_doubt > 0) return;
  findings.first_doubt = seq;
  findings.why = found.why;
}

}  // namespace

Result<ReplicaState> without_log(const RunForm& form, ReplicaState newest, const UpdateLog& log) {
  newest.revocations.clear();  // views are compared by names, and what is revoked is in none
  Replica replica(form.run, form.layout, newest.weights);
  if (auto restored = replica.restore(std::move(newest)); !restored) return restored.error();
  for (const UpdateKey& key : log.keys()) {
    if (!replica.have().contains(key)) continue;
    const auto update = log.find(key);
    auto change = update ? compress::decode(form.layout, compress::update_part(*update->payload))
                         : Result<compress::SparseUpdate>(Error{Errc::corrupt, "it cannot be read"});
    if (!change)
      return Error{Errc::corrupt, str("update ", key.seq, " of stream ", key.stream.hex(), " in the log: ",
                                      change.error().text)};
    replica.take_back(update->header, std::move(change).value(), update->payload);
  }
  return replica.state();
}

RunAudit::RunAudit(const AuditedRun& run) : run_(run) {
  for (const UpdateKey& key : run.log.keys()) {
    const auto header = run.log.header(key);
    if (!header) continue;
    Stream& stream = streams_[key.stream];
    stream.origin = header->origin;
    stream.seqs.push_back(key.seq);
    ++updates_;
  }
  for (auto& [id, stream] : streams_) {
    std::sort(stream.seqs.begin(), stream.seqs.end());
    const auto first = run.log.find({id, 1});
    if (first) stream.continues = continued_by(*first, run.segment());
    if (stream.continues) states_.emplace(*stream.continues, std::nullopt);
  }
}

std::map<StreamId, NodeId> RunAudit::streams() const {
  std::map<StreamId, NodeId> all;
  for (const auto& [id, stream] : streams_) all.emplace(id, stream.origin);
  return all;
}

std::vector<StreamFindings> RunAudit::audit(const Wanted& wanted, const Progress& progress) {
  std::vector<StreamFindings> all;
  for (const auto& [id, stream] : streams_) {
    if (wanted.origin && *wanted.origin != stream.origin) continue;
    if (wanted.stream && *wanted.stream != id) continue;
    make_again(id, wanted, progress);
    if (findings_.contains(id)) all.push_back(findings_.at(id));
  }
  return all;
}

void RunAudit::make_again(const StreamId& id, const Wanted& wanted, const Progress& progress) {
  const auto at = streams_.find(id);
  if (stopped_ || at == streams_.end() || findings_.contains(id)) return;
  const Stream& stream = at->second;
  StreamFindings& findings = findings_[id];  // before the earlier stream: a circle of streams ends here
  findings.origin = stream.origin;
  findings.stream = id;
  if (stream.continues) make_again(stream.continues->stream, {.first = wanted.first}, progress);
  StreamReplay replay(run_, stream.origin, id, [&](const UpdateKey& point) -> std::optional<TrainerState> {
    const auto earlier = streams_.find(point.stream);
    const auto state = states_.find(point);
    if (earlier == streams_.end() || earlier->second.origin != stream.origin || state == states_.end()) return {};
    return state->second;
  });
  make_again(replay, stream, wanted, findings, progress);
  findings.fewer_peers = replay.fewer_peers();
}

void RunAudit::make_again(StreamReplay& replay, const Stream& stream, const Wanted& wanted, StreamFindings& findings,
                          const Progress& progress) {
  std::uint64_t expected = 1;
  for (const std::uint64_t seq : stream.seqs) {
    if (seq > wanted.last || stopped_) break;
    const auto update = run_.log.find({findings.stream, seq});
    const bool follows = update && seq == expected;
    if (follows) ++expected;
    const Finding found =
        follows ? replay.next(*update) : Finding{Verdict::cannot_tell, "the log lacks an earlier update of its stream"};
    if (found.verdict == Verdict::agrees) keep_if_wanted({findings.stream, seq}, replay);
    if (seq < wanted.first) continue;
    ++findings.updates;
    if (update) findings.samples += update->header.samples;
    count(found, seq, findings);
    stopped_ = !progress(replay, findings);
  }
}

void RunAudit::keep_if_wanted(const UpdateKey& point, const StreamReplay& replay) {
  if (const auto wanted = states_.find(point); wanted != states_.end()) wanted->second = replay.state();
}

}  // namespace rumor::audit
