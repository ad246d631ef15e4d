#include "gossip/wire/wire_raw.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/limits.h"

namespace rumor::gossip {

namespace {

constexpr std::size_t text_bytes_max = 512;
constexpr std::uint8_t vector_more = 1, vector_reply = 2;
constexpr std::uint8_t data_goes_on = 0x80, piece_goes_on = 1;

// Texts of peers end up in logs: no control characters.
bool presentable(std::string_view text, std::size_t bytes_max) {
  return text.size() <= bytes_max &&
         std::none_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; });
}

Invalid invalid_records(const std::vector<PeerRecord>& records) {
  if (records.size() > limits::records_per_frame_max) return "too many records";
  for (const PeerRecord& record : records) {
    if (const Invalid reason = record.invalid()) return reason;
  }
  return std::nullopt;
}

Invalid invalid_ranges(const std::vector<WireRange>& ranges) {
  if (ranges.empty() || ranges.size() > limits::keys_per_frame_max) return "a wrong number of ranges";
  std::uint64_t keys = 0;
  for (const WireRange& range : ranges) {
    if (!range.range.valid()) return "a range that is none";
    keys += range.range.count();
    if (keys > limits::keys_per_frame_max) return "too many keys";
  }
  return std::nullopt;
}

void begin(ByteWriter& out, FrameType type) { out.u8(static_cast<std::uint8_t>(type)); }

}  // namespace

Invalid PeerRecord::invalid() const {
  if (node.is_zero()) return "a record without a node";
  if (number == 0 || number > record_number_max) return "a record number out of range";
  if (addresses.size() > limits::addresses_per_record_max) return "too many addresses";
  if (admit.size() > limits::admit_bytes_max) return "a token that is none";
  for (const std::string& address : addresses) {
    if (address.empty() || !presentable(address, limits::address_bytes_max)) return "an address that is none";
  }
  return std::nullopt;
}

Invalid Hello::invalid() const {
  if (version_min == 0 || version_min > version_max) return "a version range that is none";
  if (stream.is_zero()) return "a greeting without a stream";
  if (!presentable(run_name, text_bytes_max)) return "a run name that is none";
  return self.invalid();
}

Invalid Reject::invalid() const {
  if (code < Code::other_run || code > Code::not_admitted) return "an unknown reason";
  if (!presentable(text, text_bytes_max) || !presentable(run_name, text_bytes_max))
    return "a text that is none";
  return invalid_records(others);
}

Invalid Bye::invalid() const {
  if (code < Code::leaving || code > Code::duplicate) return "an unknown reason";
  if (!presentable(text, text_bytes_max)) return "a text that is none";
  return invalid_records(others);
}

Invalid Invite::invalid() const {
  if (to == from) return "an invitation to oneself";
  return std::nullopt;
}

Invalid Peers::invalid() const {
  if (records.empty()) return "no records";
  return invalid_records(records);
}

Invalid StreamDef::invalid() const {
  if (index >= limits::streams_max) return "a stream index out of range";
  if (stream.is_zero()) return "a stream without a name";
  if (origin && origin->is_zero()) return "an origin without a name";
  return std::nullopt;
}

Invalid Have::invalid() const {
  if (keys.empty() || keys.size() > limits::keys_per_frame_max) return "a wrong number of keys";
  for (const WireKey& key : keys) {
    if (key.seq == 0 || key.seq > seq_max) return "a sequence number out of range";
  }
  return std::nullopt;
}

Invalid Want::invalid() const { return invalid_ranges(ranges); }
Invalid NotAvailable::invalid() const { return invalid_ranges(ranges); }

Invalid Data::invalid() const {
  if (header.key.seq == 0 || header.key.seq > seq_max) return "a sequence number out of range";
  if (payload.empty()) return "no payload";
  if (payload.size() > limits::piece_bytes_max) return "a piece too long";
  return std::nullopt;
}

