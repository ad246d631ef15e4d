// FrameSpy: prints the frames that reach or leave one host of a simulated world, for finding out what went
// wrong.
#pragma once

#include <cstdio>
#include <string>

#include "gossip/wire/wire.h"
#include "runtime/sim/world/protocol_world.h"

namespace rumor::test {

class FrameSpy final : public sim::WorldObserver {
 public:
  FrameSpy(sim::ProtocolWorld& world, double from_s, double to_s, sim::HostId host)
      : world_(world), from_s_(from_s), to_s_(to_s), host_(host) {}

  void arrived(sim::HostId to, sim::HostId from, BytesView frame) override {
    const double at = to_seconds(world_.now().time_since_epoch());
    if (at < from_s_ || at > to_s_ || (to != host_ && from != host_)) return;
    std::printf("%.4f %u->%u %s\n", at, from, to, text(frame).c_str());
  }

 private:
  static std::string text(BytesView frame) {
    static constexpr const char* names[] = {"?",
                                            "HELLO",
                                            "REJECT",
                                            "BYE",
                                            "PING",
                                            "PONG",
                                            "PEERS",
                                            "STREAM",
                                            "HAVE",
                                            "WANT",
                                            "SUBSCRIBE",
                                            "DATA",
                                            "DIGEST",
                                            "VECTOR",
                                            "NOT_AVAILABLE",
                                            "SNAPSHOT_ASK",
                                            "SNAPSHOT_OFFER",
                                            "SNAPSHOT_WANT",
                                            "SNAPSHOT_DATA"};
    if (frame.empty()) return "closed";
    std::string line = frame[0] < std::size(names) ? names[frame[0]] : "?";
    const auto decoded = gossip::decode(frame);
    if (!decoded) return line + " malformed";
    const auto add = [&](std::uint64_t a, std::uint64_t b) {
      line += " " + std::to_string(a) + ":" + std::to_string(b);
    };
    if (const auto* want = std::get_if<gossip::Want>(&*decoded))
      for (const auto& range : want->ranges) add(range.stream, range.range.first);
    if (const auto* none = std::get_if<gossip::NotAvailable>(&*decoded))
      for (const auto& range : none->ranges) add(range.stream, range.range.first);
    if (const auto* have = std::get_if<gossip::Have>(&*decoded))
      for (const auto& key : have->keys) add(key.stream, key.seq);
    if (const auto* data = std::get_if<gossip::Data>(&*decoded)) add(data->stream, data->header.key.seq);
    if (const auto* subscribe = std::get_if<gossip::Subscribe>(&*decoded))
      add(subscribe->stream, subscribe->on);
    if (const auto* digest = std::get_if<gossip::Digest>(&*decoded))
      line += " " + std::to_string(digest->replica.updates) + (digest->finished ? " finished" : "");
    return line;
  }

  sim::ProtocolWorld& world_;
  double from_s_, to_s_;
  sim::HostId host_;
};

}  // namespace rumor::test
