#include "runtime/replica/replica.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/base/grid_range.h"
#include "runtime/base/mutant.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace rumor {

namespace {

// One comparison: beyond the end on either side.
bool is_near_range_end(std::uint32_t weight) {
  constexpr auto end = static_cast<std::uint32_t>(range_end);
  return weight + end > 2 * end;
}

// A reader on another thread sees the weight as it was or as it is now.
void write_weight(std::int32_t& weight, std::uint32_t value) {
  std::atomic_ref<std::int32_t>(weight).store(static_cast<std::int32_t>(value), std::memory_order_relaxed);
}

}  // namespace

Replica::Replica(const RunId& run, ParamLayout layout, LargeVector<std::int32_t> initial)
    : fingerprinter_(run), layout_(std::move(layout)) {
  RUMOR_CHECK(initial.size() == layout_.params());
  state_.weights = std::move(initial);
  state_.fingerprint = fingerprinter_.of_weights(state_.weights);
}

Result<gossip::Accepted> Replica::apply(const gossip::UpdateHeader& header, compress::SparseUpdate update,
                                        Payload payload) {
  const std::uint64_t claimed = fingerprinter_.of_update(layout_, update);
  if (claimed != header.fingerprint)
    return Error{Errc::corrupt, str("update ", header.key.seq, " of stream ", header.key.stream.brief(),
                                    ": its entries do not have the fingerprint its header claims")};
  return take_named(header,
                    {std::make_shared<const compress::SparseUpdate>(std::move(update)), std::move(payload), false});
}

compress::SharedUpdate Replica::apply_own(gossip::UpdateHeader& header, compress::SparseUpdate update,
                                          Payload payload) {
  header.fingerprint = fingerprinter_.of_update(layout_, update);
  auto shared = std::make_shared<const compress::SparseUpdate>(std::move(update));
  const gossip::Accepted taken = take_named(header, {shared, std::move(payload), false});
  RUMOR_CHECK(taken == gossip::Accepted::applied);
  return shared;
}

gossip::Accepted Replica::take_named(const gossip::UpdateHeader& header, Taken taken) {
  const std::vector<std::uint32_t>& index = taken.update->index;
  RUMOR_CHECK(index.empty() || index.back() < layout_.params());
  const bool marks = !(mutant(4) && header.key.seq % 8 == 0);
  if (marks && !state_.have.insert(header.key) && !mutant(2)) return gossip::Accepted::duplicate;
  const std::uint64_t before = state_.fingerprint;
  state_.samples += header.samples;
  state_.period = std::max(state_.period, header.period);
  const bool keeps_digest = mutant(6) && digest_current_ && header.key.seq % 8 == 0;
  take(std::move(taken), header.fingerprint);
  if (mutant(5) && header.key.seq % 16 == 0) state_.fingerprint = before;
  digest_current_ = keeps_digest;
  return gossip::Accepted::applied;
}

void Replica::take(Taken taken, std::uint64_t fingerprint) {
  state_.fingerprint = Fingerprinter::add(state_.fingerprint, fingerprint);
  digest_current_ = false;
  const std::size_t entries = taken.update->index.size();
  pending_.push_back(taken.update);
  pending_entries_ += entries;
  pending_fingerprint_ = Fingerprinter::add(pending_fingerprint_, fingerprint);
  if (copying_) since_copy_.push_back(taken.update);
  recent_.push_back(std::move(taken));
  recent_entries_ += entries;
  if (pending_entries_ > layout_.params()) apply_pending_alone();
  if (recent_entries_ > layout_.params()) {
    forget_recent();
    recent_complete_ = false;
  }
}

// Addition wraps around, so adding the opposite of every entry restores the bits, in whatever order.
void Replica::take_back(const gossip::UpdateHeader& header, compress::SparseUpdate update, Payload payload) {
  RUMOR_CHECK(state_.have.contains(header.key));
  for (std::uint8_t& negative : update.negative) negative ^= 1;
  state_.have.erase(header.key.stream, {header.key.seq, header.key.seq});
  state_.samples -= header.samples;
  const std::uint64_t opposite = fingerprinter_.of_update(layout_, update);
  take({std::make_shared<const compress::SparseUpdate>(std::move(update)), std::move(payload), true}, opposite);
}

