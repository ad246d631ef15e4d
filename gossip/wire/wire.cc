// Reads the protobuf frames. Only this file and wire_encode.cc see the generated header.
#include "gossip/wire/wire.h"

#include "gossip/rumor.pb.h"
#include "gossip/wire/wire_raw.h"
#include "runtime/base/check.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

// Keeps the error that a message shows while it is read.
struct Reading {
  std::string wrong;

  template <class AnId>
  AnId id(const std::string& bytes) {
    if (bytes.size() != AnId::size) {
      wrong = "an id of a wrong length";
      return {};
    }
    return AnId::from({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  }
};

PeerRecord record_of(Reading& in, const pb::PeerRecord& from) {
  PeerRecord record{in.id<NodeId>(from.node()), from.number(), {}, in.id<Signature>(from.signature())};
  record.admit.assign(from.admit().begin(), from.admit().end());
  record.stage = from.stage();
  // One address more than allowed is enough for invalid() to notice.
  for (const std::string& address : from.addresses()) {
    if (record.addresses.size() > limits::addresses_per_record_max) break;
    record.addresses.push_back(address);
  }
  return record;
}

template <class List>
std::vector<PeerRecord> records_of(Reading& in, const List& list) {
  std::vector<PeerRecord> records;
  for (const pb::PeerRecord& record : list) {
    if (records.size() > limits::records_per_frame_max) break;
    records.push_back(record_of(in, record));
  }
  return records;
}

UpdateHeader header_of(Reading& in, const pb::Header& from) {
  UpdateHeader header;
  header.key = {in.id<StreamId>(from.stream()), from.seq()};
  header.origin = in.id<NodeId>(from.origin());
  header.payload_hash = in.id<Hash256>(from.payload_hash());
  header.fingerprint = from.fingerprint();
  header.period = from.period();
  header.samples = from.samples();
  header.signature = in.id<Signature>(from.signature());
  return header;
}

std::vector<WireRange> ranges_of(Reading& in, const pb::KeyRanges& from) {
  std::vector<WireRange> ranges;
  const int count = from.stream_size();
  if (count != from.first_size() || count != from.count_size()) in.wrong = "lists of unequal length";
  if (!in.wrong.empty() || static_cast<std::size_t>(count) > limits::keys_per_frame_max) return ranges;
  for (int i = 0; i < count; ++i) {
    // Zero or huge counts become ranges that invalid() refuses.
    const std::uint64_t first = from.first(i), length = from.count(i);
    const bool sane = length >= 1 && length <= seq_max && first <= seq_max;
    ranges.push_back({from.stream(i), sane ? SeqRange{first, first + length - 1} : SeqRange{}});
  }
  return ranges;
}

// ---- one read() for each frame with a protobuf body ----

void read(Reading& in, const pb::Digest& from, Digest& to) {
  to = {{in.id<Hash256>(from.have_hash()), from.fingerprint(), from.updates()},
        from.table_hash(),
        from.finished(),
        from.reply(),
        from.buffers()};
}

void read(Reading& in, const pb::Hello& from, Hello& to) {
  to.version_min = from.version_min();
  to.version_max = from.version_max();
  to.run = in.id<RunId>(from.run());
  to.run_name = from.run_name();
  to.stream = in.id<StreamId>(from.stream());
  to.self = record_of(in, from.self());
  read(in, from.digest(), to.digest);
  to.lonely = from.lonely();
  to.errand = from.errand();
  to.codings = from.codings();
  to.began = from.began();
  if (!from.pipeline().empty()) to.pipeline = in.id<PipelineId>(from.pipeline());
}

void read(Reading& in, const pb::Reject& from, Reject& to) {
  to = {static_cast<Reject::Code>(from.code()), from.text(), in.id<RunId>(from.run()), from.run_name(),
        records_of(in, from.others()), {from.parts().begin(), from.parts().end()},
        {from.start().begin(), from.start().end()}};
}

void read(Reading& in, const pb::Bye& from, Bye& to) {
  to = {static_cast<Bye::Code>(from.code()), from.text(), records_of(in, from.others())};
}

void read(Reading&, const pb::Ping& from, Ping& to) { to = {from.nonce()}; }
void read(Reading&, const pb::Ping& from, Pong& to) { to = {from.nonce()}; }
void read(Reading& in, const pb::Peers& from, Peers& to) { to = {records_of(in, from.records())}; }
void read(Reading& in, const pb::Invite& from, Invite& to) {
  to = {in.id<NodeId>(from.to()), in.id<NodeId>(from.from())};
}

void read(Reading& in, const pb::StreamDef& from, StreamDef& to) {
  to = {from.index(), in.id<StreamId>(from.stream()), {}};
  if (!from.origin().empty()) to.origin = in.id<NodeId>(from.origin());
}

void read(Reading& in, const pb::Keys& from, Have& to) {
  const int count = from.stream_size();
  if (count != from.seq_size()) in.wrong = "lists of unequal length";
  if (!in.wrong.empty() || static_cast<std::size_t>(count) > limits::keys_per_frame_max) return;
  to.keys.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) to.keys.push_back({from.stream(i), from.seq(i)});
}

void read(Reading& in, const pb::KeyRanges& from, Want& to) { to = {ranges_of(in, from)}; }
void read(Reading& in, const pb::KeyRanges& from, NotAvailable& to) { to = {ranges_of(in, from)}; }
void read(Reading&, const pb::Subscribe& from, Subscribe& to) { to = {from.stream(), from.on()}; }
void read(Reading&, const pb::Decline& from, Decline& to) { to = {from.stream()}; }
void read(Reading& in, const pb::Stage& from, Stage& to) {
  to = {in.id<PipelineId>(from.pipeline()), from.stage(), from.stages(), from.numbers()};
}
void read(Reading&, const pb::Credit& from, Credit& to) { to = {from.limit()}; }
void read(Reading&, const pb::Over&, Over&) {}
void read(Reading&, const pb::Outcome& from, Outcome& to) {
  to = {from.transfer(), static_cast<Outcome::Kind>(from.kind())};
}

void read(Reading& in, const pb::SnapshotAsk& from, SnapshotAsk& to) {
  to = {from.updates(), from.mutual(), from.have_hash().empty() ? Hash256{} : in.id<Hash256>(from.have_hash())};
}

void read(Reading& in, const pb::SnapshotOffer& from, SnapshotOffer& to) {
  to = {from.number(),         from.number() == 0 ? Hash256{} : in.id<Hash256>(from.hash()),
        from.bytes(),          from.updates(),
        from.mean_update_bytes(), from.refusal(),
        from.manifest_bytes(), from.period(),
        from.later()};
}

void read(Reading&, const pb::SnapshotWant& from, SnapshotWant& to) {
  to = {from.number(), from.part(), from.done()};
}

void read(Reading& in, const pb::Revocations& from, Revocations& to) {
  for (const pb::Revocation& one : from.list()) {
    if (to.list.size() > limits::revocations_max) break;
    Revocation revocation{
        in.id<NodeId>(one.node()), {}, {one.first(), one.last()}, in.id<Signature>(one.owner())};
    if (!one.stream().empty()) revocation.stream = in.id<StreamId>(one.stream());
    to.list.push_back(revocation);
  }
}

void read(Reading& in, const pb::Headers& from, Headers& to) {
  to = {from.stream(), from.first(), {}};
  const std::string& hashes = from.hashes();
  if (hashes.size() % HalfHash::size != 0) in.wrong = "hashes that are cut off";
  if (hashes.size() / HalfHash::size > Headers::hashes_max) in.wrong = "too many hashes";
  if (!in.wrong.empty()) return;
  const BytesView bytes{reinterpret_cast<const std::uint8_t*>(hashes.data()), hashes.size()};
  for (std::size_t at = 0; at < bytes.size(); at += HalfHash::size)
    to.hashes.push_back(HalfHash::from(bytes.subspan(at, HalfHash::size)));
}

void read(Reading& in, const pb::Equivocation& from, Equivocation& to) {
  to.one = header_of(in, from.one());
  if (from.has_other()) to.other = header_of(in, from.other());
}

// ---- by type ----

// Decodes the body of one frame. Body: the protobuf message that carries it, or Raw.
template <class Message, class Body>
Result<Frame> decode_as(BytesView bytes) {
  if constexpr (std::is_same_v<Body, Raw>) {
    return decode_raw<Message>(bytes);
  } else {
    Body body;
    if (!body.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return Error{Errc::corrupt, "a body that does not parse"};
    Reading in;
    Message message;
    read(in, body, message);
    if (!in.wrong.empty()) return Error{Errc::corrupt, in.wrong};
    if (const Invalid reason = message.invalid()) return Error{Errc::corrupt, std::string(*reason)};
    return Frame{std::move(message)};
  }
}

Result<Frame> decode_body(FrameType type, BytesView body) {
  switch (type) {
#define RUMOR_ROW(name, number, message, proto, ...) \
  case FrameType::name: return decode_as<message, proto>(body);
    RUMOR_FRAME_TABLE(RUMOR_ROW)
#undef RUMOR_ROW
    case FrameType::skipped_from: break;
  }
  return Frame{Skipped{}};
}

}  // namespace

Result<Frame> decode(BytesView bytes) {
  if (bytes.empty()) return Error{Errc::corrupt, "an empty frame"};
  const std::size_t bytes_max = frame_bytes_max_of(bytes[0]);
  if (bytes_max == 0) return Error{Errc::corrupt, str("unknown frame type ", int{bytes[0]})};
  if (bytes.size() > bytes_max)
    return Error{Errc::limit, str("frame of type ", int{bytes[0]}, " is too long")};
  Result<Frame> result = decode_body(static_cast<FrameType>(bytes[0]), bytes.subspan(1));
  if (result.ok()) return result;
  return Error{result.error().code, str("frame of type ", int{bytes[0]}, " has ", result.error().text)};
}

}  // namespace rumor::gossip
