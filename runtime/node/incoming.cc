#include "runtime/node/incoming.h"

#include <utility>

#include "runtime/base/limits.h"
#include "runtime/base/text.h"
#include "runtime/node/audits.h"

namespace rumor {

namespace {

constexpr Duration dropped_warning_every = 60s;

// Weights that nobody else has are taken, not copied: a large model may not fit twice.
LargeVector<std::int32_t> first_weights(const NodeCore& core) {
  const auto& start = core.options.start;
  if (!start) return core.trainer->initial_weights();
  if (start.use_count() > 1) return start->weights;
  return std::move(std::const_pointer_cast<models::StartWeights>(start)->weights);
}

Error invalid_update(const UpdateKey& key, const std::string& why) {
  return {Errc::corrupt, str("update ", key.seq, " of stream ", key.stream.brief(), ": ", why)};
}

}  // namespace

Incoming::Incoming(NodeCore& core)
    : HeldUpdates({core.run, core.trainer->layout(), core.config.grid_bits, core.config.records}, first_weights(core),
                  core.options.disk != nullptr ? core.config.log_bytes : limits::log_bytes_max,
                  core.options.disk != nullptr ? limits::log_cache_bytes_max : SIZE_MAX),
      core_(core) {
  set_lacks_weights(core.options.lacks_weights);
}

Result<gossip::Accepted> Incoming::accept(const gossip::StoredUpdate& update) {
  const gossip::UpdateHeader& header = update.header;
  if (have().contains(header.key) || replica().is_revoked(header.key)) return gossip::Accepted::duplicate;
  if (header.key.seq == 0 || header.samples > update_samples_max)
    return invalid_update(header.key, "its header is out of range");
  // Between two steps the trainer waits for this, and its threads are idle.
  auto decoded = decode(*update.payload, core_.computing ? nullptr : &core_.trainer->parallel());
  if (!decoded) return invalid_update(header.key, decoded.error().text);
  const bool by_other = header.origin != core_.options.node;
  const bool wanted = by_other && core_.trainer->wants_changes_of_others();
  if (by_other) core_.exchange->arrives(header.origin, *decoded);
  compress::SparseUpdate change = wanted ? *decoded : compress::SparseUpdate();
  const auto taken = apply(update, std::move(decoded).value(), core_.turn->now);
  if (!taken || *taken == gossip::Accepted::duplicate) return taken;
  core_.trainer->arrived(update.payload);
  if (wanted) keep_change(std::move(change));
  if (by_other) core_.exchange->applied(header, core_.turn->now);
  if (by_other) core_.audits->on_update(header);
  if (core_.options.report_applied) core_.turn->applied.push_back(header);
  return taken;
}

void Incoming::keep_change(compress::SparseUpdate change) {
  changes_entries_ += change.index.size();
  if (changes_entries_ <= form().layout.params())
    changes_.push_back(std::move(change));
  else
    changes_.clear();
}

std::vector<compress::SparseUpdate> Incoming::take_changes() {
  changes_entries_ = 0;
  return std::exchange(changes_, {});
}

// A snapshot may neither drop a revocation nor invent one. Proofs in it are taken on the donor's word, as the weights
// are: the updates that would show them false are in no log here.
Result<void> Incoming::install(ReplicaState state) {
  for (const gossip::Revocation& revocation : revocations())
    if (!state.revocations.contains(revocation) && !gossip::is_needless(revocation, state.revocations))
      return Error{Errc::mismatch, "it lacks a revocation"};
  const auto& pipeline = core_.options.pipeline;
  const RunId member_of = pipeline ? pipeline->self.membership() : core_.run;
  for (const gossip::Revocation& revocation : state.revocations)
    if (!gossip::revocation_is_signed(*core_.options.keys, member_of, core_.options.rule.owner, revocation))
      return Error{Errc::corrupt, "it holds a revocation with a wrong signature"};
  auto installed = HeldUpdates::install(std::move(state));
  if (installed) take_changes();
  return installed;
}

void Incoming::warn_of_dropped(Turn& turn) {
  const std::uint64_t dropped = log().dropped_unacknowledged();
  if (dropped == dropped_told_ || turn.now < next_warning_) return;
  turn.note(gossip::Note::Level::warning,
            str("the log is full: ", dropped - dropped_told_,
                " updates that not all members have acknowledged are no longer kept; a peer that "
                "missed them takes over the weights instead (network.log_mib may be raised)"));
  dropped_told_ = dropped;
  next_warning_ = turn.now + dropped_warning_every;
}

}  // namespace rumor