void Replica::mark(const gossip::Revocation& revocation) {
  gossip::add_revocation(revocation, state_.revocations);
  digest_current_ = false;
}

bool Replica::is_revoked(const UpdateKey& key) const {
  return std::any_of(state_.revocations.begin(), state_.revocations.end(),
                     [&](const gossip::Revocation& one) { return one.covers(key); });
}

void Replica::begin_copy() {
  since_copy_.clear();
  copying_ = true;
}

void Replica::end_copy() {
  copying_ = false;
}

bool Replica::forget_copied() {
  RUMOR_CHECK(!copying_);
  if (!since_copy_.empty()) since_copy_.pop_back();
  return since_copy_.empty();
}

void Replica::forget_recent() {
  recent_.clear();
  recent_entries_ = 0;
}

void Replica::apply_pending_alone() const {
  Serial alone;
  apply_pending(nullptr, alone);
}

void Replica::begin_batch() const {
  RUMOR_CHECK(batch_.updates.empty());
  if (mutant(7) && pending_.size() > 3) pending_.erase(pending_.begin());
  for (const compress::SharedUpdate& update : pending_) {
    batch_.updates.push_back(update.get());
    batch_.entries += update->index.size();
  }
  batch_.fingerprint = pending_fingerprint_;
}

// Adds the entries of the batch within the stretch.
Replica::Moved Replica::apply_stretch(compress::Stretch where, const compress::FloatView* view) const {
  std::int32_t* const weights = state_.weights.data();
  float* const values = view != nullptr ? view->values.data() : nullptr;
  Moved moved;
  compress::walk_merged(
      layout_, batch_.updates, where,
      [=](std::uint32_t i) {
        __builtin_prefetch(weights + i, 1);
        if (values != nullptr) __builtin_prefetch(values + i, 1);
      },
      [&](const compress::EntryRun& run) {
        for (std::size_t e = 0; e < run.count; ++e) {
          const std::uint32_t i = run.index[e];
          const auto before = static_cast<std::uint32_t>(weights[i]);
          const std::uint32_t after = before + run.change(e);
          write_weight(weights[i], after);
          moved.fingerprint = Fingerprinter::add(moved.fingerprint, fingerprinter_.of_change(i, after - before));
          if (is_near_range_end(after)) moved.near_range_end = i;
          if (view != nullptr) view->set(i, after);
        }
      });
  return moved;
}

void Replica::add_to_batch(const Moved& moved) const {
  batch_.moved = Fingerprinter::add(batch_.moved, moved.fingerprint);
  if (moved.near_range_end) near_range_end_ = moved.near_range_end;
}

void Replica::end_batch() const {
  RUMOR_CHECK(batch_.moved == batch_.fingerprint);
  pending_fingerprint_ = Fingerprinter::minus(pending_fingerprint_, batch_.fingerprint);
  pending_entries_ -= batch_.entries;
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(batch_.updates.size()));
  batch_ = {};
}

bool Replica::apply_some(std::uint64_t entries_max) {
  if (pending_.empty()) return true;
  if (batch_.updates.empty()) begin_batch();
  const std::uint64_t params = layout_.params();
  const std::uint64_t step = params * entries_max / std::max<std::uint64_t>(batch_.entries, 1) + 1;
  const compress::Stretch where{batch_.at, std::min(params, batch_.at + step)};
  add_to_batch(apply_stretch(where, nullptr));
  batch_.at = where.end;
  if (batch_.at == params) end_batch();
  return pending_.empty();
}

void Replica::apply_pending(const compress::FloatView* view, Parallel& parallel) const {
  while (!pending_.empty()) {  // twice where a batch has begun already
    if (batch_.updates.empty()) begin_batch();
    std::vector<Moved> moved(parallel.width());
    const compress::Stretch rest{batch_.at, layout_.params()};
    compress::each_stretch(rest, batch_.entries, parallel, [&](std::size_t piece, compress::Stretch where) {
      moved[piece] = apply_stretch(where, view);
    });
    for (const Moved& one : moved) add_to_batch(one);
    end_batch();
  }
}

