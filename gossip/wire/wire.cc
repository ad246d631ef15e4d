// Reading the protobuf frames. Only this file and wire_encode.cc see the generated header.
#include "gossip/wire/wire.h"

#include "gossip/rumor.pb.h"
#include "gossip/wire/wire_raw.h"
#include "runtime/base/check.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

// Collects the first thing that is wrong while a message is read.
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

PeerRecord read(Reading& in, const pb::PeerRecord& from) {
  PeerRecord record{in.id<NodeId>(from.node()), from.number(), {}, in.id<Signature>(from.signature())};
  record.admit.assign(from.admit().begin(), from.admit().end());
  // One more than allowed is enough for invalid() to notice.
  for (const std::string& address : from.addresses()) {
    if (record.addresses.size() > limits::addresses_per_record_max) break;
    record.addresses.push_back(address);
  }
  return record;
}

template <class List>
std::vector<PeerRecord> read_all(Reading& in, const List& list) {
  std::vector<PeerRecord> records;
  for (const pb::PeerRecord& record : list) {
    if (records.size() > limits::records_per_frame_max) break;
    records.push_back(read(in, record));
  }
  return records;
}

Digest read(Reading& in, const pb::Digest& from) {
  return {{in.id<Hash256>(from.have_hash()), from.fingerprint(), from.updates()},
          from.table_hash(),
          from.finished(),
          from.reply()};
}

Hello read(Reading& in, const pb::Hello& from) {
  return {from.version_min(),
          from.version_max(),
          in.id<RunId>(from.run()),
          from.run_name(),
          in.id<StreamId>(from.stream()),
          read(in, from.self()),
          read(in, from.digest()),
          from.lonely(),
          from.codings()};
}

Reject read(Reading& in, const pb::Reject& from) {
  return {static_cast<Reject::Code>(from.code()), from.text(), in.id<RunId>(from.run()), from.run_name(),
          read_all(in, from.others())};
}

Bye read(Reading& in, const pb::Bye& from) {
  return {static_cast<Bye::Code>(from.code()), from.text(), read_all(in, from.others())};
}

Peers read(Reading& in, const pb::Peers& from) { return {read_all(in, from.records())}; }

StreamDef read(Reading& in, const pb::StreamDef& from) {
  StreamDef message{from.index(), in.id<StreamId>(from.stream()), {}};
  if (!from.origin().empty()) message.origin = in.id<NodeId>(from.origin());
  return message;
}

Revocations read(Reading& in, const pb::Revocations& from) {
  Revocations message;
  for (const pb::Revocation& one : from.list()) {
    if (message.list.size() > limits::revocations_max) break;
    Revocation revocation{
        in.id<NodeId>(one.node()), {}, {one.first(), one.last()}, in.id<Signature>(one.owner())};
    if (!one.stream().empty()) revocation.stream = in.id<StreamId>(one.stream());
    message.list.push_back(revocation);
  }
  return message;
}

Headers read(Reading& in, const pb::Headers& from) {
  Headers message{from.stream(), from.first(), {}};
  const std::string& hashes = from.hashes();
  if (hashes.size() % HalfHash::size != 0) in.wrong = "hashes that are cut off";
  if (hashes.size() / HalfHash::size > Headers::hashes_max) in.wrong = "too many hashes";
  if (!in.wrong.empty()) return message;
  const BytesView bytes{reinterpret_cast<const std::uint8_t*>(hashes.data()), hashes.size()};
  for (std::size_t at = 0; at < bytes.size(); at += HalfHash::size)
    message.hashes.push_back(HalfHash::from(bytes.subspan(at, HalfHash::size)));
  return message;
}

UpdateHeader read(Reading& in, const pb::Header& from) {
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

Equivocation read(Reading& in, const pb::Equivocation& from) {
  Equivocation message{read(in, from.one()), {}};
  if (from.has_other()) message.other = read(in, from.other());
  return message;
}

Have read(Reading& in, const pb::Keys& from) {
  Have message;
  const int count = from.stream_size();
  if (count != from.seq_size()) in.wrong = "lists of unequal length";
  if (!in.wrong.empty() || static_cast<std::size_t>(count) > limits::keys_per_frame_max) return message;
  message.keys.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) message.keys.push_back({from.stream(i), from.seq(i)});
  return message;
}

