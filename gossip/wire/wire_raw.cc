#include "gossip/wire/wire_raw.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/limits.h"

namespace rumor::gossip {

namespace {

constexpr std::uint8_t vector_more = 1, vector_reply = 2;
constexpr std::uint8_t data_goes_on = 0x80, piece_goes_on = 1;

void begin(ByteWriter& out, FrameType type) { out.u8(static_cast<std::uint8_t>(type)); }

template <class Message>
Result<Frame> checked(Message message) {
  if (const Invalid reason = message.invalid()) return malformed(*reason);
  return Frame{std::move(message)};
}

// Writes a frame up to the bytes of the payload.
ByteWriter head_of(const Data& message) {
  RUMOR_CHECK(!message.invalid());
  ByteWriter out;
  begin(out, FrameType::data);
  out.varint(message.stream);
  out.varint(message.header.key.seq);
  out.varint(message.header.period);
  out.varint(message.header.samples);
  out.u64(message.header.fingerprint);
  out.raw(message.header.signature.view());
  out.u8(
      static_cast<std::uint8_t>(static_cast<unsigned>(message.coding) | (message.more ? data_goes_on : 0u)));
  return out;
}

ByteWriter head_of(const DataMore& message) {
  RUMOR_CHECK(!message.invalid());
  ByteWriter out;
  begin(out, FrameType::data_more);
  out.u8(message.more ? piece_goes_on : 0);
  return out;
}

}  // namespace

Bytes encode(const Data& message) {
  ByteWriter out = head_of(message);
  out.raw(message.payload);
  return out.take();
}

template <>
Result<Frame> decode_raw<Data>(BytesView body) {
  ByteReader in(body);
  Data message;
  const std::uint64_t stream = in.varint();
  message.header.key.seq = in.varint();
  message.header.period = in.varint();
  const std::uint64_t samples = in.varint();
  message.header.fingerprint = in.u64();
  message.header.signature = in.id<Signature>();
  const std::uint8_t flags = in.u8(), coding = flags & static_cast<std::uint8_t>(~data_goes_on);
  message.payload = in.raw(in.remaining());
  if (in.failed()) return malformed("cut short");
  if (coding > coding_max) return malformed("an unknown coding");
  message.coding = static_cast<Coding>(coding);
  message.more = (flags & data_goes_on) != 0;
  if (stream >= limits::streams_max) return malformed("a stream index out of range");
  if (samples > UINT32_MAX) return malformed("a number of samples out of range");
  message.stream = static_cast<std::uint32_t>(stream);
  message.header.samples = static_cast<std::uint32_t>(samples);
  return checked(message);
}

Bytes encode(const DataMore& message) {
  ByteWriter out = head_of(message);
  out.raw(message.bytes);
  return out.take();
}

template <>
Result<Frame> decode_raw<DataMore>(BytesView body) {
  ByteReader in(body);
  const std::uint8_t flags = in.u8();
  DataMore message{in.raw(in.remaining()), flags == piece_goes_on};
  if (in.failed() || flags > piece_goes_on) return malformed("unknown flags");
  return checked(message);
}

std::vector<OutFrame> encode_in_pieces(Data message, const std::shared_ptr<const Bytes>& payload) {
  RUMOR_CHECK(!message.more);
  std::vector<OutFrame> frames;
  std::size_t at = 0;
  do {
    OutFrame frame;
    frame.shared = payload;
    frame.begin = at;
    frame.count = std::min(payload->size() - at, limits::piece_bytes_max);
    at += frame.count;
    const bool more = at < payload->size();
    if (frames.empty()) {
      message.payload = frame.tail();
      message.more = more;
      frame.head = head_of(message).take();
    } else {
      frame.head = head_of(DataMore{frame.tail(), more}).take();
    }
    frames.push_back(std::move(frame));
  } while (at < payload->size());
  return frames;
}

Bytes encode(const Vector& message) {
  RUMOR_CHECK(!message.invalid());
  ByteWriter out;
  begin(out, FrameType::vector);
  out.u8(static_cast<std::uint8_t>((message.more ? vector_more : 0) | (message.reply ? vector_reply : 0)));
  message.part.encode(out);
  return out.take();
}

template <>
Result<Frame> decode_raw<Vector>(BytesView body) {
  ByteReader in(body);
  const std::uint8_t flags = in.u8();
  if ((flags & ~(vector_more | vector_reply)) != 0) return malformed("unknown flags");
  Result<HaveSet> part = HaveSet::decode(in);
  if (!part) return part.error();
  if (!in.done()) return malformed("bytes left over");
  Vector message{std::move(part).value(), (flags & vector_more) != 0, (flags & vector_reply) != 0};
  return checked(std::move(message));
}

Bytes encode(const SnapshotData& message) {
  RUMOR_CHECK(!message.invalid());
  ByteWriter out;
  begin(out, FrameType::snapshot_data);
  out.u32(message.number);
  out.u32(message.part);
  out.u8(message.more ? piece_goes_on : 0);
  out.raw(message.bytes);
  return out.take();
}

template <>
Result<Frame> decode_raw<SnapshotData>(BytesView body) {
  ByteReader in(body);
  SnapshotData message;
  message.number = in.u32();
  message.part = in.u32();
  const std::uint8_t flags = in.u8();
  message.more = flags == piece_goes_on;
  message.bytes = in.raw(in.remaining());
  if (in.failed() || flags > piece_goes_on) return malformed("cut short, or unknown flags");
  return checked(message);
}

Bytes encode(const Buffers& message) {
  RUMOR_CHECK(!message.invalid());
  ByteWriter out;
  begin(out, FrameType::buffers);
  out.raw(message.node.view());
  out.varint(message.number);
  out.varint(message.progress);
  out.raw(message.signature.view());
  out.raw(message.values);
  return out.take();
}

template <>
Result<Frame> decode_raw<Buffers>(BytesView body) {
  ByteReader in(body);
  Buffers message;
  message.node = in.id<NodeId>();
  message.number = in.varint();
  message.progress = in.varint();
  message.signature = in.id<Signature>();
  message.values = in.raw(in.remaining());
  if (in.failed()) return malformed("cut short");
  return checked(message);
}

Bytes encode(const SnapshotJoin& message) {
  ByteWriter out;
  begin(out, FrameType::snapshot_join);
  out.raw(message.hash.view());
  message.names.encode(out);
  RUMOR_CHECK(out.size() <= limits::frame_bytes_max);
  return out.take();
}

template <>
Result<Frame> decode_raw<SnapshotJoin>(BytesView body) {
  ByteReader in(body);
  SnapshotJoin message;
  message.hash = in.id<Hash256>();
  Result<HaveSet> names = HaveSet::decode(in);
  if (!names) return names.error();
  if (!in.done()) return malformed("bytes left over");
  message.names = std::move(names).value();
  return Frame{std::move(message)};
}

}  // namespace rumor::gossip
