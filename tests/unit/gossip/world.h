// World: N protocols in virtual time, joined by links with delays. The smallest driver that keeps events.h's
// contract.
//
// Node i listens at "n<i>". Everything follows from the seed; trace() is equal for equal seeds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "gossip/protocol.h"
#include "runtime/sim/world/tag_keys.h"
#include "tests/unit/gossip/copies/fake_copies.h"
#include "tests/unit/gossip/fake_store.h"

namespace rumor::gossip::test {

inline RunId run_named(std::uint8_t number) {
  RunId run;
  run.bytes[0] = number;
  return run;
}

inline bool has_line(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const auto& line) { return line.find(part) != std::string::npos; });
}

struct WorldNode {
  NodeId id;
  StreamId stream;
  std::shared_ptr<const Keys> keys;
  std::unique_ptr<FakeStore> store;
  std::unique_ptr<FakeCopies> copies;  // where peers average
  std::unique_ptr<Protocol> protocol;
  std::uint64_t seq = 0;
  std::uint32_t life = 0;  // events of earlier lives are dropped
  std::vector<std::string> notes, closes;
  TimePoint wake = never;
  bool up() const { return protocol != nullptr; }
};

class World {
 public:
  explicit World(std::size_t count, std::uint64_t seed = 1) : prng_(seed), nodes(count) {
    Prng names = Prng::named(seed, "names");
    for (WorldNode& node : nodes) {
      for (auto& byte : node.id.bytes) byte = static_cast<std::uint8_t>(names.next());
      node.store = std::make_unique<FakeStore>();
      node.keys = std::make_shared<sim::TagKeys>(node.id);
    }
  }

