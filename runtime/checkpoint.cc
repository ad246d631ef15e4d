#include "runtime/checkpoint.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/base/limits.h"
#include "runtime/base/mutant.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace rumor {

namespace {

constexpr std::uint8_t magic[8] = {'R', 'U', 'M', 'O', 'R', 'C', 'K', 2};
constexpr std::uint8_t flag_local = 1;
constexpr std::size_t optimizer_bytes_max = std::size_t{8} << 30;
static_assert(std::endian::native == std::endian::little, "arrays are written as they lie in memory");

template <class T>
BytesView as_bytes(const std::vector<T>& items) {
  return {reinterpret_cast<const std::uint8_t*>(items.data()), items.size() * sizeof(T)};
}

// Requires: bytes.size() == count * sizeof(T).
template <class T>
std::vector<T> from_bytes(BytesView bytes, std::size_t count) {
  std::vector<T> items(count);
  std::memcpy(items.data(), bytes.data(), bytes.size());
  return items;
}

void write_replica(ByteWriter& out, const RunForm& form, const ReplicaState& replica, std::uint8_t flags) {
  out.raw(magic);
  out.u8(flags);
  form.encode(out);
  out.u64(replica.weights.size());
  out.raw(as_bytes(replica.weights));
  if (mutant(9) && !replica.have.empty()) {
    gossip::HaveSet more = replica.have;
    const auto& [stream, ranges] = *replica.have.streams().begin();
    more.insert({stream, ranges.back().last + 1});
    more.encode(out);
  } else {
    replica.have.encode(out);
  }
  out.u64(replica.fingerprint);
  out.u64(replica.samples);
  out.u64(replica.period);
  out.varint(replica.revocations.size());
  for (const gossip::Revocation& revocation : replica.revocations) {
    out.raw(revocation.node.view());
    out.raw(revocation.stream.view());
    out.u64(revocation.range.first);
    out.u64(revocation.range.last);
    out.raw(revocation.owner.view());
  }
}

// False when there are too many, or one is none.
bool read_revocations(ByteReader& in, std::set<gossip::Revocation>& revocations) {
  const std::uint64_t count = in.varint();
  if (count > limits::revocations_max) return false;
  for (std::uint64_t i = 0; i < count && !in.failed(); ++i) {
    gossip::Revocation one{in.id<NodeId>(), in.id<StreamId>()};
    one.range.first = in.u64();
    one.range.last = in.u64();
    one.owner = in.id<Signature>();
    if (!one.range.valid() || one.node.is_zero()) return false;
    revocations.insert(one);
  }
  return revocations.size() == count;
}

void write_update(ByteWriter& out, const gossip::StoredUpdate& update) {
  const gossip::UpdateHeader& h = update.header;
  out.raw(h.key.stream.view());
  out.u64(h.key.seq);
  out.raw(h.origin.view());
  out.raw(h.payload_hash.view());
  out.u64(h.fingerprint);
  out.u64(h.period);
  out.u32(h.samples);
  out.raw(h.signature.view());
  out.sized(*update.payload);
}

gossip::StoredUpdate read_update(ByteReader& in) {
  gossip::StoredUpdate update;
  gossip::UpdateHeader& h = update.header;
  h.key.stream = in.id<StreamId>();
  h.key.seq = in.u64() + (mutant(10) ? 1 : 0);
  h.origin = in.id<NodeId>();
  h.payload_hash = in.id<Hash256>();
  h.fingerprint = in.u64();
  h.period = in.u64();
  h.samples = in.u32();
  h.signature = in.id<Signature>();
  const BytesView payload = in.sized(limits::payload_bytes_max);
  update.payload = std::make_shared<const Bytes>(payload.begin(), payload.end());
  return update;
}

Bytes seal(ByteWriter& out) {
  const Hash256 hash = sha256(out.bytes());
  out.raw(hash.view());
  return out.take();
}

Error damaged(const ByteReader& in, std::string_view what) {
  return Error{Errc::corrupt, str("damaged near byte ", in.position(), ": ", what)};
}

Result<LocalState> read_local(ByteReader& in, std::uint32_t params) {
  LocalState local;
  local.node = in.id<NodeId>();
  const BytesView residual = in.raw(std::size_t{4} * params);
  if (in.failed()) return damaged(in, "the residual is cut off");
  local.residual = from_bytes<float>(residual, params);
  for (float r : local.residual)
    if (!std::isfinite(r)) return damaged(in, "the residual holds a value that is not finite");
  const BytesView optimizer = in.sized(optimizer_bytes_max);
  local.optimizer.assign(optimizer.begin(), optimizer.end());
  const std::uint64_t count = in.varint();
  if (in.failed() || count > in.remaining()) return damaged(in, "the optimizer state or the log is cut off");
  for (std::uint64_t i = 0; i < count; ++i) {
    local.log.push_back(read_update(in));
    if (in.failed()) return damaged(in, "an update of the log is cut off");
  }
  return local;
}

// The bytes between magic and trailing hash, once both are right.
Result<BytesView> unseal(BytesView bytes) {
  if (bytes.size() < sizeof magic + Hash256::size || std::memcmp(bytes.data(), magic, 7) != 0)
    return Error{Errc::corrupt, "it is not a checkpoint, or its first bytes are damaged"};
  const BytesView body = bytes.first(bytes.size() - Hash256::size);
  if (!mutant(8) && sha256(body) != Hash256::from(bytes.last(Hash256::size)))
    return Error{Errc::corrupt, "it is damaged or cut off: its SHA-256 does not match"};
  if (bytes[7] != magic[7])
    return Error{Errc::mismatch,
                 str("it is of format version ", int{bytes[7]}, ", this program reads version 2")};
  return body.subspan(sizeof magic);
}

struct Head {
  std::uint8_t flags = 0;
  RunForm form;
};

Result<Head> read_head(ByteReader& in) {
  Head head;
  head.flags = in.u8();
  if ((head.flags & ~flag_local) != 0) return damaged(in, "reserved flags are set");
  auto form = RunForm::decode(in);
  if (!form) return form.error();
  head.form = std::move(form).value();
  if (in.u64() != head.form.layout.params() || in.failed())
    return damaged(in, "the number of weights is wrong");
  return head;
}

}  // namespace

