// Writes the protobuf frames; wire.cc reads them.
#include "gossip/rumor.pb.h"
#include "gossip/wire/wire.h"
#include "runtime/base/check.h"

namespace rumor::gossip {

namespace {

std::string as_text(BytesView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Requires: `body` carries a Message.
template <class Message>
Bytes frame(const google::protobuf::MessageLite& body) {
  const std::size_t size = body.ByteSizeLong();
  Bytes out(1 + size);
  out[0] = static_cast<std::uint8_t>(row_of<Message>.type);
  RUMOR_CHECK(body.SerializeToArray(out.data() + 1, static_cast<int>(size)));
  RUMOR_CHECK(out.size() <= row_of<Message>.bytes_max);
  return out;
}

void write(pb::PeerRecord& to, const PeerRecord& record) {
  to.set_node(as_text(record.node.view()));
  to.set_number(record.number);
  for (const std::string& address : record.addresses) to.add_addresses(address);
  to.set_signature(as_text(record.signature.view()));
  to.set_admit(as_text(record.admit));
  to.set_stage(record.stage);
}

void write(pb::Digest& to, const Digest& digest) {
  to.set_have_hash(as_text(digest.replica.have_hash.view()));
  to.set_fingerprint(digest.replica.fingerprint);
  to.set_updates(digest.replica.updates);
  to.set_table_hash(digest.table_hash);
  to.set_finished(digest.finished);
  to.set_reply(digest.reply);
  to.set_buffers(digest.buffers);
}

void write(pb::Header& to, const UpdateHeader& header) {
  to.set_stream(as_text(header.key.stream.view()));
  to.set_seq(header.key.seq);
  to.set_origin(as_text(header.origin.view()));
  to.set_payload_hash(as_text(header.payload_hash.view()));
  to.set_fingerprint(header.fingerprint);
  to.set_period(header.period);
  to.set_samples(header.samples);
  to.set_signature(as_text(header.signature.view()));
}

pb::KeyRanges ranges_message(const std::vector<WireRange>& ranges) {
  pb::KeyRanges to;
  for (const WireRange& range : ranges) {
    to.add_stream(range.stream);
    to.add_first(range.range.first);
    to.add_count(range.range.count());
  }
  return to;
}

}  // namespace

Bytes encode(const Hello& message) {
  RUMOR_CHECK(!message.invalid());
  pb::Hello to;
  to.set_version_min(message.version_min);
  to.set_version_max(message.version_max);
  to.set_run(as_text(message.run.view()));
  to.set_run_name(message.run_name);
  to.set_stream(as_text(message.stream.view()));
  write(*to.mutable_self(), message.self);
  write(*to.mutable_digest(), message.digest);
  to.set_lonely(message.lonely);
  to.set_errand(message.errand);
  to.set_codings(message.codings);
  to.set_began(message.began);
  if (!message.pipeline.is_zero()) to.set_pipeline(as_text(message.pipeline.view()));
  return frame<Hello>(to);
}

Bytes encode(const Reject& message) {
  RUMOR_CHECK(!message.invalid());
  pb::Reject to;
  to.set_code(static_cast<std::uint32_t>(message.code));
  to.set_text(message.text);
  to.set_run(as_text(message.run.view()));
  to.set_run_name(message.run_name);
  for (const PeerRecord& record : message.others) write(*to.add_others(), record);
  to.mutable_parts()->Add(message.parts.begin(), message.parts.end());
  to.set_start(as_text(message.start));
  return frame<Reject>(to);
}

Bytes encode(const Bye& message) {
  RUMOR_CHECK(!message.invalid());
  pb::Bye to;
  to.set_code(static_cast<std::uint32_t>(message.code));
  to.set_text(message.text);
  for (const PeerRecord& record : message.others) write(*to.add_others(), record);
  return frame<Bye>(to);
}

Bytes encode(const Ping& message) {
  pb::Ping to;
  to.set_nonce(message.nonce);
  return frame<Ping>(to);
}

Bytes encode(const Pong& message) {
  pb::Ping to;
  to.set_nonce(message.nonce);
  return frame<Pong>(to);
}

Bytes encode(const Peers& message) {
  RUMOR_CHECK(!message.invalid());
  pb::Peers to;
  for (const PeerRecord& record : message.records) write(*to.add_records(), record);
  return frame<Peers>(to);
}

Bytes encode(const Invite& message) {
  RUMOR_CHECK(!message.invalid());
  pb::Invite to;
  to.set_to(as_text(message.to.view()));
  to.set_from(as_text(message.from.view()));
  return frame<Invite>(to);
}

Bytes encode(const StreamDef& message) {
  RUMOR_CHECK(!message.invalid());
  pb::StreamDef to;
  to.set_index(message.index);
  to.set_stream(as_text(message.stream.view()));
  if (message.origin) to.set_origin(as_text(message.origin->view()));
  return frame<StreamDef>(to);
}

Bytes encode(const Have& message) {
  RUMOR_CHECK(!message.invalid());
  pb::Keys to;
  for (const WireKey& key : message.keys) {
    to.add_stream(key.stream);
    to.add_seq(key.seq);
  }
  return frame<Have>(to);
}

Bytes encode(const Want& message) {
  RUMOR_CHECK(!message.invalid());
  return frame<Want>(ranges_message(message.ranges));
}

Bytes encode(const NotAvailable& message) {
  RUMOR_CHECK(!message.invalid());
  return frame<NotAvailable>(ranges_message(message.ranges));
}

Bytes encode(const Subscribe& message) {
  pb::Subscribe to;
  to.set_stream(message.stream);
  to.set_on(message.on);
  return frame<Subscribe>(to);
}

Bytes encode(const Decline& message) {
  pb::Decline to;
  to.set_stream(message.stream);
  return frame<Decline>(to);
}

Bytes encode(const Stage& message) {
  pb::Stage to;
  to.set_pipeline(as_text(message.pipeline.view()));
  to.set_stage(message.stage);
  to.set_stages(message.stages);
  to.set_numbers(message.numbers);
  return frame<Stage>(to);
}

Bytes encode(const Credit& message) {
  pb::Credit to;
  to.set_limit(message.limit);
  return frame<Credit>(to);
}

Bytes encode(const Over&) { return frame<Over>(pb::Over()); }

Bytes encode(const Outcome& message) {
  pb::Outcome to;
  to.set_transfer(message.transfer);
  to.set_kind(static_cast<std::uint32_t>(message.kind));
  return frame<Outcome>(to);
}

Bytes encode(const Digest& message) {
  pb::Digest to;
  write(to, message);
  return frame<Digest>(to);
}

Bytes encode(const SnapshotAsk& message) {
  pb::SnapshotAsk to;
  to.set_updates(message.updates);
  to.set_mutual(message.mutual);
  if (message.have_hash != Hash256{}) to.set_have_hash(as_text(message.have_hash.view()));
  return frame<SnapshotAsk>(to);
}

Bytes encode(const SnapshotOffer& message) {
  RUMOR_CHECK(!message.invalid());
  pb::SnapshotOffer to;
  to.set_number(message.number);
  if (message.number != 0) to.set_hash(as_text(message.hash.view()));
  to.set_bytes(message.bytes);
  to.set_updates(message.updates);
  to.set_mean_update_bytes(message.mean_update_bytes);
  to.set_refusal(message.refusal);
  to.set_manifest_bytes(message.manifest_bytes);
  to.set_period(message.period);
  to.set_later(message.later);
  return frame<SnapshotOffer>(to);
}

Bytes encode(const Revocations& message) {
  RUMOR_CHECK(!message.invalid());
  pb::Revocations to;
  for (const Revocation& revocation : message.list) {
    pb::Revocation& one = *to.add_list();
    one.set_node(as_text(revocation.node.view()));
    if (!revocation.stream.is_zero()) one.set_stream(as_text(revocation.stream.view()));
    one.set_first(revocation.range.first);
    one.set_last(revocation.range.last);
    one.set_owner(as_text(revocation.signature.view()));
  }
  return frame<Revocations>(to);
}

Bytes encode(const Headers& message) {
  RUMOR_CHECK(!message.invalid());
  pb::Headers to;
  to.set_stream(message.stream);
  to.set_first(message.first);
  for (const HalfHash& hash : message.hashes) to.mutable_hashes()->append(as_text(hash.view()));
  return frame<Headers>(to);
}

Bytes encode(const Equivocation& message) {
  RUMOR_CHECK(!message.invalid());
  pb::Equivocation to;
  write(*to.mutable_one(), message.one);
  if (message.other) write(*to.mutable_other(), *message.other);
  return frame<Equivocation>(to);
}

Bytes encode(const SnapshotWant& message) {
  pb::SnapshotWant to;
  to.set_number(message.number);
  to.set_part(message.part);
  to.set_done(message.done);
  return frame<SnapshotWant>(to);
}

}  // namespace rumor::gossip
