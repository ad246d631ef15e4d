#include "gossip/broadcast/queue_probe.h"

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
  ProbeLink& its = parts(link).probe;
  if (!its.nonce || *its.nonce != pong.nonce) return false;
  its.nonce.reset();
  const Duration took = core_.now - its.sent_at;
  its.data_wait = std::max(Duration{0}, took - link.round_trip.value_or(Duration{0}));
  return true;
}

// A probe on its way counts with the time since it was sent. While the PING beside it is unanswered too, the link is
// slow as a whole, and the last probe counts.
std::optional<Duration> QueueProbe::wait_of(const Link& link) const {
  const ProbeLink& its = parts(link).probe;
  if (!its.nonce || overlay_.awaits_pong(link)) return its.data_wait;
  const Duration out = core_.now - its.sent_at - link.round_trip.value_or(Duration{0});
  return std::max(its.data_wait.value_or(Duration{0}), out);
}

// Over the links that carry DATA; 0 when none does. Nothing while none of these links has answered a probe.
std::optional<Duration> QueueProbe::median_wait() {
  std::vector<Duration> waits;
  bool silent = false;
  core_.each_link([&](const Link& link) {
    if (!parts(link).probe.nonce && !link.live_sent) return;
    const std::optional<Duration> wait = wait_of(link);
    wait ? waits.push_back(*wait) : void(silent = true);
  });
  if (waits.empty()) return silent ? std::nullopt : std::optional(Duration{0});
  const auto middle = waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 2);
  std::nth_element(waits.begin(), middle, waits.end());
  return *middle;
}

// The mean over the streams that flow.
Duration QueueProbe::others_gap() {
  const std::uint64_t received = core_.counters.updates_received;
  recent_ = recent_ - recent_ / 12 + (received - counted_) * one;
  recent_time_ = recent_time_ - recent_time_ / 12 + (core_.now - counted_at_);
  counted_ = received;
  counted_at_ = core_.now;
  std::int64_t flowing = 0;
  for (const Stream& stream : streams_)
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
  const Duration gap = others_gap();
  if (const auto wait = median_wait()) pace_.waits(*wait, gap, core_.now);
  core_.each_link([&](Link& link) {
    ProbeLink& its = parts(link).probe;
    if (its.nonce) return;
    if (!link.live_sent) return its.data_wait.reset();
    overlay_.ping(link);
    its.nonce = core_.prng.next();
    its.sent_at = core_.now;
    core_.send(link, encode(Ping{*its.nonce}), Lane::live);
    link.live_sent = false;
  });
}

}  // namespace rumor::gossip