std::vector<WireRange> read(Reading& in, const pb::KeyRanges& from) {
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

template <class Message>
Result<Frame> checked(const Reading& in, Message message) {
  if (!in.wrong.empty()) return Error{Errc::corrupt, in.wrong};
  if (const Invalid reason = message.invalid()) return Error{Errc::corrupt, std::string(*reason)};
  return Frame{std::move(message)};
}

// Parses the body as a Proto and hands it to `convert(reading, proto)`.
template <class Proto, class Convert>
Result<Frame> parse(BytesView body, Convert convert) {
  Proto proto;
  if (!proto.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return Error{Errc::corrupt, "a body that does not parse"};
  }
  Reading in;
  auto message = convert(in, proto);
  return checked(in, std::move(message));
}

template <class Proto>
Result<Frame> parse(BytesView body) {
  return parse<Proto>(body, [](Reading& in, const Proto& proto) { return read(in, proto); });
}

Result<Frame> decode_body(FrameType type, BytesView body) {
  switch (type) {
    case FrameType::hello: return parse<pb::Hello>(body);
    case FrameType::reject: return parse<pb::Reject>(body);
    case FrameType::bye: return parse<pb::Bye>(body);
    case FrameType::ping:
      return parse<pb::Ping>(body, [](Reading&, const pb::Ping& p) { return Ping{p.nonce()}; });
    case FrameType::pong:
      return parse<pb::Ping>(body, [](Reading&, const pb::Ping& p) { return Pong{p.nonce()}; });
    case FrameType::peers: return parse<pb::Peers>(body);
    case FrameType::stream: return parse<pb::StreamDef>(body);
    case FrameType::have: return parse<pb::Keys>(body);
    case FrameType::want:
      return parse<pb::KeyRanges>(body,
                                  [](Reading& in, const pb::KeyRanges& p) { return Want{read(in, p)}; });
    case FrameType::decline:
      return parse<pb::Decline>(body, [](Reading&, const pb::Decline& p) { return Decline{p.stream()}; });
    case FrameType::subscribe:
      return parse<pb::Subscribe>(body, [](Reading&, const pb::Subscribe& p) {
        return Subscribe{p.stream(), p.on()};
      });
    case FrameType::data: return decode_data(body);
    case FrameType::digest: return parse<pb::Digest>(body);
    case FrameType::vector: return decode_vector(body);
    case FrameType::not_available:
      return parse<pb::KeyRanges>(
          body, [](Reading& in, const pb::KeyRanges& p) { return NotAvailable{read(in, p)}; });
    case FrameType::snapshot_ask:
      return parse<pb::SnapshotAsk>(body, [](Reading& in, const pb::SnapshotAsk& p) {
        return SnapshotAsk{p.updates(), p.mutual(),
                           p.have_hash().empty() ? Hash256{} : in.id<Hash256>(p.have_hash())};
      });
    case FrameType::snapshot_offer:
      return parse<pb::SnapshotOffer>(body, [](Reading& in, const pb::SnapshotOffer& p) {
        return SnapshotOffer{p.number(),
                             p.number() == 0 ? Hash256{} : in.id<Hash256>(p.hash()),
                             p.bytes(),
                             p.updates(),
                             p.mean_update_bytes(),
                             p.refusal(),
                             p.manifest_bytes(),
                             p.period(),
                             p.later()};
      });
    case FrameType::snapshot_want:
      return parse<pb::SnapshotWant>(body, [](Reading&, const pb::SnapshotWant& p) {
        return SnapshotWant{p.number(), p.part(), p.done()};
      });
    case FrameType::snapshot_data: return decode_snapshot_data(body);
    case FrameType::snapshot_join:
      return decode_snapshot_join(body);
    case FrameType::data_more:
      return decode_data_more(body);
    case FrameType::revoke:
      return parse<pb::Revocations>(body);
    case FrameType::headers:
      return parse<pb::Headers>(body);
    case FrameType::equivocation:
      return parse<pb::Equivocation>(body);
    case FrameType::invite:
      return parse<pb::Invite>(body, [](Reading& in, const pb::Invite& p) {
        return Invite{in.id<NodeId>(p.to()), in.id<NodeId>(p.from())};
      });
    case FrameType::copy_ask: return decode_copy_ask(body);
    case FrameType::copy: return decode_copy(body);
    case FrameType::skipped_from: break;
  }
  return Frame{Skipped{}};
}

}  // namespace

std::size_t frame_bytes_max_of(std::uint8_t type) {
  constexpr std::size_t small = 1 << 10, keys = 16 << 10, records = 256 << 10;
  static_assert(keys >= limits::keys_per_frame_max * (3 + 6 + 6) + 64);
  static_assert(records >= limits::records_per_frame_max *
                                   (160 + limits::admit_bytes_max +
                                    limits::addresses_per_record_max * (limits::address_bytes_max + 4)) +
                               2 * small);
  switch (static_cast<FrameType>(type)) {
    case FrameType::hello: return limits::hello_bytes_max;
    case FrameType::reject:
    case FrameType::bye:
    case FrameType::revoke:
    case FrameType::headers:
    case FrameType::peers: return records;
    case FrameType::have:
    case FrameType::want:
    case FrameType::not_available: return keys;
    case FrameType::data:
    case FrameType::data_more:
    case FrameType::snapshot_data:
    case FrameType::copy:
      return limits::piece_bytes_max + small;
    case FrameType::vector:
    case FrameType::snapshot_join:
      return limits::frame_bytes_max;
    case FrameType::ping:
    case FrameType::pong:
    case FrameType::stream:
    case FrameType::subscribe:
    case FrameType::decline:
    case FrameType::invite:
    case FrameType::copy_ask:
    case FrameType::digest:
    case FrameType::equivocation:
    case FrameType::snapshot_ask:
    case FrameType::snapshot_offer:
    case FrameType::snapshot_want: return small;
    case FrameType::skipped_from: break;
  }
  return type >= static_cast<std::uint8_t>(FrameType::skipped_from) ? limits::frame_bytes_max : 0;
}

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
