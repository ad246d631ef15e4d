// invalid() of every frame but those of public copies: the limits that a frame must keep (PROTOCOL.md, section 8).
#include <algorithm>

#include "gossip/wire/wire.h"
#include "runtime/base/limits.h"

namespace rumor::gossip {

namespace {

constexpr std::size_t text_bytes_max = 512;

// Texts of peers end up in logs, so control characters are refused.
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

}  // namespace

Invalid PeerRecord::invalid() const {
  if (node.is_zero()) return "a record without a node";
  if (number == 0 || number > record_number_max) return "a record number out of range";
  if (addresses.size() > limits::addresses_per_record_max) return "too many addresses";
  if (admit.size() > limits::admit_bytes_max) return "a token that is none";
  if (stage > limits::stages_max) return "a stage out of range";
  for (const std::string& address : addresses) {
    if (address.empty() || !presentable(address, limits::address_bytes_max)) return "an address that is none";
  }
  return std::nullopt;
}

Invalid Hello::invalid() const {
  if (version_min == 0 || version_min > version_max) return "a version range that is none";
  if (stream.is_zero()) return "a greeting without a stream";
  if (pipeline.is_zero() != (self.stage == 0)) return "a stage without its pipeline";
  if (!presentable(run_name, text_bytes_max)) return "a run name that is none";
  return self.invalid();
}

Invalid Reject::invalid() const {
  if (code < Code::other_run || code > Code::not_admitted) return "an unknown reason";
  if (!presentable(text, text_bytes_max) || !presentable(run_name, text_bytes_max))
    return "a text that is none";
  if (parts.size() > limits::run_parts_max || start.size() > limits::start_note_bytes_max)
    return "more of a run than a rejection may tell";
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

Invalid Buffers::invalid() const {
  if (node.is_zero()) return "buffers of no node";
  if (number == 0 || number > record_number_max) return "a number out of range";
  if (values.empty() || values.size() > limits::buffers_bytes_max) return "buffers of a wrong size";
  return std::nullopt;
}

Invalid Revocations::invalid() const {
  if (list.empty() || list.size() > limits::revocations_max) return "a wrong number of revocations";
  for (const Revocation& revocation : list) {
    if (revocation.kind != Revocation::Kind::owner) return "a revocation of another kind";
    if (const Invalid reason = revocation.invalid()) return reason;
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

}  // namespace rumor::gossip
