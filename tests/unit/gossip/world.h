// World: N protocols with FakeStores on the hosts of a sim::ProtocolWorld, and short names for what tests do to them.
//
// Node i listens at "n<i>". Links have delays and bandwidth without limit. Everything follows from the seed; trace() is
// equal for equal seeds. The world is made when the first node starts: a test sets its options before that.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "gossip/protocol.h"
#include "runtime/sim/world/protocol_world.h"
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
  std::shared_ptr<FakeStore> store;    // outlives the process, as a disk does
  std::unique_ptr<FakeCopies> copies;  // where peers average
  Protocol* protocol = nullptr;        // null while down
  std::uint64_t seq = 0;
  std::vector<std::string> notes, closes;
  bool up() const { return protocol != nullptr; }
};

class World : private sim::WorldObserver {
 public:
  explicit World(std::size_t count, std::uint64_t seed = 1) : seed_(seed), prng_(seed), nodes(count) {
    Prng names = Prng::named(seed, "names");
    for (WorldNode& node : nodes) {
      for (auto& byte : node.id.bytes) byte = static_cast<std::uint8_t>(names.next());
      node.store = std::make_shared<FakeStore>();
      node.keys = std::make_shared<sim::TagKeys>(node.id);
    }
  }

  // Starts a node (again): a new stream, the store as it is.
  void start(std::size_t i, std::vector<std::string> seeds, RunId run = run_named(1)) {
    world().host(host(i)).seeds = std::move(seeds);
    nodes[i].seq = 0;
    run_ = run;
    world().start(host(i));
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
  void with(std::size_t i, const std::function<void(Protocol&, TimePoint, Outbox&)>& act) {
    handle(i, [&](Outbox& out) { act(*nodes[i].protocol, now, out); });
  }
  // Dies without a word; connections close.
  void kill(std::size_t i) {
    nodes[i].protocol = nullptr;
    world().kill(host(i), false);
  }
  void publish(std::size_t i, std::size_t bytes = 200) {
    WorldNode& node = nodes[i];
    const StoredUpdate update = node.store->make(node.stream, node.id, ++node.seq, bytes);
    made[node.stream] = node.seq;
    handle(i, [&](Outbox& out) { node.protocol->publish(update, now, out); });
  }
  void share_buffers(std::size_t i, Bytes values, std::uint64_t progress = 10) {
    handle(i, [&](Outbox& out) { nodes[i].protocol->share_buffers(std::move(values), progress, now, out); });
  }
  void finish_all() {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].up()) handle(i, [&](Outbox& out) { nodes[i].protocol->set_finished(true, now, out); });
    }
  }
  void at(TimePoint time, std::function<void()> act) {
    world().at(time, [this, act = std::move(act)] {
      now = world().now();
      act();
    });
  }
  void run_until(TimePoint end) {
    world().run_until(end);
    now = world().now();
    if (world().violation()) throw std::logic_error(world().violation()->text);
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
    for (const sim::ConnectionId c : links())
      if (side.contains(end_of(c, 0)) != side.contains(end_of(c, 1))) cut(c);
  }
  void heal() { side_.clear(); }
  // These two are never linked.
  void keep_apart(std::size_t a, std::size_t b) {
    apart_.insert({std::min(a, b), std::max(a, b)});
    cut_between(a, b);
  }
  void cut_random_link() {
    const std::vector<sim::ConnectionId> all = links();
    if (!all.empty()) cut(all[prng_.below(all.size())]);
  }
  void cut_between(std::size_t a, std::size_t b) {
    for (const sim::End& end : ends_between(a, b)) cut(end.connection);
  }
  void set_backlog(std::size_t from, std::size_t to, bool full) {
    for (const sim::End& end : ends_between(from, to))
      handle(from, [&](Outbox& out) {
        nodes[from].protocol->on_backlog(sim::ProtocolWorld::link_of(end), full, now, out);
      });
  }
  // Sends bytes to a node as if its peer had, on the link between them.
  void inject(std::size_t from, std::size_t to, const Bytes& frame) {
    for (const sim::End& end : ends_between(from, to)) world().fabric().send(end, frame, true, now);
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
  std::size_t link_count() { return links().size(); }
  std::string name(std::size_t i) const { return "n" + std::to_string(i); }
  std::uint64_t trace() { return world().trace(); }
  std::uint64_t frames() const { return frames_; }
  // The types of the frames that have left for a node.
  const std::vector<std::uint8_t>& sent_to(std::size_t i) { return sent_to_[i]; }

 private:
  static sim::HostId host(std::size_t i) { return static_cast<sim::HostId>(i); }
  std::size_t end_of(sim::ConnectionId connection, int side) { return world().fabric().host({connection, side}); }

  sim::ProtocolWorld& world() {
    if (!world_) {
      world_ = std::make_unique<sim::ProtocolWorld>(options());
      world_->observe(*this);
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        world_->host(host(i)).id = nodes[i].id;
        world_->host(host(i)).address = name(i);
      }
    }
    return *world_;
  }
  sim::WorldOptions options() {
    sim::WorldOptions options;
    options.hosts = nodes.size();
    options.seed = seed_;
    options.fabric.latency_min = Duration{200};
    options.fabric.latency_max = options.fabric.latency_min + Duration(static_cast<std::int64_t>(delay_us_max) - 1);
    options.fabric.jitter = Duration{0};
    options.fabric.bytes_per_second = std::uint64_t{1} << 40;
    options.invariants_every = check ? 1 : UINT32_MAX;
    options.clocks_begin_at_start = false;
    options.make_peer = [this](const sim::PeerStart& start) { return make_peer(start); };
    options.refuses = [this](std::size_t from, std::size_t to) {
      return side_.contains(from) != side_.contains(to) || apart_.contains({std::min(from, to), std::max(from, to)}) ||
             (cannot_dial && cannot_dial(from, to));
    };
    options.loses = [this](std::size_t from, std::size_t to, const OutFrame& frame) {
      return drops && drops(from, to, frame.head[0]);
    };
    return options;
  }
  sim::StartedPeer make_peer(const sim::PeerStart& start) {
    const std::size_t i = start.host;
    WorldNode& node = nodes[i];
    node.stream = start.stream;
    // Each node codes what it sends in a way of its own, if the other end can read that.
    const auto coding = static_cast<CodingRule>(i % 4);
    Options options{node.id, node.stream, run_, "test", {name(i)}, start.seeds, {}, coding,
                    node.keys, rules[i], admits[i], unix_start};
    options.began = began;
    if (const auto auditor = auditors.find(i); auditor != auditors.end()) options.audits = auditor->second;
    if (const auto place = stages.find(i); place != stages.end()) {
      options.stage = place->second.first;
      options.stage_links = place->second.second;
      options.stage_link_counts = stage_links;
    }
    if (const auto own = link_counts.find(i); own != link_counts.end()) options.links = own->second;
    if (neighbours > 0) {
      node.copies = std::make_unique<FakeCopies>(*node.store);
      options.copies = node.copies.get();
      options.links = {(neighbours + 1) / 2, neighbours, neighbours + (neighbours + 1) / 2, (neighbours + 1) / 2};
    }
    node.store->sign = [keys = node.keys, run = run_](UpdateHeader& header) {
      header.signature = keys->sign(update_message(run, header));
    };
    auto peer = std::make_unique<sim::ProtocolPeer>(options, node.store, Prng(start.chance_seed));
    node.protocol = &peer->protocol();
    return {std::move(peer)};
  }

  template <class Call>
  void handle(std::size_t i, Call call) {
    if (nodes[i].up()) world().turn(host(i), host(i), call);
  }
  void asked(sim::HostId i, const Effect& effect) override {
    now = world().now();
    if (const auto* note = std::get_if<Note>(&effect)) {
      nodes[i].notes.push_back(note->text);
    } else if (const auto* dial = std::get_if<Dial>(&effect)) {
      if (on_dial) on_dial(i, dial->address);
    } else if (const auto* frame = std::get_if<Send>(&effect)) {
      const sim::End end = sim::ProtocolWorld::end_of(frame->link);
      if (!world().fabric().is_open(end)) return;
      ++frames_;
      sent_to_[end_of(end.connection, 1 - end.side)].push_back(frame->frame.head[0]);
    } else if (const auto* close = std::get_if<Close>(&effect)) {
      nodes[i].closes.push_back(close->reason);
    }
  }

  // Connections that are open at both ends.
  std::vector<sim::ConnectionId> links() {
    std::vector<sim::ConnectionId> open;
    const sim::Fabric& fabric = world().fabric();
    for (sim::ConnectionId c = 0; c < fabric.connections(); ++c)
      if (fabric.is_open({c, 0}) && fabric.is_open({c, 1})) open.push_back(c);
    return open;
  }
  // The end at `from` of each link between the two.
  std::vector<sim::End> ends_between(std::size_t from, std::size_t to) {
    std::vector<sim::End> ends;
    for (const sim::ConnectionId c : links())
      for (const int side : {0, 1})
        if (end_of(c, side) == from && end_of(c, 1 - side) == to) ends.push_back({c, side});
    return ends;
  }
  void cut(sim::ConnectionId connection) { world().cut(connection, "reset"); }

  std::uint64_t seed_;
  Prng prng_;
  RunId run_;  // of the node that starts
  std::uint64_t frames_ = 0;
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
  std::map<std::size_t, AuditPort*> auditors;
  std::map<std::size_t, std::pair<Stage, StageLinks*>> stages;  // of nodes that start, where a run is a stage
  StageLinkCounts stage_links;
  std::map<std::size_t, LinkCounts> link_counts;  // of some nodes; others have the usual ones
  std::int64_t unix_start = 0;
  std::uint64_t began = 0;  // of nodes that start
  std::map<StreamId, std::uint64_t> made;  // updates published so far, by stream
  std::vector<WorldNode> nodes;

 private:
  std::unique_ptr<sim::ProtocolWorld> world_;  // from the first start on; its peers go before their stores
};

}  // namespace rumor::gossip::test