Bytes encode_snapshot(const RunForm& form, const ReplicaState& replica) {
  ByteWriter out;
  write_replica(out, form, replica, 0);
  return seal(out);
}

Bytes encode_checkpoint(const RunForm& form, const ReplicaState& replica, const LocalState& local) {
  ByteWriter out;
  write_replica(out, form, replica, flag_local);
  out.raw(local.node.view());
  out.raw(as_bytes(local.residual));
  out.sized(local.optimizer);
  out.varint(local.log.size());
  for (const gossip::StoredUpdate& update : local.log) write_update(out, update);
  return seal(out);
}

Result<RunForm> read_checkpoint_form(BytesView bytes) {
  const auto body = unseal(bytes);
  if (!body) return body.error();
  ByteReader in(*body);
  auto head = read_head(in);
  if (!head) return head.error();
  return std::move(head->form);
}

Result<Checkpoint> decode_checkpoint(const RunForm& form, BytesView bytes) {
  const auto body = unseal(bytes);
  if (!body) return body.error();
  ByteReader in(*body);
  const auto head = read_head(in);
  if (!head) return head.error();
  if (head->form.run != form.run)
    return Error{Errc::mismatch,
                 str("it belongs to run ", head->form.run.brief(), ", this is run ", form.run.brief(),
                     "; choose another --state directory, or the run file it was made with")};
  if (head->form.layout.hash() != form.layout.hash() || head->form.grid_bits != form.grid_bits)
    return Error{Errc::mismatch, "it belongs to a model of another shape"};
  Checkpoint checkpoint;
  const BytesView weights = in.raw(std::size_t{4} * form.layout.params());
  if (in.failed()) return damaged(in, "the weights are cut off");
  checkpoint.replica.weights = from_bytes<std::int32_t>(weights, form.layout.params());
  auto have = gossip::HaveSet::decode(in);
  if (!have) return have.error();
  checkpoint.replica.have = std::move(have).value();
  checkpoint.replica.fingerprint = in.u64();
  checkpoint.replica.samples = in.u64();
  checkpoint.replica.period = in.u64();
  if (!read_revocations(in, checkpoint.replica.revocations)) return damaged(in, "its revocations are none");
  if (in.failed()) return damaged(in, "it is cut off");
  if ((head->flags & flag_local) != 0) {
    auto local = read_local(in, form.layout.params());
    if (!local) return local.error();
    checkpoint.local = std::move(local).value();
  }
  if (!in.done()) return damaged(in, "more bytes follow than belong there");
  return checkpoint;
}

}  // namespace rumor
