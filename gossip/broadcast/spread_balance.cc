// The part of Spread that balances giving and taking (PROTOCOL.md 6.1.12).
#include <algorithm>

#include "gossip/broadcast/spread.h"
#include "runtime/base/check.h"

namespace rumor::gossip {

void Spread::flows(Stream& stream, std::size_t payload_bytes) {
  stream.flow_bytes += payload_bytes;
  if (weigh_at_ == never) weigh_at_ = core_.now + weigh_every;
  due_by(weigh_at_);
}

// Each peer takes every update once, so a fair share is to give about as much. A peer that gives more than that, by the
// share of a few streams, declines some subscriptions before its uplink makes all subscribers wait. It never declines
// its own stream, which no other peer has first, nor a stream that was asked for again.
void Spread::weigh() {
  if (weigh_at_ == never) return;
  if (core_.now < weigh_at_) return due_by(weigh_at_);
  std::uint64_t taken = 0, flowing = 0, given = 0;
  for (const Stream& stream : streams_) {
    if (stream.id != core_.options.stream) taken += stream.flow_bytes;
    flowing += stream.flow_bytes > 0 ? 1 : 0;
  }
  std::vector<Push> pushes;
  core_.each_link([&](Link& link) {
    StreamsLink& its = parts(link).streams;
    for (StreamIndex stream = 0; stream < its.ours.size(); ++stream) {
      const std::uint64_t flow = streams_[stream].flow_bytes;
      if (!its.ours[stream].push_to_them || flow == 0) continue;
      given += flow;
      if (streams_[stream].id != core_.options.stream && !its.ours[stream].depends)
        pushes.push_back({&link, stream});
    }
  });
  const std::uint64_t fair = taken + taken / 8 + streams_beyond_fair * taken / std::max<std::uint64_t>(flowing, 1);
  for (std::size_t n = 0; n < declines_at_a_time && given > fair && !pushes.empty(); ++n) {
    const auto at = static_cast<std::size_t>(core_.prng.below(pushes.size()));
    decline(pushes[at]);
    given -= streams_[pushes[at].stream].flow_bytes;
    pushes[at] = pushes.back();
    pushes.pop_back();
  }
  for (Stream& stream : streams_) {
    stream.flow_bytes -= stream.flow_bytes / static_cast<std::uint64_t>(weigh_over / weigh_every);
    if (stream.flow_bytes < flow_bytes_min) stream.flow_bytes = 0;
  }
  weigh_at_ = flowing > 0 ? core_.now + weigh_every : never;
  due_by(weigh_at_);
}

void Spread::decline(const Push& push) {
  LinkStream& there = parts(*push.link).streams.ours[push.stream];
  there.push_to_them = false;
  there.we_declined_at = core_.now;
  --push.link->taking;
  core_.send(*push.link, encode(Decline{streams_.name_on(*push.link, push.stream, false)}));
}

bool Spread::has_declined(Link& link, StreamIndex stream) {
  const TimePoint at = parts(link).streams.on(stream).declined_at;
  return at != never && core_.now - at < declined_for;
}

void Spread::on_decline(Link& link, const Decline& message) {
  const auto stream = streams_.resolve(link, message.stream);
  if (!stream) return;
  parts(link).streams.on(*stream).declined_at = core_.now;
  Stream& state = streams_[*stream];
  if (state.provider != link.id) return;
  state.provider.reset();
  --link.providing;
  std::vector<std::uint64_t> late;
  for (const auto& [seq, entry] : state.missing)
    if (!entry.asked) late.push_back(seq);
  for (const std::uint64_t seq : late) ask_elsewhere({*stream, seq}, nullptr);
}

}  // namespace rumor::gossip