  // Starts a node (again): a new stream, the store as it is.
  void start(std::size_t i, std::vector<std::string> seeds, RunId run = run_named(1)) {
    WorldNode& node = nodes[i];
    node.stream = stream_of(node.id, prng_.next());
    node.seq = 0;
    ++node.life;
    node.wake = never;  // what was armed belonged to the life before
    // Each node codes what it sends in a way of its own, if the other end can read that.
    const auto coding = static_cast<CodingRule>(i % 4);
    Options options{node.id, node.stream, run, "test", {name(i)}, std::move(seeds), {}, coding,
                    node.keys, rules[i], admits[i], unix_start};
    if (neighbours > 0) {
      node.copies = std::make_unique<FakeCopies>(*node.store);
      options.copies = node.copies.get();
      options.links = {(neighbours + 1) / 2, neighbours, neighbours + (neighbours + 1) / 2, (neighbours + 1) / 2};
    }
    node.store->sign = [keys = node.keys, run](UpdateHeader& header) {
      header.signature = keys->sign(update_message(run, header));
    };
    node.protocol = std::make_unique<Protocol>(options, *node.store, Prng::named(prng_.next(), "node", i));
    handle(i, [&](Outbox& out) { node.protocol->start(now, out); });
  }
  void start_all(std::size_t seeds_each = 1) {
    std::vector<std::string> seeds;
    for (std::size_t i = 0; i < seeds_each; ++i) seeds.push_back(name(i));
    for (std::size_t i = 0; i < nodes.size(); ++i) start(i, seeds);
  }
  void set_rule(std::size_t i, AdmissionRule rule) {
    handle(i, [&](Outbox& out) { nodes[i].protocol->set_rule(std::move(rule), now, out); });
  }
  void ask_to_be_dialled(std::size_t i) {
    handle(i, [&](Outbox& out) { nodes[i].protocol->ask_to_be_dialled(now, out); });
  }
  Result<void> revoke(std::size_t i, const Revocation& revocation) {
    Result<void> done;
    handle(i, [&](Outbox& out) { done = nodes[i].protocol->revoke(revocation, now, out); });
    return done;
  }
  // Dies without a word; connections close.
  void kill(std::size_t i) {
    for (const auto& [id, wire] : std::map(wires_)) {
      if (wire.ends[0].node == i || wire.ends[1].node == i) cut(id, "reset");
    }
    nodes[i].protocol.reset();
    ++nodes[i].life;
  }
  void publish(std::size_t i, std::size_t bytes = 200) {
    WorldNode& node = nodes[i];
    const StoredUpdate update = node.store->make(node.stream, node.id, ++node.seq, bytes);
    made[node.stream] = node.seq;
    handle(i, [&](Outbox& out) { node.protocol->publish(update, now, out); });
  }
  void finish_all() {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].up()) handle(i, [&](Outbox& out) { nodes[i].protocol->set_finished(true, now, out); });
    }
  }
  void at(TimePoint time, std::function<void()> act) { queue_.push({time, ++order_, std::move(act)}); }
  void run_until(TimePoint end) {
    while (!queue_.empty() && queue_.top().time <= end) {
      const Event event = queue_.top();
      queue_.pop();
      now = event.time;
      event.act();
    }
    now = end;
  }
  void run_for(Duration d) { run_until(now + d); }
  // Runs until `done` holds; false when it does not within `d`.
  bool run_while(Duration d, const std::function<bool()>& done) {
    const TimePoint end = now + d;
    while (now < end && !done()) run_for(1ms);
    return done();
  }
  // Every node publishes `rate` updates a second for `d`.
  void publish_all(Duration d, int rate, std::size_t bytes = 200) {
    const TimePoint end = now + d;
    const Duration gap{1'000'000 / rate};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      Duration phase{static_cast<std::int64_t>(prng_.below(static_cast<std::uint64_t>(gap.count())))};
      for (TimePoint t = now + phase; t < end; t += gap) {
        at(t, [this, i, bytes] {
          if (nodes[i].up()) publish(i, bytes);
        });
      }
    }
  }

  // Cuts the links between the two sides and lets no dial through until heal().
  void partition(const std::set<std::size_t>& side) {
    side_ = side;
    for (const auto& [id, wire] : std::map(wires_)) {
      if (side.contains(wire.ends[0].node) != side.contains(wire.ends[1].node)) cut(id, "reset");
    }
  }
  void heal() { side_.clear(); }
  // These two are never linked.
  void keep_apart(std::size_t a, std::size_t b) {
    apart_.insert({std::min(a, b), std::max(a, b)});
    cut_between(a, b);
  }
  void cut_random_link() {
    if (wires_.empty()) return;
    auto at = wires_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(prng_.below(wires_.size())));
    cut(at->first, "reset");
  }
  void cut_between(std::size_t a, std::size_t b) {
    for (const auto& [id, wire] : std::map(wires_)) {
      const std::set<std::size_t> ends{wire.ends[0].node, wire.ends[1].node};
      if (ends == std::set<std::size_t>{a, b}) cut(id, "reset");
    }
  }
  void set_backlog(std::size_t from, std::size_t to, bool full) {
    for (const auto& [id, wire] : wires_) {
      for (int side = 0; side < 2; ++side) {
        if (wire.ends[side].node != from || wire.ends[1 - side].node != to) continue;
        handle(from, [&, link = LinkId{id}](Outbox& out) {
          nodes[from].protocol->on_backlog(link, full, now, out);
        });
      }
    }
  }
  // Sends bytes to a node as if its peer had, on the link between them.
  void inject(std::size_t from, std::size_t to, const Bytes& frame) {
    for (const auto& [id, wire] : std::map(wires_)) {
      for (int side = 0; side < 2; ++side) {
        if (wire.ends[side].node == from && wire.ends[1 - side].node == to) send(id, side, frame);
      }
    }
  }

  bool all_equal() const {
    const WorldNode* first = nullptr;
    for (const WorldNode& node : nodes) {
      if (!node.up()) continue;
      if (first == nullptr) first = &node;
      if (node.store->digest() != first->store->digest()) return false;
    }
    return true;
  }
  bool all_converged() const {
    for (const WorldNode& node : nodes) {
      if (node.up() && !node.protocol->converged()) return false;
    }
    return all_equal();
  }
  bool all_ready() const {
    for (const WorldNode& node : nodes) {
      if (node.up() && !node.protocol->ready_to_train()) return false;
    }
    return true;
  }
  Counters totals() const {
    Counters sum;
    for (const WorldNode& node : nodes) {
      if (!node.up()) continue;
      const Counters& one = node.protocol->counters();
      sum.sent_bytes += one.sent_bytes;
      sum.sent_control_bytes += one.sent_control_bytes;
      sum.updates_received += one.updates_received;
      sum.updates_duplicate += one.updates_duplicate;
      sum.updates_invalid += one.updates_invalid;
      sum.snapshots_installed += one.snapshots_installed;
      sum.updates_lost += one.updates_lost;
    }
    return sum;
  }
  std::size_t link_count() const { return wires_.size(); }
  std::string name(std::size_t i) const { return "n" + std::to_string(i); }
  std::uint64_t trace() const { return trace_; }
  std::uint64_t frames() const { return frames_; }
  // The types of the frames that have left for a node.
  const std::vector<std::uint8_t>& sent_to(std::size_t i) { return sent_to_[i]; }

 private:
  struct End {
    std::size_t node = 0;
    std::uint32_t life = 0;
    bool down = false;
  };
  struct Wire {
    End ends[2];
    Duration delay{};
    TimePoint last[2]{};
  };
  struct Event {
    TimePoint time;
    std::uint64_t order;
    std::function<void()> act;
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  bool allowed(std::size_t a, std::size_t b) const {
    return side_.contains(a) == side_.contains(b) && !apart_.contains({std::min(a, b), std::max(a, b)});
  }

  template <class Call>
  void handle(std::size_t i, Call call) {
    WorldNode& node = nodes[i];
    if (!node.up()) return;
    Outbox out;
    call(out);
    if (check) node.protocol->check_invariants();
    for (Effect& effect : out) carry_out(i, effect);
    arm(i);
  }

  void arm(std::size_t i) {
    WorldNode& node = nodes[i];
    const TimePoint deadline = node.protocol->next_deadline();
    if (deadline == never || deadline >= node.wake) return;
    node.wake = std::max(deadline, now);
    at(node.wake, [this, i, life = node.life, time = node.wake] {
      WorldNode& woken = nodes[i];
      if (woken.life != life || woken.wake != time) return;
      woken.wake = never;
      handle(i, [&](Outbox& out) { woken.protocol->on_time(now, out); });
    });
  }

  void carry_out(std::size_t i, Effect& effect) {
    if (auto* note = std::get_if<Note>(&effect)) {
      nodes[i].notes.push_back(note->text);
    } else if (auto* dial_to = std::get_if<Dial>(&effect)) {
      dial(i, dial_to->address);
    } else if (auto* frame = std::get_if<Send>(&effect)) {
      const auto id = static_cast<std::uint64_t>(frame->link);
      const auto at = wires_.find(id);
      if (at != wires_.end()) send(id, at->second.ends[0].node == i ? 0 : 1, std::move(frame->frame).joined());
    } else if (auto* close = std::get_if<Close>(&effect)) {
      nodes[i].closes.push_back(close->reason);
      cut(static_cast<std::uint64_t>(close->link), "closed", i);
    }
  }

  void dial(std::size_t i, const std::string& address) {
    if (on_dial) on_dial(i, address);
    const Duration delay{static_cast<std::int64_t>(200 + prng_.below(delay_us_max))};
    at(now + delay, [this, i, address, delay, life = nodes[i].life] {
      if (nodes[i].life != life) return;
      const std::size_t to = address[0] == 'n' ? std::stoul(address.substr(1)) : nodes.size();
      if (to >= nodes.size() || !nodes[to].up() || !allowed(i, to) || (cannot_dial && cannot_dial(i, to))) {
        return handle(i, [&](Outbox& out) {
          nodes[i].protocol->on_dial_failed(address, "connection refused", now, out);
        });
      }
      const std::uint64_t id = ++links_made_;
      wires_[id] = Wire{{{i, life}, {to, nodes[to].life}}, delay, {now, now}};
      const LinkUp ours{LinkId{id}, nodes[to].id, true, address};
      const LinkUp theirs{LinkId{id}, nodes[i].id, false, "out" + std::to_string(i)};
      if (i == to) {  // one process, two ends: the near one suffices
        return handle(i, [&](Outbox& out) { nodes[i].protocol->on_link_up(ours, now, out); });
      }
      handle(to, [&](Outbox& out) { nodes[to].protocol->on_link_up(theirs, now, out); });
      handle(i, [&](Outbox& out) { nodes[i].protocol->on_link_up(ours, now, out); });
    });
  }

  void send(std::uint64_t id, int side, Bytes frame) {
    Wire& wire = wires_.at(id);
    const End to = wire.ends[1 - side];
    wire.last[side] = std::max(wire.last[side], now + wire.delay);
    ++frames_;
    sent_to_[to.node].push_back(frame[0]);
    if (drops && drops(wire.ends[side].node, to.node, frame[0])) return;
    at(wire.last[side], [this, id, to, bytes = std::make_shared<Bytes>(std::move(frame))] {
      if (nodes[to.node].life != to.life) return;
      for (const std::uint8_t byte : *bytes) trace_ = (trace_ ^ byte) * 0x100000001b3u;
      trace_ ^= mix64(static_cast<std::uint64_t>(now.time_since_epoch().count()));
      handle(to.node, [&](Outbox& out) { nodes[to.node].protocol->on_frame(LinkId{id}, *bytes, now, out); });
    });
  }

  // Both ends hear of it: `first` (if any) at once, the other when all that was sent has arrived.
  void cut(std::uint64_t id, const std::string& reason, std::size_t first = SIZE_MAX) {
    const auto at_wire = wires_.find(id);
    if (at_wire == wires_.end()) return;
    const Wire wire = at_wire->second;
    wires_.erase(at_wire);
    for (int side = 0; side < 2; ++side) {
      const End end = wire.ends[side];
      if (side == 1 && end.node == wire.ends[0].node) continue;
      const TimePoint when = end.node == first ? now : std::max(now, wire.last[1 - side]);
      at(when, [this, id, end, reason] {
        if (nodes[end.node].life != end.life) return;
        handle(end.node,
               [&](Outbox& out) { nodes[end.node].protocol->on_link_down(LinkId{id}, reason, now, out); });
      });
    }
  }

  Prng prng_;
  std::priority_queue<Event> queue_;
  std::uint64_t order_ = 0, links_made_ = 0, trace_ = 0, frames_ = 0;
  std::map<std::uint64_t, Wire> wires_;
  std::set<std::size_t> side_;
  std::set<std::pair<std::size_t, std::size_t>> apart_;
  std::map<std::size_t, std::vector<std::uint8_t>> sent_to_;

 public:
  TimePoint now{};
  std::uint64_t delay_us_max = 20'000;  // of a link, one way
  bool check = true;
  std::size_t neighbours = 0;  // of each node that starts, where peers average; 0: every update goes to every peer
  std::function<void(std::size_t, const std::string&)> on_dial;
  std::function<bool(std::size_t, std::size_t)> cannot_dial;  // from, to
  // Frames that never arrive: from, to, type.
  std::function<bool(std::size_t, std::size_t, std::uint8_t)> drops;
  std::map<std::size_t, AdmissionRule> rules;  // of nodes that start
  std::map<std::size_t, Bytes> admits;
  std::int64_t unix_start = 0;
  std::map<StreamId, std::uint64_t> made;  // updates published so far, by stream
  std::vector<WorldNode> nodes;
};

}  // namespace rumor::gossip::test