void Replica::refresh_changed(const compress::FloatView& view, Parallel& parallel) const {
  Updates updates;
  for (const Taken& taken : recent_) updates.push_back(taken.update.get());
  const LargeVector<std::int32_t>& weights = state_.weights;
  compress::each_stretch(
      compress::all_of(layout_), recent_entries_, parallel, [&](std::size_t, compress::Stretch where) {
        compress::walk_merged(
            layout_, updates, where, [&](std::uint32_t i) { __builtin_prefetch(weights.data() + i); },
            [&](const compress::EntryRun& run) {
              for (std::size_t e = 0; e < run.count; ++e) {
                const std::uint32_t i = run.index[e];
                view.set(i, static_cast<std::uint32_t>(weights[i]));
              }
            });
      });
}

bool Replica::refresh(const compress::FloatView& view, Parallel& parallel) {
  RUMOR_CHECK(view.values.size() == layout_.params());
  const bool complete = recent_complete_;
  // pending_ and recent_ both end with the change taken last, so equal numbers are the same updates.
  if (complete && pending_.size() == recent_.size() && batch_.updates.empty()) {
    apply_pending(&view, parallel);
  } else {
    apply_pending(nullptr, parallel);
    if (complete) refresh_changed(view, parallel);
  }
  forget_recent();
  recent_complete_ = true;
  return complete;
}

bool Replica::refresh(Parallel& parallel) {
  apply_pending(nullptr, parallel);
  forget_recent();
  return std::exchange(recent_complete_, true);
}

std::optional<std::vector<Taken>> Replica::hand_over() {
  std::optional<std::vector<Taken>> changes;
  if (recent_complete_) changes = std::move(recent_);
  forget_recent();
  recent_complete_ = true;
  return changes;
}

Result<void> Replica::restore(ReplicaState state) {
  if (state.weights.size() != state_.weights.size())
    return Error{Errc::mismatch,
                 str("it holds ", state.weights.size(), " weights, this model has ", state_.weights.size())};
  if (fingerprinter_.of_weights(state.weights) != state.fingerprint)
    return Error{Errc::corrupt, "its weights do not have the fingerprint it claims"};
  LargeVector<std::int32_t> kept = std::move(state_.weights);
  for (std::size_t i = 0; i < kept.size(); ++i) write_weight(kept[i], static_cast<std::uint32_t>(state.weights[i]));
  state_ = std::move(state);
  state_.weights = std::move(kept);
  const auto beyond = std::find_if(state_.weights.begin(), state_.weights.end(), [](std::int32_t weight) {
    return is_near_range_end(static_cast<std::uint32_t>(weight));
  });
  near_range_end_.reset();
  if (beyond != state_.weights.end()) near_range_end_ = static_cast<std::uint32_t>(beyond - state_.weights.begin());
  digest_current_ = false;
  pending_.clear();
  batch_ = {};
  pending_entries_ = pending_fingerprint_ = 0;
  forget_recent();
  recent_complete_ = false;
  return {};
}

LargeVector<std::int32_t> Replica::release() {
  apply_pending_alone();
  return std::move(state_.weights);
}

std::size_t Replica::entry_bytes() const {
  std::size_t bytes = capacity_bytes(pending_, recent_, since_copy_);
  for (const compress::SharedUpdate& update : pending_) bytes += compress::part_bytes(update);
  for (const Taken& taken : recent_) bytes += compress::part_bytes(taken.update);
  for (const compress::SharedUpdate& update : since_copy_) bytes += compress::part_bytes(update);
  return bytes;
}

const gossip::ReplicaDigest& Replica::digest() const {
  if (!digest_current_) digest_ = digest_of(state_);
  digest_current_ = true;
  return digest_;
}

gossip::ReplicaDigest digest_of(const ReplicaState& state) {
  ByteWriter out;
  state.have.encode(out);
  for (const gossip::Revocation& one : state.revocations) {
    if (one.kind != gossip::Revocation::Kind::owner) {
      one.encode(out);
      continue;
    }
    for (const BytesView id : {one.node.view(), one.stream.view()}) out.raw(id);
    out.u64(one.range.first);
    out.u64(one.range.last);
  }
  return {sha256(out.bytes()), state.fingerprint, state.have.count()};
}

std::string digest_text(const gossip::ReplicaDigest& digest) {
  ByteWriter whole;
  whole.raw(digest.have_hash.view().first(8));
  whole.u64(digest.fingerprint);
  return to_hex(whole.bytes());
}

}  // namespace rumor
