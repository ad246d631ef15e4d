#include "runtime/replica/checkpoint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/base/limits.h"
#include "runtime/base/mutant.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace rumor {

namespace {
// Added to the number of the owner's where others come behind them.
constexpr std::uint64_t others_follow = 65'536;
}  // namespace

void write_revocations(ByteWriter& out, const std::set<gossip::Revocation>& revocations) {
  using Kind = gossip::Revocation::Kind;
  const auto by_owner = [](const gossip::Revocation& one) { return one.kind == Kind::owner; };
  const auto owners = static_cast<std::uint64_t>(std::count_if(revocations.begin(), revocations.end(), by_owner));
  const std::uint64_t others = revocations.size() - owners;
  out.varint(owners + (others > 0 ? others_follow : 0));
  for (const gossip::Revocation& revocation : revocations) {
    if (!by_owner(revocation)) continue;
    out.raw(revocation.node.view());
    out.raw(revocation.stream.view());
    out.u64(revocation.range.first);
    out.u64(revocation.range.last);
    out.raw(revocation.signature.view());
  }
  if (others == 0) return;
  out.varint(others);
  for (const gossip::Revocation& revocation : revocations)
    if (!by_owner(revocation)) revocation.encode(out);
}

namespace {

gossip::Revocation read_owners(ByteReader& in) {
  gossip::Revocation one{in.id<NodeId>(), in.id<StreamId>()};
  one.range.first = in.u64();
  one.range.last = in.u64();
  one.signature = in.id<Signature>();
  return one;
}

// Equal sets have equal bytes, so they must ascend.
bool read_list(ByteReader& in, std::uint64_t count, std::set<gossip::Revocation>& revocations,
               gossip::Revocation (*read)(ByteReader&)) {
  if (count > limits::revocations_max) return false;
  std::optional<gossip::Revocation> last;
  for (std::uint64_t i = 0; i < count; ++i) {
    gossip::Revocation one = read(in);
    if (in.failed() || one.invalid() || (last && !(*last < one))) return false;
    last = one;
    revocations.insert(std::move(one));
  }
  return !in.failed();
}

}  // namespace

bool read_revocations(ByteReader& in, std::set<gossip::Revocation>& revocations) {
  const std::uint64_t count = in.varint();
  const bool more = count >= others_follow;
  if (!read_list(in, more ? count - others_follow : count, revocations, read_owners)) return false;
  if (!more) return true;
  const std::uint64_t others = in.varint();
  return others > 0 && read_list(in, others, revocations, gossip::Revocation::decode) &&
         revocations.size() <= limits::revocations_max;
}

