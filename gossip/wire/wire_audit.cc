// The frames of audits: TAKEN_BACK, STATE_WANT, STATE_DATA, CHARGE.
#include "gossip/wire/wire_raw.h"
#include "runtime/base/check.h"
#include "runtime/base/limits.h"

namespace rumor::gossip {

namespace {

ByteWriter begin_audit_frame(FrameType type) {
  ByteWriter out;
  out.u8(static_cast<std::uint8_t>(type));
  return out;
}

void write_key(ByteWriter& out, const UpdateKey& key) {
  out.raw(key.stream.view());
  out.varint(key.seq);
}

UpdateKey read_key(ByteReader& in) {
  const auto stream = in.id<StreamId>();
  return {stream, in.varint()};
}

// A part beyond what a u32 holds is beyond parts_max too.
std::uint32_t read_part(ByteReader& in) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(in.varint(), UINT32_MAX));
}

Invalid invalid_key(const UpdateKey& key) {
  if (key.stream.is_zero()) return "an update without a stream";
  if (key.seq == 0 || key.seq > seq_max) return "a sequence number out of range";
  return std::nullopt;
}

template <class Message>
Result<Frame> whole(const ByteReader& in, Message message) {
  if (!in.done()) return malformed("a wrong length");
  if (const Invalid reason = message.invalid()) return malformed(*reason);
  return Frame{std::move(message)};
}

}  // namespace

Invalid TakenBack::invalid() const {
  if (revocation.kind == Revocation::Kind::owner) return "a revocation of another kind";
  return revocation.invalid();
}

Invalid StateWant::invalid() const {
  if (part > parts_max) return "a part out of range";
  return invalid_key(update);
}

Invalid StateData::invalid() const {
  if (part > StateWant::parts_max) return "a part out of range";
  const std::size_t longest = part == 0 ? StateWant::parts_max * Hash256::size : limits::piece_bytes_max;
  if (bytes.size() > longest || (part != 0 && bytes.empty())) return "a part of a wrong size";
  return invalid_key(update);
}

Invalid Charge::invalid() const { return invalid_key(update); }

Bytes encode(const TakenBack& message) {
  RUMOR_CHECK(!message.invalid());
  ByteWriter out = begin_audit_frame(FrameType::taken_back);
  message.revocation.encode(out);
  return out.take();
}

template <>
Result<Frame> decode_raw<TakenBack>(BytesView body) {
  ByteReader in(body);
  TakenBack message{Revocation::decode(in)};
  return whole(in, std::move(message));
}

Bytes encode(const StateWant& message) {
  RUMOR_CHECK(!message.invalid());
  ByteWriter out = begin_audit_frame(FrameType::state_want);
  write_key(out, message.update);
  out.varint(message.part);
  return out.take();
}

template <>
Result<Frame> decode_raw<StateWant>(BytesView body) {
  ByteReader in(body);
  StateWant message{read_key(in)};
  message.part = read_part(in);
  return whole(in, message);
}

Bytes encode(const StateData& message) {
  RUMOR_CHECK(!message.invalid());
  ByteWriter out = begin_audit_frame(FrameType::state_data);
  write_key(out, message.update);
  out.varint(message.part);
  out.raw(message.bytes);
  return out.take();
}

template <>
Result<Frame> decode_raw<StateData>(BytesView body) {
  ByteReader in(body);
  StateData message{read_key(in), 0, {}};
  message.part = read_part(in);
  message.bytes = in.raw(in.remaining());
  return whole(in, message);
}

Bytes encode(const Charge& message) {
  RUMOR_CHECK(!message.invalid());
  ByteWriter out = begin_audit_frame(FrameType::charge);
  write_key(out, message.update);
  return out.take();
}

template <>
Result<Frame> decode_raw<Charge>(BytesView body) {
  ByteReader in(body);
  const Charge message{read_key(in)};
  return whole(in, message);
}

}  // namespace rumor::gossip