Invalid Revocations::invalid() const {
  if (list.empty() || list.size() > limits::revocations_max) return "a wrong number of revocations";
  for (const Revocation& revocation : list) {
    if (revocation.node.is_zero() || !revocation.range.valid()) return "a revocation of nothing";
  }
  return std::nullopt;
}

Invalid Headers::invalid() const {
  if (hashes.empty() || hashes.size() > hashes_max) return "a wrong number of hashes";
  if (first == 0 || first > seq_max - hashes_max) return "a sequence number out of range";
  return std::nullopt;
}

Invalid Equivocation::invalid() const {
  for (const UpdateHeader* header : {&one, other ? &*other : &one}) {
    if (header->key.stream.is_zero() || header->origin.is_zero()) return "a header without a name";
    if (header->key.seq == 0 || header->key.seq > seq_max) return "a sequence number out of range";
  }
  return std::nullopt;
}

Invalid Vector::invalid() const {
  std::size_t ranges = 0;
  for (const auto& [stream, list] : part.streams()) ranges += list.size();
  if (ranges > limits::ranges_per_frame_max) return "too many ranges";
  return std::nullopt;
}

Invalid SnapshotOffer::invalid() const {
  if (!presentable(refusal, text_bytes_max)) return "a refusal that is no text";
  if (number != 0 && (bytes == 0 || bytes > limits::snapshot_bytes_max)) return "a size out of range";
  if (number != 0 && (manifest_bytes == 0 || manifest_bytes > limits::manifest_bytes_max))
    return "a size out of range";
  return std::nullopt;
}

Invalid SnapshotData::invalid() const {
  if (bytes.empty() || bytes.size() > limits::piece_bytes_max) return "a piece of a wrong size";
  return std::nullopt;
}

Invalid DataMore::invalid() const {
  if (bytes.empty() || bytes.size() > limits::piece_bytes_max) return "a piece of a wrong size";
  return std::nullopt;
}

namespace {

// All of a frame but the bytes of the payload.
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

Result<Frame> decode_data(BytesView body) {
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
  if (const Invalid reason = message.invalid()) return malformed(*reason);
  return Frame{message};
}

Bytes encode(const DataMore& message) {
  ByteWriter out = head_of(message);
  out.raw(message.bytes);
  return out.take();
}

Result<Frame> decode_data_more(BytesView body) {
  ByteReader in(body);
  const std::uint8_t flags = in.u8();
  DataMore message{in.raw(in.remaining()), flags == piece_goes_on};
  if (in.failed() || flags > piece_goes_on) return malformed("unknown flags");
  if (const Invalid reason = message.invalid()) return malformed(*reason);
  return Frame{message};
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

Result<Frame> decode_vector(BytesView body) {
  ByteReader in(body);
  const std::uint8_t flags = in.u8();
  if ((flags & ~(vector_more | vector_reply)) != 0) return malformed("unknown flags");
  Result<HaveSet> part = HaveSet::decode(in);
  if (!part) return part.error();
  if (!in.done()) return malformed("bytes left over");
  Vector message{std::move(part).value(), (flags & vector_more) != 0, (flags & vector_reply) != 0};
  if (const Invalid reason = message.invalid()) return malformed(*reason);
  return Frame{std::move(message)};
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

Result<Frame> decode_snapshot_data(BytesView body) {
  ByteReader in(body);
  SnapshotData message;
  message.number = in.u32();
  message.part = in.u32();
  const std::uint8_t flags = in.u8();
  message.more = flags == piece_goes_on;
  message.bytes = in.raw(in.remaining());
  if (in.failed() || flags > piece_goes_on) return malformed("cut short, or unknown flags");
  if (const Invalid reason = message.invalid()) return malformed(*reason);
  return Frame{message};
}

Bytes encode(const SnapshotJoin& message) {
  ByteWriter out;
  begin(out, FrameType::snapshot_join);
  out.raw(message.hash.view());
  message.names.encode(out);
  RUMOR_CHECK(out.size() <= limits::frame_bytes_max);
  return out.take();
}

Result<Frame> decode_snapshot_join(BytesView body) {
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
