#include "runtime/replica/update_log.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/base/check.h"
#include "runtime/base/limits.h"
#include "runtime/base/mutant.h"
#include "runtime/base/text.h"

namespace rumor {

namespace {

constexpr std::uint8_t magic[8] = {'R', 'U', 'M', 'O', 'R', 'L', 'G', 1};
constexpr std::size_t check_bytes = 8;
constexpr std::size_t segment_head_bytes = sizeof magic + RunId::size + check_bytes;
constexpr std::size_t head_bytes = 1 + 16 + 8 + 32 + 32 + 8 + 8 + 4 + 64 + 4 + check_bytes;
constexpr std::uint64_t segment_bytes_max = 2 * limits::log_segment_bytes;  // no segment that is ours has more
constexpr std::uint8_t kind_update = 1, kind_taken_back = 2;
static_assert(limits::payload_bytes_max < limits::log_segment_bytes - 1024);
static_assert(head_bytes < UpdateLog::overhead_bytes);

std::string file_of(std::uint32_t segment) {
  char name[24];
  std::snprintf(name, sizeof name, "log.%08u", segment);
  return name;
}

// 0 when it is no segment's name.
std::uint32_t segment_of(const std::string& name) {
  if (name.size() != 12 || name.rfind("log.", 0) != 0) return 0;
  return static_cast<std::uint32_t>(std::strtoul(name.c_str() + 4, nullptr, 10));
}

void add_check(ByteWriter& out) {
  const Hash256 check = sha256(out.bytes());
  out.raw(check.view().first(check_bytes));
}

bool check_fits(BytesView bytes) {
  const Hash256 check = sha256(bytes.first(bytes.size() - check_bytes));
  return std::memcmp(check.view().data(), bytes.last(check_bytes).data(), check_bytes) == 0;
}

Bytes encode_head(std::uint8_t kind, const gossip::UpdateHeader& h, std::size_t payload_bytes) {
  ByteWriter out;
  out.u8(kind);
  out.raw(h.key.stream.view());
  out.u64(h.key.seq);
  out.raw(h.origin.view());
  out.raw(h.payload_hash.view());
  out.u64(h.fingerprint);
  out.u64(h.period);
  out.u32(h.samples);
  out.raw(h.signature.view());
  out.u32(static_cast<std::uint32_t>(payload_bytes));
  add_check(out);
  return out.take();
}

struct Head {
  std::uint8_t kind = 0;
  gossip::UpdateHeader header;
  std::uint32_t payload_bytes = 0;
};

std::optional<Head> decode_head(BytesView bytes) {
  if (!mutant(46) && !check_fits(bytes)) return {};
  ByteReader in(bytes);
  Head head;
  head.kind = in.u8();
  gossip::UpdateHeader& h = head.header;
  h.key.stream = in.id<StreamId>();
  h.key.seq = in.u64() + (mutant(10) ? 1 : 0);
  h.origin = in.id<NodeId>();
  h.payload_hash = in.id<Hash256>();
  h.fingerprint = in.u64();
  h.period = in.u64();
  h.samples = in.u32();
  h.signature = in.id<Signature>();
  head.payload_bytes = in.u32();
  const bool known = head.kind == kind_update || head.kind == kind_taken_back;
  if (!known || h.key.seq == 0 || h.key.seq > gossip::seq_max ||
      head.payload_bytes > limits::payload_bytes_max)
    return {};
  return head;
}

}  // namespace

// ---- updates in memory ----

void UpdateLog::Held::add(Order order, const gossip::StoredUpdate& update) {
  updates.emplace(order, update);
  bytes += update.payload->size() + overhead_bytes;
}

void UpdateLog::Held::remove(Order order) {
  const auto at = updates.find(order);
  if (at == updates.end()) return;
  bytes -= at->second.payload->size() + overhead_bytes;
  updates.erase(at);
}

// Null: the update is on the disk only.
const gossip::StoredUpdate* UpdateLog::held(Order order) const {
  for (const Held* some : {&recent_, &unwritten_})
    if (const auto at = some->updates.find(order); at != some->updates.end()) return &at->second;
  return nullptr;
}

std::size_t UpdateLog::memory_bytes() const { return index_.memory_bytes() + recent_.bytes + unwritten_.bytes; }

// ---- adding and dropping ----

UpdateLog::Order UpdateLog::put(const UpdateKey& key, const LogIndex::Place& place) {
  bytes_ += place.bytes + overhead_bytes;
  if (place.segment != 0) ++segments_[place.segment].kept;
  return index_.add(key, place);
}

void UpdateLog::append(const gossip::StoredUpdate& update, TimePoint now) {
  LogIndex::Place place{.at = now, .bytes = static_cast<std::uint32_t>(update.payload->size())};
  if (disk_ != nullptr) place.offset = write(update.header, *update.payload);
  if (place.offset != 0) place.segment = writing_;
  (place.segment != 0 ? recent_ : unwritten_).add(put(update.header.key, place), update);
  keep_bounds();
}

void UpdateLog::remove(Order order) {
  const LogIndex::Place place = index_.place_of(order);
  bytes_ -= place.bytes + overhead_bytes;
  recent_.remove(order);
  unwritten_.remove(order);
  index_.remove(order);
  if (place.segment == 0) return;
  const auto segment = segments_.find(place.segment);
  if (--segment->second.kept != 0 || place.segment == writing_) return;
  disk_->remove(file_of(place.segment));
  disk_bytes_ -= segment->second.bytes;
  segments_.erase(segment);
}

// Because of a bound.
void UpdateLog::drop(Order order) {
  if (!acknowledged_.contains(index_.key_of(order))) ++dropped_;
  remove(order);
}

void UpdateLog::keep_bounds() {
  if (mutant(11)) return;
  while (index_.size() > 1 && (bytes_ > bytes_max_ || index_.arrivals() > limits::log_updates_max ||
                               (segments_.size() > 1 && disk_bytes_ > bytes_max_)))
    drop(index_.oldest());
  while (unwritten_.beyond(cache_bytes_max_)) drop(unwritten_.oldest());
  while (recent_.beyond(std::min(recent_bytes_max, cache_bytes_max_))) recent_.remove(recent_.oldest());
}

void UpdateLog::erase(const UpdateKey& key) {
  const auto order = index_.order_of(key);
  if (!order) return;
  const LogIndex::Place place = index_.place_of(*order);
  // Where the disk fails here the update may come back after a restart: PROTOCOL.md 6.13.
  if (const auto known = place.segment != 0 ? header_at(*order, key) : std::nullopt)
    (void)disk_->write(file_of(place.segment), place.offset - head_bytes,
                       encode_head(kind_taken_back, *known, place.bytes));
  remove(*order);
}

void UpdateLog::acknowledged(const gossip::HaveSet& by_all, TimePoint now) {
  acknowledged_ = by_all;
  while (!index_.empty()) {
    const Order oldest = index_.oldest();
    const bool old = now - index_.place_of(oldest).at >= kept_at_least;
    if (!old || !by_all.contains(index_.key_of(oldest))) return;
    remove(oldest);
  }
}

// ---- questions ----

std::optional<gossip::StoredUpdate> UpdateLog::find(const UpdateKey& key) const {
  auto order = index_.order_of(key);
  if (mutant(12) && !order)
    for (const UpdateKey& other : keys())
      if (key < other && (!order || other < index_.key_of(*order))) order = index_.order_of(other);
  if (!order) return {};
  if (const gossip::StoredUpdate* const here = held(*order)) return *here;
  Result<Bytes> record = read_record(*order, index_.place_of(*order).bytes);
  const auto head = record ? decode_head(BytesView(*record).first(head_bytes)) : std::nullopt;
  if (!head || head->header.key != index_.key_of(*order)) return {};
  Bytes payload(record->begin() + head_bytes, record->end());
  if (sha256(payload) != head->header.payload_hash) return {};
  return gossip::StoredUpdate{head->header, std::make_shared<const Bytes>(std::move(payload))};
}

std::optional<gossip::UpdateHeader> UpdateLog::header(const UpdateKey& key) const {
  const auto order = index_.order_of(key);
  return order ? header_at(*order, key) : std::nullopt;
}

std::optional<gossip::UpdateHeader> UpdateLog::header_at(Order order, const UpdateKey& key) const {
  if (const gossip::StoredUpdate* const here = held(order)) return here->header;
  const Result<Bytes> record = read_record(order, 0);
  const auto head = record ? decode_head(*record) : std::nullopt;
  if (!head || head->header.key != key) return {};
  return head->header;
}

std::size_t UpdateLog::payload_bytes(const UpdateKey& key) const {
  const auto order = index_.order_of(key);
  RUMOR_CHECK(order.has_value());
  return index_.place_of(*order).bytes;
}

std::vector<UpdateKey> UpdateLog::keys() const {
  std::vector<UpdateKey> keys;
  index_.each([&](Order order) { keys.push_back(index_.key_of(order)); });
  return keys;
}

// ---- the disk ----

// The head, and so much of the payload. Requires: the disk has the update.
Result<Bytes> UpdateLog::read_record(Order order, std::size_t payload_bytes) const {
  const LogIndex::Place place = index_.place_of(order);
  return disk_->read(file_of(place.segment), place.offset - head_bytes, head_bytes + payload_bytes);
}

// Returns where the payload begins, or 0 when the disk does not take the update.
std::uint32_t UpdateLog::write(const gossip::UpdateHeader& header, BytesView payload) {
  const std::uint64_t full_bytes = std::clamp<std::uint64_t>(bytes_max_ / 8, 256, limits::log_segment_bytes);
  if (writing_ == 0 || segments_[writing_].bytes >= full_bytes) {
    const std::uint32_t full = writing_;
    ByteWriter head;
    head.raw(magic);
    head.raw(run_.view());
    add_check(head);
    writing_ = ++last_segment_;
    segments_[writing_] = {};
    if (full != 0 && segments_[full].kept == 0) {
      disk_->remove(file_of(full));
      disk_bytes_ -= segments_[full].bytes;
      segments_.erase(full);
    }
    const Result<void> begun = disk_->write(file_of(writing_), 0, head.bytes());
    trouble_ = begun ? "" : begun.error().text;
    segments_[writing_].bytes = begun ? segment_head_bytes : full_bytes;  // given up
    disk_bytes_ += segments_[writing_].bytes;
    if (!begun) return 0;
  }
  Segment& segment = segments_[writing_];
  Bytes record = encode_head(kind_update, header, payload.size());
  const std::uint64_t offset = segment.bytes + record.size();
  record.insert(record.end(), payload.begin(), payload.end());
  const Result<void> written = disk_->write(file_of(writing_), segment.bytes, record);
  trouble_ = written ? "" : written.error().text;
  if (!written) return 0;  // the next record goes over what this one left
  segment.bytes += record.size();
  disk_bytes_ += record.size();
  return static_cast<std::uint32_t>(offset);
}

// Returns how many bytes of it could not be read.
std::uint64_t UpdateLog::read_segment(std::uint32_t number, Contents contents) {
  const std::string file = file_of(number);
  const std::uint64_t size = disk_->size(file);
  Segment& segment = segments_[number];
  segment.bytes = size;
  disk_bytes_ += size;
  std::uint64_t at = segment_head_bytes;
  while (at < size) {
    if (at > segment_bytes_max) return size - at;
    const auto bytes = disk_->read(file, at, head_bytes);
    const auto head = bytes ? decode_head(*bytes) : std::nullopt;
    if (!head || head->payload_bytes > size - at - head_bytes) return size - at;
    const std::uint64_t payload = at + head_bytes;
    at = payload + head->payload_bytes;
    const bool wanted = head->kind == kind_update || contents == Contents::also_taken_back;
    if (wanted && !contains(head->header.key))
      put(head->header.key, {{}, head->payload_bytes, number, static_cast<std::uint32_t>(payload)});
  }
  return 0;
}

Result<std::uint64_t> UpdateLog::open(Disk& disk, const RunId& run, Contents contents) {
  RUMOR_CHECK(index_.empty());
  disk_ = &disk;
  run_ = run;
  std::uint64_t damaged = 0;
  for (const std::string& name : disk.list()) {
    const std::uint32_t number = segment_of(name);
    if (number == 0) continue;
    last_segment_ = std::max(last_segment_, number);
    const auto head = disk.read(name, 0, segment_head_bytes);
    const bool ours = head && std::memcmp(head->data(), magic, sizeof magic) == 0 && check_fits(*head);
    if (ours && RunId::from(BytesView(*head).subspan(sizeof magic, RunId::size)) != run)
      return Error{Errc::mismatch,
                   "its log belongs to another run; choose another --state directory, or the run file "
                   "it was made with"};
    if (!ours) {
      damaged += disk.size(name);
      disk.remove(name);
      continue;
    }
    damaged += read_segment(number, contents);
    if (segments_[number].kept == 0) {
      disk_bytes_ -= segments_[number].bytes;
      segments_.erase(number);
      disk.remove(name);
    }
  }
  keep_bounds();
  dropped_ = 0;  // the process before has counted its own
  return damaged;
}

}  // namespace rumor
