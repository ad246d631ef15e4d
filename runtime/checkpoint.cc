#include "runtime/checkpoint.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/base/limits.h"
#include "runtime/base/mutant.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace rumor {

void write_revocations(ByteWriter& out, const std::set<gossip::Revocation>& revocations) {
  out.varint(revocations.size());
  for (const gossip::Revocation& revocation : revocations) {
    out.raw(revocation.node.view());
    out.raw(revocation.stream.view());
    out.u64(revocation.range.first);
    out.u64(revocation.range.last);
    out.raw(revocation.owner.view());
  }
}

bool read_revocations(ByteReader& in, std::set<gossip::Revocation>& revocations) {
  const std::uint64_t count = in.varint();
  if (count > limits::revocations_max) return false;
  for (std::uint64_t i = 0; i < count && !in.failed(); ++i) {
    gossip::Revocation one{in.id<NodeId>(), in.id<StreamId>()};
    one.range.first = in.u64();
    one.range.last = in.u64();
    one.owner = in.id<Signature>();
    if (!one.range.valid() || one.node.is_zero()) return false;
    if (!revocations.empty() && !(*revocations.rbegin() < one)) return false;  // equal sets have equal bytes
    revocations.insert(revocations.end(), one);
  }
  return !in.failed();
}

namespace {

constexpr std::uint8_t checkpoint_magic[8] = {'R', 'U', 'M', 'O', 'R', 'C', 'K', 3};
constexpr std::size_t optimizer_bytes_max = std::size_t{8} << 30;
static_assert(std::endian::native == std::endian::little, "arrays are written as they lie in memory");

template <class T>
BytesView as_bytes(std::span<T> items) {
  return {reinterpret_cast<const std::uint8_t*>(items.data()), items.size_bytes()};
}

// Requires: bytes.size() == count * sizeof one.
template <class Vector>
Vector from_bytes(BytesView bytes, std::size_t count) {
  Vector items(count);
  std::memcpy(items.data(), bytes.data(), bytes.size());
  return items;
}

void write_replica(ByteWriter& out, const RunForm& form, const ReplicaState& replica) {
  out.raw(checkpoint_magic);
  form.encode(out);
  out.u64(replica.weights.size());
  out.raw(as_bytes(std::span(replica.weights)));
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
  write_revocations(out, replica.revocations);
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
  local.residual = from_bytes<std::vector<float>>(residual, params);
  for (float r : local.residual)
    if (!std::isfinite(r)) return damaged(in, "the residual holds a value that is not finite");
  const BytesView optimizer = in.sized(optimizer_bytes_max);
  local.optimizer.assign(optimizer.begin(), optimizer.end());
  if (in.failed()) return damaged(in, "the optimizer state is cut off");
  return local;
}

// The bytes between magic and trailing hash, once both are right.
Result<BytesView> unseal(BytesView bytes) {
  if (bytes.size() < sizeof checkpoint_magic + Hash256::size || std::memcmp(bytes.data(), checkpoint_magic, 7) != 0)
    return Error{Errc::corrupt, "it is not a checkpoint, or its first bytes are damaged"};
  const BytesView body = bytes.first(bytes.size() - Hash256::size);
  if (!mutant(8) && sha256(body) != Hash256::from(bytes.last(Hash256::size)))
    return Error{Errc::corrupt, "it is damaged or cut off: its SHA-256 does not match"};
  if (bytes[7] != checkpoint_magic[7])
    return Error{Errc::mismatch,
                 str("it is of format version ", int{bytes[7]}, ", this program reads version 3")};
  return body.subspan(sizeof checkpoint_magic);
}

Result<RunForm> read_head(ByteReader& in) {
  auto form = RunForm::decode(in);
  if (!form) return form.error();
  if (in.u64() != form->layout.params() || in.failed()) return damaged(in, "the number of weights is wrong");
  return form;
}

}  // namespace

Bytes encode_checkpoint(const RunForm& form, const ReplicaState& replica, const LocalState& local) {
  ByteWriter out;
  write_replica(out, form, replica);
  out.raw(local.node.view());
  out.raw(as_bytes(std::span(local.residual)));
  out.sized(local.optimizer);
  return seal(out);
}

Result<RunForm> read_checkpoint_form(BytesView bytes) {
  const auto body = unseal(bytes);
  if (!body) return body.error();
  ByteReader in(*body);
  return read_head(in);
}

Result<Checkpoint> decode_checkpoint(const RunForm& form, BytesView bytes) {
  const auto body = unseal(bytes);
  if (!body) return body.error();
  ByteReader in(*body);
  const auto head = read_head(in);
  if (!head) return head.error();
  if (head->run != form.run)
    return Error{Errc::mismatch,
                 str("it belongs to run ", head->run.brief(), ", this is run ", form.run.brief(),
                     "; choose another --state directory, or the run file it was made with")};
  if (head->layout.hash() != form.layout.hash() || head->grid_bits != form.grid_bits)
    return Error{Errc::mismatch, "it belongs to a model of another shape"};
  Checkpoint checkpoint;
  const BytesView weights = in.raw(std::size_t{4} * form.layout.params());
  if (in.failed()) return damaged(in, "the weights are cut off");
  checkpoint.replica.weights = from_bytes<LargeVector<std::int32_t>>(weights, form.layout.params());
  auto have = gossip::HaveSet::decode(in);
  if (!have) return have.error();
  checkpoint.replica.have = std::move(have).value();
  checkpoint.replica.fingerprint = in.u64();
  checkpoint.replica.samples = in.u64();
  checkpoint.replica.period = in.u64();
  if (!read_revocations(in, checkpoint.replica.revocations)) return damaged(in, "its revocations are none");
  if (in.failed()) return damaged(in, "it is cut off");
  auto local = read_local(in, form.layout.params());
  if (!local) return local.error();
  checkpoint.local = std::move(local).value();
  if (!in.done()) return damaged(in, "more bytes follow than belong there");
  return checkpoint;
}

}  // namespace rumor