namespace {

using Magic = std::uint8_t[8];  // its last byte is the version
constexpr Magic checkpoint_magic = {'R', 'U', 'M', 'O', 'R', 'C', 'K', 3};
constexpr Magic own_model_magic = {'R', 'U', 'M', 'O', 'R', 'C', 'A', 1};  // of a peer with a model of its own
constexpr Magic copy_magic = {'R', 'U', 'M', 'O', 'R', 'C', 'P', 1};
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

void write_replica(ByteWriter& out, const Magic& magic, const RunForm& form, const ReplicaState& replica) {
  out.raw(magic);
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
  if (in.done()) return local;
  const auto stream = in.id<StreamId>();
  local.point = UpdateKey{stream, in.u64()};
  return local;
}

// Which kind of checkpoint it seems to be.
const Magic& magic_of(BytesView bytes) {
  const bool own = bytes.size() >= sizeof own_model_magic && std::memcmp(bytes.data(), own_model_magic, 7) == 0;
  return own ? own_model_magic : checkpoint_magic;
}

// The bytes between magic and trailing hash, once both are right.
Result<BytesView> unseal(const Magic& magic, BytesView bytes) {
  if (bytes.size() < sizeof magic + Hash256::size || std::memcmp(bytes.data(), magic, 7) != 0)
    return Error{Errc::corrupt, "it is not a checkpoint, or its first bytes are damaged"};
  const BytesView body = bytes.first(bytes.size() - Hash256::size);
  if (!mutant(8) && sha256(body) != Hash256::from(bytes.last(Hash256::size)))
    return Error{Errc::corrupt, "it is damaged or cut off: its SHA-256 does not match"};
  if (bytes[7] != magic[7])
    return Error{Errc::mismatch,
                 str("it is of format version ", int{bytes[7]}, ", this program reads version ", int{magic[7]})};
  return body.subspan(sizeof magic);
}

Result<RunForm> read_head(ByteReader& in) {
  auto form = RunForm::decode(in);
  if (!form) return form.error();
  if (in.u64() != form->layout.params() || in.failed()) return damaged(in, "the number of weights is wrong");
  return form;
}

Result<ReplicaState> read_replica(ByteReader& in, const RunForm& form) {
  const auto head = read_head(in);
  if (!head) return head.error();
  if (head->run != form.run)
    return Error{Errc::mismatch,
                 str("it belongs to run ", head->run.brief(), ", this is run ", form.run.brief(),
                     "; choose another --state directory, or the run file it was made with")};
  if (head->layout.hash() != form.layout.hash() || head->grid_bits != form.grid_bits)
    return Error{Errc::mismatch, "it belongs to a model of another shape"};
  ReplicaState replica;
  const BytesView weights = in.raw(std::size_t{4} * form.layout.params());
  if (in.failed()) return damaged(in, "the weights are cut off");
  replica.weights = from_bytes<LargeVector<std::int32_t>>(weights, form.layout.params());
  auto have = gossip::HaveSet::decode(in);
  if (!have) return have.error();
  replica.have = std::move(have).value();
  replica.fingerprint = in.u64();
  replica.samples = in.u64();
  replica.period = in.u64();
  if (!read_revocations(in, replica.revocations)) return damaged(in, "its revocations are none");
  if (in.failed()) return damaged(in, "it is cut off");
  return replica;
}

}  // namespace

Bytes encode_checkpoint(const RunForm& form, const ReplicaState& replica, const LocalState& local) {
  ByteWriter out;
  const std::size_t large = 4 * (replica.weights.size() + local.residual.size()) + local.optimizer.size();
  out.reserve(large + large / 64 + (64 << 10));  // all else is small
  write_replica(out, local.own_model ? own_model_magic : checkpoint_magic, form, replica);
  out.raw(local.node.view());
  out.raw(as_bytes(std::span(local.residual)));
  out.sized(local.optimizer);
  if (local.point) {
    out.raw(local.point->stream.view());
    out.u64(local.point->seq);
  }
  return seal(out);
}

Result<RunForm> read_checkpoint_form(BytesView bytes) {
  const auto body = unseal(magic_of(bytes), bytes);
  if (!body) return body.error();
  ByteReader in(*body);
  return read_head(in);
}

Result<Checkpoint> decode_checkpoint(const RunForm& form, BytesView bytes) {
  const Magic& magic = magic_of(bytes);
  const auto body = unseal(magic, bytes);
  if (!body) return body.error();
  ByteReader in(*body);
  auto replica = read_replica(in, form);
  if (!replica) return replica.error();
  auto local = read_local(in, form.layout.params());
  if (!local) return local.error();
  if (!in.done()) return damaged(in, "more bytes follow than belong there");
  local->own_model = &magic == &own_model_magic;
  return Checkpoint{std::move(replica).value(), std::move(local).value()};
}

std::vector<float> model_of(const RunForm& form, const Checkpoint& checkpoint) {
  const float unit = std::ldexp(1.0f, -form.grid_bits);
  std::vector<float> model(checkpoint.replica.weights.size());
  for (std::size_t i = 0; i < model.size(); ++i) {
    model[i] = static_cast<float>(checkpoint.replica.weights[i]) * unit;
    if (checkpoint.local.own_model) model[i] += checkpoint.local.residual[i];
  }
  return model;
}

Bytes encode_copy(const RunForm& form, const ReplicaState& copy) {
  ByteWriter out;
  write_replica(out, copy_magic, form, copy);
  return seal(out);
}

Result<ReplicaState> decode_copy(const RunForm& form, BytesView bytes) {
  const auto body = unseal(copy_magic, bytes);
  if (!body) return body.error();
  ByteReader in(*body);
  auto replica = read_replica(in, form);
  if (replica && !in.done()) return damaged(in, "more bytes follow than belong there");
  return replica;
}

}  // namespace rumor
