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

// Bookkeeping of an entry beside its payload, so that empty payloads are bounded too.
constexpr std::size_t overhead_bytes = 256;
constexpr std::uint8_t magic[8] = {'R', 'U', 'M', 'O', 'R', 'L', 'G', 1};
constexpr std::size_t check_bytes = 8;
constexpr std::size_t segment_head_bytes = sizeof magic + RunId::size + check_bytes;
constexpr std::size_t head_bytes = 1 + 16 + 8 + 32 + 32 + 8 + 8 + 4 + 64 + 4 + check_bytes;
constexpr std::uint8_t kind_update = 1, kind_taken_back = 2;
static_assert(head_bytes < overhead_bytes);

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

// ---- what is kept ----

void UpdateLog::put(const gossip::StoredUpdate& update, std::uint32_t bytes, std::uint32_t segment,
                    std::uint64_t offset, TimePoint now) {
  const auto [at, fresh] = updates_.try_emplace(update.header.key);
  RUMOR_CHECK(fresh);
  at->second = {update, bytes, ++orders_, segment, offset, now};
  arrival_.emplace(orders_, update.header.key);
  bytes_ += bytes + overhead_bytes;
  if (segment != 0) ++segments_[segment].kept;
  if (update.payload == nullptr) return;
  cache_bytes_ += bytes;
  if (disk_ != nullptr) cached_.push_back(update.header.key);
}

void UpdateLog::append(const gossip::StoredUpdate& update, TimePoint now) {
  std::uint64_t offset = 0;
  if (disk_ != nullptr) offset = write(update.header, *update.payload);
  put(update, static_cast<std::uint32_t>(update.payload->size()), offset != 0 ? writing_ : 0, offset, now);
  keep_bounds();
}

void UpdateLog::remove(std::map<UpdateKey, Entry>::iterator at) {
  const Entry& entry = at->second;
  bytes_ -= entry.bytes + overhead_bytes;
  if (entry.update.payload != nullptr) cache_bytes_ -= entry.bytes;
  arrival_.erase(entry.order);
  if (entry.segment != 0) {
    const auto segment = segments_.find(entry.segment);
    if (--segment->second.kept == 0 && entry.segment != writing_) {
      disk_->remove(file_of(entry.segment));
      disk_bytes_ -= segment->second.bytes;
      segments_.erase(segment);
    }
  }
  updates_.erase(at);
}

void UpdateLog::drop_oldest() {
  const UpdateKey key = arrival_.begin()->second;
  if (!acknowledged_.contains(key)) ++dropped_;
  const auto at = updates_.find(key);
  RUMOR_CHECK(at != updates_.end());
  remove(at);
}

void UpdateLog::keep_bounds() {
  if (mutant(11)) return;
  while (arrival_.size() > 1 && (bytes_ > bytes_max_ || updates_.size() > limits::log_updates_max ||
                                 (segments_.size() > 1 && disk_bytes_ > bytes_max_)))
    drop_oldest();
  while (cache_bytes_ > cache_bytes_max_ && cached_.size() > 1) {
    const auto at = updates_.find(cached_.front());
    cached_.pop_front();
    if (at == updates_.end() || at->second.update.payload == nullptr) continue;
    if (at->second.segment == 0) {
      if (!acknowledged_.contains(at->first)) ++dropped_;
      remove(at);
      continue;
    }
    cache_bytes_ -= at->second.bytes;
    at->second.update.payload.reset();
  }
}

void UpdateLog::erase(const UpdateKey& key) {
  const auto at = updates_.find(key);
  if (at == updates_.end()) return;
  const Entry& entry = at->second;
  if (entry.segment != 0) {
    const Bytes head = encode_head(kind_taken_back, entry.update.header, entry.bytes);
    (void)disk_->write(file_of(entry.segment), entry.offset - head_bytes,
                       head);  // else it may come back: PROTOCOL.md 6.13
  }
  remove(at);
}

