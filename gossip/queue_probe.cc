#include "gossip/queue_probe.h"

#include <algorithm>
#include <vector>

namespace rumor::gossip {

void QueueProbe::published() {
  published_at_ = core_.now;
  if (due_ != never) return;
  due_ = core_.now + every;
  counted_at_ = core_.now;
  counted_ = core_.counters.updates_received;
}

bool QueueProbe::on_pong(Link& link, const Pong& pong) {
  if (!link.probe || *link.probe != pong.nonce) return false;
  link.probe.reset();
  const Duration took = core_.now - link.probe_sent_at;
  link.data_wait = std::max(Duration{0}, took - link.round_trip.value_or(Duration{0}));
  return true;
}

Duration QueueProbe::median_wait() {
  std::vector<Duration> waits;
  core_.each_link([&](Link& link) {
    if (link.ping) return;  // it answers nothing: that says nothing about our uplink
    if (link.probe) {
      const Duration out = core_.now - link.probe_sent_at - link.round_trip.value_or(Duration{0});
      waits.push_back(std::max(link.data_wait, out));
    } else if (link.live_sent) {
      waits.push_back(link.data_wait);
    }
  });
  if (waits.empty()) return Duration{0};
  const auto middle = waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 2);
  std::nth_element(waits.begin(), middle, waits.end());
  return *middle;
}

// In the mean over the streams that flow.
Duration QueueProbe::others_gap() {
  const std::uint64_t received = core_.counters.updates_received;
  recent_ = recent_ - recent_ / 12 + (received - counted_) * one;
  recent_time_ = recent_time_ - recent_time_ / 12 + (core_.now - counted_at_);
  counted_ = received;
  counted_at_ = core_.now;
  std::int64_t flowing = 0;
  for (const Stream& stream : core_.streams)
    if (stream.id != core_.options.stream && stream.flow_bytes > 0) ++flowing;
  if (recent_ < 12 || flowing == 0) return OriginPace::interval_max;
  return recent_time_ * flowing * one / static_cast<std::int64_t>(recent_);
}

void QueueProbe::tick() {
  if (core_.now - published_at_ >= quiet_after) {
    due_ = never;
    return;
  }
  due_ = core_.now + every;
  const Duration wait = median_wait(), gap = others_gap();
  core_.pace.waits(wait, gap, core_.now);
  core_.each_link([&](Link& link) {
    if (link.probe) return;
    if (!link.live_sent) {
      link.data_wait = Duration{0};
      return;
    }
    overlay_.ping(link);
    link.probe = core_.prng.next();
    link.probe_sent_at = core_.now;
    core_.send(link, encode(Ping{*link.probe}), Lane::live);
    link.live_sent = false;
  });
}

}  // namespace rumor::gossip
