#include "runtime/sim/world/sim_store.h"

#include <algorithm>

#include "runtime/base/mutant.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/sim/world/tag_keys.h"

namespace rumor::sim {

using gossip::Accepted;
using gossip::StoredUpdate;

namespace {

compress::SparseUpdate random_update(const ParamLayout& layout, std::uint32_t entries_max, Prng& prng) {
  compress::SparseUpdate update;
  const std::uint64_t entries = 1 + prng.below(entries_max);
  for (std::uint64_t e = 0; e < entries; ++e)
    update.index.push_back(static_cast<std::uint32_t>(prng.below(layout.params())));
  std::sort(update.index.begin(), update.index.end());
  update.index.erase(std::unique(update.index.begin(), update.index.end()), update.index.end());
  for (std::size_t e = 0; e < update.index.size(); ++e)
    update.negative.push_back(static_cast<std::uint8_t>(prng.below(2)));
  update.step = static_cast<std::int32_t>(1 + prng.below(1u << 20));
  return update;
}

}  // namespace

SimModel SimModel::make(std::uint32_t params, std::uint64_t seed) {
  Prng prng = Prng::named(seed, "model");
  SimModel model;
  const std::uint32_t first = params / 2, second = params / 3, third = params - first - second;
  std::vector<TensorInfo> tensors;
  tensors.push_back({"a", {first}, 0, 0});
  tensors.push_back({"b", {second}, 0, 0});
  tensors.push_back({"c", {third}, 0, 0});
  model.form.layout = ParamLayout::create(std::move(tensors)).value();
  for (auto& byte : model.form.run.bytes) byte = static_cast<std::uint8_t>(prng.next());
  for (std::uint32_t i = 0; i < params; ++i)
    model.initial.push_back(static_cast<std::int32_t>(static_cast<std::uint32_t>(prng.next())));
  return model;
}

// ---- a real replica ----

SimStore::SimStore(const SimModel& model)
    : HeldUpdates(model.form, model.initial, model.log_bytes, model.log_bytes / 4), model_(model) {}

Result<Accepted> SimStore::accept(const StoredUpdate& update) {
  if (have().contains(update.header.key)) return Accepted::duplicate;
  auto change = decode(*update.payload);
  if (!change) return change.error();
  const auto taken = apply(update, std::move(change).value(), {});
  if (taken && *taken == Accepted::applied) applied_.push_back(update.header);
  return taken;
}

Result<void> SimStore::take_back(const UpdateKey& key) {
  const auto taken = HeldUpdates::take_back(key);
  if (taken) replaced_ = true;
  return taken;
}

Result<void> SimStore::install(ReplicaState state) {
  auto installed = mutant(44) ? held().replica().restore(std::move(state)) : HeldUpdates::install(std::move(state));
  if (installed) replaced_ = true;
  return installed;
}

void SimStore::open(Disk& disk) { RUMOR_CHECK(HeldUpdates::open(disk).ok()); }

void SimStore::replay() {
  if (HeldUpdates::replay()) replaced_ = true;
}

// One update may be larger than the whole log.
bool SimStore::log_in_bounds() const {
  return log().bytes() <= model_.log_bytes || log().size() <= 1;
}

StoredUpdate SimStore::seal(const StreamId& stream, const NodeId& origin, std::uint64_t seq, Prng& prng) {
  compress::SparseUpdate entries = random_update(model_.form.layout, model_.entries_max, prng);
  StoredUpdate update;
  Bytes payload = compress::encode(model_.form.layout, entries);
  update.header.key = {stream, seq};
  update.header.origin = origin;
  update.header.payload_hash = sha256(payload);
  update.header.period = held().replica().period() + 1;
  update.header.samples = 8;
  held().replica().apply_own(update.header, std::move(entries));
  update.header.signature = TagKeys(origin).sign(gossip::update_message(model_.form.run, update.header));
  update.payload = std::make_shared<const Bytes>(std::move(payload));
  log_own(update, {});
  return update;
}

Bytes SimStore::checkpoint(const NodeId& self) const {
  LocalState local;
  local.node = self;
  local.residual.assign(model_.form.layout.params(), 0.0f);
  return encode_checkpoint(model_.form, held().replica().state(), local);
}

Result<void> SimStore::restore(BytesView bytes) {
  auto checkpoint = decode_checkpoint(model_.form, bytes);
  if (!checkpoint) return checkpoint.error();
  if (auto restored = held().replica().restore(std::move(checkpoint->replica)); !restored) return restored;
  replaced_ = true;
  return {};
}

// ---- names and sizes only ----

void PayloadStore::mark(const UpdateKey& key, std::uint64_t fingerprint) {
  fingerprint_ += fingerprint;
  RUMOR_CHECK(have_.insert(key));
  digest_current_ = false;
}

gossip::ReplicaDigest PayloadStore::digest() const {
  if (!digest_current_) {
    ByteWriter out;
    have_.encode(out);
    digest_ = {sha256(out.bytes()), fingerprint_, have_.count()};
    digest_current_ = true;
  }
  return digest_;
}

std::optional<StoredUpdate> PayloadStore::find(const UpdateKey& key) const {
  if (!have_.contains(key)) return std::nullopt;
  return pool_.updates.at(key);
}

Result<Accepted> PayloadStore::accept(const StoredUpdate& update) {
  if (have_.contains(update.header.key)) return Accepted::duplicate;
  const auto known = pool_.updates.find(update.header.key);
  if (known == pool_.updates.end() || update.payload->size() != pool_.payload_bytes)
    return Error{Errc::corrupt, "nobody has made this update"};
  mark(update.header.key, update.header.fingerprint);
  applied_.push_back(update.header);
  return Accepted::applied;
}

namespace {

class NoCoder final : public gossip::LinkCoder {
 public:
  Bytes encode(gossip::Coding, BytesView payload) override { return {payload.begin(), payload.end()}; }
  Result<Bytes> decode(gossip::Coding, BytesView bytes) override { return Bytes(bytes.begin(), bytes.end()); }
};

}  // namespace

// Payloads are random and never damaged: hashing them would take most of the time.
Hash256 PayloadStore::hash_of(const Bytes&) const {
  Hash256 hash;
  hash.bytes[0] = 1;
  return hash;
}

Result<void> PayloadStore::revoke(const gossip::Revocation&) {
  return Error{Errc::limit, "a simulated store keeps no revocations"};
}

Result<void> PayloadStore::take_back(const UpdateKey&) {
  return Error{Errc::limit, "a simulated store takes nothing back"};
}

std::unique_ptr<gossip::LinkCoder> PayloadStore::coder_for_link() const {
  return std::make_unique<NoCoder>();
}

Result<void> PayloadStore::restore(BytesView checkpoint) {
  ByteReader in(checkpoint);
  Result<gossip::HaveSet> have = gossip::HaveSet::decode(in);
  if (!have) return have.error();
  fingerprint_ = in.u64();
  have_ = std::move(have).value();
  digest_current_ = false;
  replaced_ = true;
  return {};
}

StoredUpdate PayloadStore::seal(const StreamId& stream, const NodeId& origin, std::uint64_t seq, Prng& prng) {
  StoredUpdate update;
  Bytes payload(pool_.payload_bytes);
  for (auto& byte : payload) byte = static_cast<std::uint8_t>(prng.next());
  update.header.key = {stream, seq};
  update.header.origin = origin;
  update.header.fingerprint = prng.next();
  update.header.payload_hash = hash_of(payload);
  update.header.period = seq;
  update.header.samples = 8;
  update.header.signature = TagKeys(origin).sign(gossip::update_message(PayloadPool::run(), update.header));
  update.payload = std::make_shared<const Bytes>(std::move(payload));
  pool_.updates[update.header.key] = update;
  mark(update.header.key, update.header.fingerprint);
  return update;
}

Bytes PayloadStore::checkpoint(const NodeId&) const {
  ByteWriter out;
  have_.encode(out);
  out.u64(fingerprint_);
  return out.take();
}

}  // namespace rumor::sim