std::size_t UpdateLog::memory_bytes() const {
  constexpr std::size_t of_a_node = 4 * sizeof(void*);  // of a map
  return cache_bytes_ + cached_.size() * sizeof(UpdateKey) +
         updates_.size() * (sizeof(decltype(updates_)::value_type) + of_a_node) +
         arrival_.size() * (sizeof(decltype(arrival_)::value_type) + of_a_node);
}

void UpdateLog::acknowledged(const gossip::HaveSet& by_all, TimePoint now) {
  acknowledged_ = by_all;
  while (!arrival_.empty()) {
    const auto at = updates_.find(arrival_.begin()->second);
    RUMOR_CHECK(at != updates_.end());
    const bool old = now - at->second.at >= kept_at_least;
    if (!old || !by_all.contains(at->first)) return;
    remove(at);
  }
}

// ---- questions ----

std::optional<gossip::StoredUpdate> UpdateLog::find(const UpdateKey& key) const {
  const auto at = mutant(12) ? updates_.lower_bound(key) : updates_.find(key);
  if (at == updates_.end()) return std::nullopt;
  const Entry& entry = at->second;
  if (entry.update.payload != nullptr) return entry.update;
  Result<Bytes> payload = disk_->read(file_of(entry.segment), entry.offset, entry.bytes);
  if (!payload || sha256(*payload) != entry.update.header.payload_hash) return std::nullopt;
  gossip::StoredUpdate update = entry.update;
  update.payload = std::make_shared<const Bytes>(std::move(payload).value());
  return update;
}

const gossip::UpdateHeader* UpdateLog::header(const UpdateKey& key) const {
  const auto at = updates_.find(key);
  return at == updates_.end() ? nullptr : &at->second.update.header;
}

std::size_t UpdateLog::payload_bytes(const UpdateKey& key) const {
  return updates_.at(key).bytes;
}

std::vector<UpdateKey> UpdateLog::keys() const {
  std::vector<UpdateKey> keys;
  for (const auto& [order, key] : arrival_) keys.push_back(key);
  return keys;
}

// ---- the disk ----

// Where its payload begins, or 0 when the disk does not take it.
std::uint64_t UpdateLog::write(const gossip::UpdateHeader& header, BytesView payload) {
  const std::uint64_t segment_bytes_max =
      std::clamp<std::uint64_t>(bytes_max_ / 8, 256, limits::log_segment_bytes);
  if (writing_ == 0 || segments_[writing_].bytes >= segment_bytes_max) {
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
    segments_[writing_].bytes = begun ? segment_head_bytes : segment_bytes_max;  // given up
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
  return offset;
}

// Returns how many bytes of it could not be read.
std::uint64_t UpdateLog::read_segment(std::uint32_t number) {
  const std::string file = file_of(number);
  const std::uint64_t size = disk_->size(file);
  Segment& segment = segments_[number];
  segment.bytes = size;
  disk_bytes_ += size;
  std::uint64_t at = segment_head_bytes;
  while (at < size) {
    const auto bytes = disk_->read(file, at, head_bytes);
    const auto head = bytes ? decode_head(*bytes) : std::nullopt;
    if (!head || head->payload_bytes > size - at - head_bytes) return size - at;
    const std::uint64_t payload = at + head_bytes;
    at = payload + head->payload_bytes;
    if (head->kind == kind_update && !updates_.contains(head->header.key))
      put({head->header, nullptr}, head->payload_bytes, number, payload, {});
  }
  return 0;
}

Result<std::uint64_t> UpdateLog::open(Disk& disk, const RunId& run) {
  RUMOR_CHECK(updates_.empty());
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
    damaged += read_segment(number);
    if (segments_[number].kept == 0) {
      disk_bytes_ -= segments_[number].bytes;
      segments_.erase(number);
      disk.remove(name);
    }
  }
  keep_bounds();
  dropped_ = 0;  // they were said to be in their day
  return damaged;
}

}  // namespace rumor
