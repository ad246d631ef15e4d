#include "runtime/training/device_arrivals.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "compress/payload/recorded.h"
#include "runtime/base/memory_bytes.h"

namespace rumor {

namespace {

constexpr std::size_t coming_max = 256;

}  // namespace

DeviceArrivals::DeviceArrivals(std::unique_ptr<gpu::Gpu> stream, const ParamLayout& layout)
    : stream_(std::move(stream)), entries_max_(layout.params() / 4), codec_(*stream_, layout) {}

Result<DeviceArrivals> DeviceArrivals::create(const gpu::Gpu& gpu, ParamLayout layout) {
  auto stream = gpu.open_urgent();
  if (!stream) return stream.error();
  return DeviceArrivals(std::move(stream).value(), layout);
}

void DeviceArrivals::begin(const std::shared_ptr<const Bytes>& payload) {
  if (coming_entries_ >= entries_max_ || coming_.size() >= coming_max) return;
  Arrival arrival = spare();
  const BytesView bytes = compress::update_part(*payload);
  if (!codec_.begin({&bytes, 1}, arrival.entries, arrival.begun)) {
    spare_.push_back(std::move(arrival));
    return;
  }
  arrival.payload = payload;
  coming_entries_ += arrival.entries.count;
  coming_.push_back(std::move(arrival));
}

DeviceArrivals::Arrival DeviceArrivals::spare() {
  if (spare_.empty()) return {};
  Arrival arrival = std::move(spare_.back());
  spare_.pop_back();
  return arrival;
}

Result<void> DeviceArrivals::collect() {
  Result<void> done;
  for (Arrival& arrival : coming_)
    if (auto finished = codec_.finish(arrival.begun, arrival.entries); !finished && done) done = finished;
  give_up(there_);
  std::swap(there_, coming_);
  coming_entries_ = 0;
  if (!done) give_up(there_);
  std::sort(there_.begin(), there_.end(), [](const Arrival& a, const Arrival& b) {
    return std::less<>()(a.payload.get(), b.payload.get());
  });
  return done;
}

// Their room is kept, within limits.
void DeviceArrivals::give_up(std::vector<Arrival>& arrivals) {
  std::uint64_t room = 0;
  for (const Arrival& kept : spare_) room += kept.entries.index.size();
  for (Arrival& arrival : arrivals) {
    room += arrival.entries.index.size();
    if (room > 2 * entries_max_) break;
    arrival.payload.reset();
    spare_.push_back(std::move(arrival));
  }
  arrivals.clear();
}

const gpu::DeviceUpdate* DeviceArrivals::find(const Bytes& payload) const {
  const auto at = std::lower_bound(
      there_.begin(), there_.end(), &payload,
      [](const Arrival& arrival, const Bytes* wanted) { return std::less<>()(arrival.payload.get(), wanted); });
  return at != there_.end() && at->payload.get() == &payload ? &at->entries : nullptr;
}

std::size_t DeviceArrivals::memory_bytes() const {
  std::size_t bytes = codec_.memory_bytes();
  for (const std::vector<Arrival>* arrivals : {&coming_, &there_, &spare_})
    for (const Arrival& arrival : *arrivals) bytes += arrival.entries.memory_bytes() + arrival.begun.memory_bytes();
  return bytes;
}

}  // namespace rumor
