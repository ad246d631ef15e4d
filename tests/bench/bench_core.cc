// The protocol core by itself: frames handled a second by one node with eight links at steady gossip, and how many
// bytes it copies for each payload that it relays.
//
// One link provides, three have subscribed, four announce what we have by then and are announced to. Copies are seen
// as memory asked for: a payload is much larger than all else that a call allocates.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "gossip/protocol.h"
#include "runtime/base/check.h"
#include "runtime/sim/world/tag_keys.h"
#include "tests/bench/measure.h"
#include "tests/unit/gossip/fake_store.h"

namespace {
std::size_t allocated_bytes = 0;
}

void* operator new(std::size_t size) {
  allocated_bytes += size;
  if (void* memory = std::malloc(size)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace rumor;
using namespace rumor::gossip;

constexpr std::uint64_t links = 8, subscribers = 3, announcers = 4;

NodeId node_number(std::uint64_t number) {
  NodeId node;
  node.bytes.fill(static_cast<std::uint8_t>(number + 1));
  return node;
}

struct Node {
  Node() {
    Options options;
    options.self = node_number(100);
    options.stream = stream_of(options.self, 1);
    options.keys = std::make_shared<sim::TagKeys>(options.self);
    protocol = std::make_unique<Protocol>(options, store, Prng(1));
    protocol->start(now, out);
    for (std::uint64_t i = 1; i <= links; ++i) link(i);
  }
  void link(std::uint64_t i) {
    const sim::TagKeys keys(node_number(i));
    protocol->on_link_up({LinkId{i}, node_number(i), false, "peer"}, now, out);
    Hello hello;
    hello.stream = stream_of(node_number(i), 1);
    hello.self = {node_number(i), 1, {}};
    hello.self.signature = keys.sign(record_message({}, hello.self));
    say(i, encode(hello));
    say(i, encode(StreamDef{0, stream_of(node_number(1), 1), node_number(1)}));
    if (i >= 2 && i < 2 + subscribers) say(i, encode(Subscribe{0, true}));
  }
  void say(std::uint64_t i, const Bytes& frame) {
    protocol->on_frame(LinkId{i}, frame, now, out);
    ++frames;
  }

  gossip::test::FakeStore store;
  Outbox out;
  std::unique_ptr<Protocol> protocol;
  TimePoint now{Duration{1s}};
  std::uint64_t frames = 0;
};

// The frames of each update: its DATA from the provider, then the announcements of the other peers that have it.
struct Traffic {
  std::vector<Bytes> data, have;
  Traffic(std::uint64_t updates, std::size_t bytes) {
    gossip::test::FakeStore origin;
    const sim::TagKeys keys(node_number(1));
    origin.sign = [&](UpdateHeader& header) { header.signature = keys.sign(update_message({}, header)); };
    for (std::uint64_t seq = 1; seq <= updates; ++seq) {
      const StoredUpdate update = origin.make(stream_of(node_number(1), 1), node_number(1), seq, bytes);
      for (OutFrame& frame : encode_in_pieces({0, update.header, {}, Coding::canonical}, update.payload))
        data.push_back(std::move(frame).joined());
      have.push_back(encode(Have{{{0, seq}}}));
    }
  }
};

void measure(std::uint64_t updates, std::size_t bytes) {
  const Traffic traffic(updates, bytes);
  double best = 1e9, copied = 0;
  std::uint64_t frames = 0, sent = 0;
  for (int round = 0; round < 5; ++round) {
    Node node;
    node.frames = sent = 0;
    node.out.clear();
    const std::size_t before = allocated_bytes;
    const double seconds = bench::seconds_of([&] {
      for (std::uint64_t k = 0; k < updates; ++k) {
        node.now += 5ms;
        node.say(1, traffic.data[k]);
        for (std::uint64_t i = links - announcers + 1; i <= links; ++i) node.say(i, traffic.have[k]);
        node.protocol->on_time(node.now, node.out);
        sent += node.out.size();
        node.out.clear();
      }
    });
    RUMOR_CHECK(node.protocol->counters().updates_received == updates);
    copied = static_cast<double>(allocated_bytes - before) / static_cast<double>(updates * bytes);
    best = std::min(best, seconds);
    frames = node.frames;
  }
  std::printf("payloads of %6zu bytes: %9.0f frames in a second, %.2f us each; %.1f frames out an update; memory asked "
              "for: %.2f payloads an update relayed to %d links\n",
              bytes, static_cast<double>(frames) / best, 1e6 * best / static_cast<double>(frames),
              static_cast<double>(sent) / static_cast<double>(updates), copied, static_cast<int>(subscribers));
}

}  // namespace

int main() {
  measure(4'000, 200);
  measure(2'000, 5'000);
  measure(1'000, 60'000);
}
