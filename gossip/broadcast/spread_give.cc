// The giving half of Spread: subscriptions of others, answers to their WANTs, and the balance of giving and taking
// (PROTOCOL.md 6.1.12).
#include <algorithm>

#include "gossip/broadcast/spread.h"
#include "runtime/base/mutant.h"

namespace rumor::gossip {

void Spread::on_subscribe(Link& link, const Subscribe& message) {
  const auto stream = streams_.resolve(link, message.stream);
  if (!stream) return;
  LinkStream& there = parts(link).streams.on(*stream);
  if (there.push_to_them == message.on) return;
  there.push_to_them = message.on || mutant(17);
  there.depends = there.we_declined_at != never && core_.now - there.we_declined_at < declined_for;
  message.on ? ++link.taking : --link.taking;
}

void Spread::on_want(Link& link, const Want& message) {
  SpreadLink& its = parts(link).spread;
  for (const WireRange& wire : message.ranges) {
    const auto stream = streams_.resolve(link, wire.stream);
    if (!stream) return;
    if (its.to_serve.size() >= to_serve_max) return core_.shun(link, "asks for more than it may at a time");
    its.to_serve.push_back({*stream, wire.range});
  }
  serve(link);
}

// Answers WANTs in order, at most link_backlog_high bytes at a time.
void Spread::serve(Link& link) {
  SpreadLink& its = parts(link).spread;
  RangeList none;
  std::size_t budget = limits::link_backlog_high;
  while (!its.to_serve.empty() && !link.backlogged && budget > 0 && none.keys < limits::keys_per_frame_max) {
    LocalRange& next = its.to_serve.front();
    const LocalKey key{next.stream, next.range.first};
    if (++next.range.first > next.range.last) its.to_serve.pop_front();
    if (const auto update = core_.store.find(streams_.key_of(key))) {
      push(link, *update, key.stream);
      budget -= std::min(budget, update->payload->size() + 64);
      continue;
    }
    budget -= std::min<std::size_t>(budget, 16);
    none.add(streams_.name_on(link, key.stream, false), key.seq);
  }
  if (none.keys != 0 && !mutant(19)) core_.send(link, encode(NotAvailable{std::move(none.ranges)}));
  if (!its.to_serve.empty() && !link.backlogged) due_by(core_.now + serve_again);
}

// ---- balance ----

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

}  // namespace rumor::gossip
