#include "runtime/replica/held_updates.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compress/payload/recorded.h"
#include "runtime/base/bytes.h"
#include "runtime/base/check.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/replica/payload_coder.h"

namespace rumor {

HeldUpdates::HeldUpdates(RunForm form, LargeVector<std::int32_t> initial, std::size_t log_bytes,
                         std::size_t cache_bytes)
    : form_(std::move(form)),
      replica_(form_.run, form_.layout, std::move(initial)),
      log_(log_bytes, cache_bytes),
      snapshots_(form_, replica_, log_, [this](ReplicaState state) { return install(std::move(state)); }) {}

// Where the weights are not the run's, the names alone say nothing: the hash is one that no replica with them has.
gossip::ReplicaDigest HeldUpdates::digest() const {
  gossip::ReplicaDigest digest = replica_.digest();
  if (!lacks_weights_) return digest;
  ByteWriter out;
  out.text("lacks the weights");
  out.raw(digest.have_hash.view());
  out.u64(digest.fingerprint);
  digest.have_hash = sha256(out.bytes());
  return digest;
}

Result<std::uint64_t> HeldUpdates::open(Disk& disk) {
  auto damaged = log_.open(disk, form_.run);
  if (damaged) snapshots_.open(disk);
  return damaged;
}

Result<compress::SparseUpdate> HeldUpdates::decode(const Bytes& payload, Parallel* parallel) const {
  if (!form_.recorded) return compress::decode(form_.layout, payload, {.parallel = parallel});
  const auto parts = compress::split_record(payload);
  if (!parts) return Error{Errc::corrupt, "it has no record of how it was made, which this run asks for"};
  return compress::decode(form_.layout, parts->update, {.parallel = parallel});
}

Result<gossip::Accepted> HeldUpdates::apply(const gossip::StoredUpdate& update, compress::SparseUpdate change,
                                            TimePoint now) {
  auto taken = replica_.apply(update.header, std::move(change), update.payload);
  if (taken && *taken == gossip::Accepted::applied) log_own(update, now);
  return taken;
}

void HeldUpdates::log_own(const gossip::StoredUpdate& update, TimePoint now) {
  log_.append(update, now);
  contributions_.applied(update.header);
}

Result<void> HeldUpdates::revoke(const gossip::Revocation& revocation) {
  std::vector<gossip::StoredUpdate> covered;
  std::uint64_t gone = 0;
  for (const auto& [stream, ranges] : replica_.have().streams()) {
    const auto part = revocation.part_of(stream);
    if (!part) continue;
    for (const gossip::SeqRange& range : ranges) {
      const std::uint64_t last = std::min(range.last, part->last);
      for (std::uint64_t seq = std::max(range.first, part->first); seq <= last; ++seq) {
        auto update = log_.find({stream, seq});
        update ? covered.push_back(std::move(*update)) : void(++gone);
      }
    }
  }
  if (gone != 0) return Error{Errc::limit, str(gone, " of its updates are no longer kept here")};
  for (const gossip::StoredUpdate& update : covered) take_off(update, true);
  replica_.mark(revocation);
  return {};
}

Result<void> HeldUpdates::take_back(const UpdateKey& key) {
  const auto update = log_.find(key);
  if (!update) return Error{Errc::limit, "it is no longer kept here"};
  take_off(*update, false);
  return {};
}

void HeldUpdates::take_off(const gossip::StoredUpdate& update, bool revoked) {
  auto change = decode(*update.payload);
  RUMOR_CHECK(change.ok());  // it was accepted once
  replica_.take_back(update.header, std::move(change).value(), update.payload);
  log_.erase(update.header.key);
  contributions_.removed(update.header, revoked);
}

std::unique_ptr<gossip::LinkCoder> HeldUpdates::coder_for_link() const {
  return std::make_unique<PayloadCoder>(form_.layout);
}

Result<void> HeldUpdates::install(ReplicaState state) {
  if (auto restored = replica_.restore(std::move(state)); !restored) return restored;
  lacks_weights_ = false;
  replay();
  return {};
}

bool HeldUpdates::replay() {
  bool lacked = false;
  for (const UpdateKey& key : log_.keys()) {
    if (replica_.have().contains(key)) {
      count_from_log(key);
      continue;
    }
    lacked = true;
    const bool revoked = replica_.is_revoked(key);
    const auto update = log_.find(key);
    auto change = update && !revoked ? decode(*update->payload)
                                     : Result<compress::SparseUpdate>(Error{Errc::corrupt, "it is revoked or damaged"});
    const bool applied = change && replica_.apply(update->header, std::move(change).value(), update->payload).ok();
    if (applied) contributions_.applied(update->header);
    else log_.erase(key);
    if (update && revoked && contributions_.counts(key)) contributions_.removed(update->header, true);
  }
  contributions_.reconcile(replica_.have(), [this](const UpdateKey& key) { return replica_.is_revoked(key); });
  return lacked;
}

// For an update that came within a snapshot, or in a life that left no table.
void HeldUpdates::count_from_log(const UpdateKey& key) {
  if (contributions_.counts(key)) return;
  if (const auto header = log_.header(key)) contributions_.applied(*header);
}

}  // namespace rumor
