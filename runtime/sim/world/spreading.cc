#include "runtime/sim/world/spreading.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "runtime/base/check.h"
#include "runtime/base/limits.h"
#include "runtime/sim/world/protocol_world.h"
#include "runtime/sim/world/quantile.h"

namespace rumor::sim {

namespace {

constexpr Duration forming = 15s;  // until the first update
constexpr Duration drain = 15s;    // after the last one
constexpr std::uint8_t unseen = 0xff;

// Delays and hops of the updates sealed while it is open.
class Meter final : public WorldObserver {
 public:
  Meter(ProtocolWorld& world, std::size_t nodes) : world_(world), nodes_(nodes), delays_of_(nodes) {
    world.observe(*this);
  }

  void sealed(HostId i, const gossip::StoredUpdate& update) override {
    if (!open) return;
    Update& fresh = updates_[update.header.key];
    fresh.at = fresh.last = world_.now();
    fresh.hops.assign(nodes_, unseen);
    fresh.hops[i] = 0;
    sealed_at.push_back(world_.now());
  }
  void applied(HostId i, const gossip::UpdateHeader& header, HostId from) override {
    arrived_at.push_back(world_.now());
    const auto at = updates_.find(header.key);
    if (at == updates_.end()) return;
    Update& update = at->second;
    RUMOR_CHECK(update.hops[i] == unseen);
    const std::uint8_t before = update.hops[from];
    update.hops[i] = before == unseen ? 1 : static_cast<std::uint8_t>(before + 1);
    update.last = world_.now();
    ++update.count;
    delays_of_[i].push_back(static_cast<float>(to_seconds(world_.now() - update.at)));
    hops_sum_ += update.hops[i];
    hops_max_ = std::max<std::uint64_t>(hops_max_, update.hops[i]);
  }

  void summarize(SpreadingResult& result) {
    std::vector<float> all, last;
    for (std::vector<float>& delays : delays_of_) {
      all.insert(all.end(), delays.begin(), delays.end());
      result.worst_node_median = std::max(result.worst_node_median, quantile(delays, 0.5));
    }
    for (const auto& [key, update] : updates_) {
      last.push_back(static_cast<float>(to_seconds(update.last - update.at)));
      result.missing += nodes_ - 1 - update.count;
    }
    result.updates = updates_.size();
    result.deliveries = all.size();
    result.p50 = quantile(all, 0.5);
    result.p99 = quantile(all, 0.99);
    result.last_p99 = quantile(last, 0.99);
    result.hops_mean = all.empty() ? 0 : static_cast<double>(hops_sum_) / static_cast<double>(all.size());
    result.hops_max = static_cast<double>(hops_max_);
  }

  bool open = false;
  std::vector<TimePoint> sealed_at, arrived_at;

 private:
  struct Update {
    TimePoint at, last;
    std::vector<std::uint8_t> hops;
    std::size_t count = 0;
  };
  ProtocolWorld& world_;
  std::size_t nodes_;
  std::map<UpdateKey, Update> updates_;
  std::vector<std::vector<float>> delays_of_;
  std::uint64_t hops_sum_ = 0, hops_max_ = 0;
};

struct Totals {
  std::uint64_t received = 0, duplicates = 0, sent = 0, control = 0;
  std::vector<std::uint64_t> uplinks;
};

Totals totals(ProtocolWorld& world) {
  Totals sum;
  for (HostId i = 0; i < world.hosts(); ++i) {
    const gossip::Counters& counters = world.host(i).peer->protocol().counters();
    sum.received += counters.updates_received;
    sum.duplicates += counters.updates_duplicate;
    sum.sent += counters.sent_bytes;
    sum.control += counters.sent_control_bytes;
    sum.uplinks.push_back(world.fabric().sent_bytes(i));
  }
  return sum;
}

void compare(const Totals& before, const Totals& after, SpreadingResult& result) {
  const auto received = static_cast<double>(after.received - before.received);
  result.copies = received > 0 ? 1 + static_cast<double>(after.duplicates - before.duplicates) / received : 0;
  result.control_share =
      static_cast<double>(after.control - before.control) / static_cast<double>(after.sent - before.sent);
  double sum = 0, most = 0;
  for (std::size_t i = 0; i < after.uplinks.size(); ++i) {
    const auto bytes = static_cast<double>(after.uplinks[i] - before.uplinks[i]);
    sum += bytes;
    most = std::max(most, bytes);
  }
  result.busiest_uplink = sum > 0 ? most * static_cast<double>(after.uplinks.size()) / sum : 0;
}

void publish_for_ever(ProtocolWorld& world, HostId i, Duration every, TimePoint until) {
  if (world.now() >= until) return;
  world.publish(i);
  world.at(world.now() + every, [&world, i, every, until] { publish_for_ever(world, i, every, until); });
}

void stop_a_third(ProtocolWorld& world, Duration outage) {
  std::vector<ConnectionId> stopped;
  for (ConnectionId c = 0; c < world.fabric().connections(); ++c)
    if (world.fabric().is_open({c, 0}) && world.fabric().is_open({c, 1}) && world.chance().chance(1, 3))
      stopped.push_back(c);
  const auto set = [&world, stopped](bool on) {
    for (const ConnectionId c : stopped)
      for (const int side : {0, 1}) world.fabric().stall({c, side}, on, world.now());
  };
  set(true);
  world.at(world.now() + outage, [set] { set(false); });
}

// The share of the updates made in that time that arrives in it.
double goodput(const Meter& meter, TimePoint from, TimePoint until, double deliveries_per_second) {
  const auto arrived = std::count_if(meter.arrived_at.begin(), meter.arrived_at.end(),
                                     [&](TimePoint at) { return at >= from && at < until; });
  return static_cast<double>(arrived) / (deliveries_per_second * to_seconds(until - from));
}

// The first second that begins five in which 95 % of the updates made arrive.
double recovery(const Meter& meter, TimePoint from, TimePoint until, double deliveries_per_second) {
  const auto seconds = static_cast<std::size_t>(to_seconds(until - from));
  std::vector<double> arrived(seconds + 1);
  for (const TimePoint at : meter.arrived_at)
    if (at >= from && at < until) ++arrived[static_cast<std::size_t>(to_seconds(at - from))];
  for (std::size_t s = 0; s + 5 <= seconds; ++s) {
    double sum = 0;
    for (std::size_t k = s; k < s + 5; ++k) sum += arrived[k];
    if (sum >= 0.95 * 5 * deliveries_per_second) return static_cast<double>(s);
  }
  return to_seconds(until - from);
}

void summarize_links(ProtocolWorld& world, SpreadingResult& result) {
  std::size_t sum = 0, least = SIZE_MAX;
  for (HostId i = 0; i < world.hosts(); ++i) {
    const std::size_t links = world.host(i).peer->protocol().peers().size();
    sum += links;
    least = std::min(least, links);
  }
  result.links_mean = static_cast<double>(sum) / static_cast<double>(world.hosts());
  result.links_least = static_cast<double>(least);
}

WorldOptions options_of_world(const SpreadingOptions& options) {
  WorldOptions world_options;
  world_options.hosts = options.nodes;
  world_options.seed = options.seed;
  world_options.payload_bytes = options.payload_bytes;
  world_options.coding = gossip::CodingRule::canonical;
  world_options.invariants_every = UINT32_MAX;
  FabricOptions& fabric = world_options.fabric;
  fabric = fabric_of(options.network);
  fabric.bytes_per_second = std::min(fabric.bytes_per_second, fabric.down_bytes_per_second);
  fabric.down_bytes_per_second = 0;
  fabric.backlog_high = limits::link_backlog_high;
  fabric.backlog_low = limits::link_backlog_low;
  const auto first_undiallable = static_cast<HostId>(
      static_cast<double>(options.nodes) * (1 - options.undiallable) + 0.5);
  if (options.undiallable > 0)
    world_options.cannot_dial = [first_undiallable](HostId, HostId to) { return to >= first_undiallable; };
  return world_options;
}

}  // namespace

SpreadingResult run_spreading(const SpreadingOptions& options, const std::function<bool(double)>& tick) {
  WorldOptions world_options = options_of_world(options);
  const std::uint64_t bandwidth = world_options.fabric.bytes_per_second;

  SpreadingResult result;
  result.options = options;
  result.interval_seconds = static_cast<double>(options.nodes) * static_cast<double>(options.payload_bytes) /
                            (options.load * static_cast<double>(bandwidth));
  const Duration every = from_seconds(result.interval_seconds),
                 round = from_seconds(result.interval_seconds * options.rounds);
  const TimePoint measured = TimePoint{forming + std::max<Duration>(round, 10s)};
  const TimePoint ends =
      measured + std::max<Duration>(round, options.outage > Duration{0} ? options.outage + 75s : 10s);

  ProtocolWorld world(std::move(world_options));
  Meter meter(world, options.nodes);
  Prng phases = Prng::named(options.seed, "phases");
  for (HostId i = 0; i < options.nodes; ++i) {
    for (HostId seed = 0; seed < std::min<std::size_t>(options.nodes, 3); ++seed)
      world.host(i).seeds.push_back(ProtocolWorld::address_of(seed));
    world.at(TimePoint{Duration(phases.between(0, 2'000'000))}, [&world, i] { world.start(i); });
    world.at(TimePoint{forming} + Duration(phases.between(0, every.count())),
             [&world, i, every, ends] { publish_for_ever(world, i, every, ends); });
  }
  Totals before;
  world.at(measured, [&] {
    before = totals(world);
    result.connections = world.fabric().connections();
    meter.open = true;
    meter.arrived_at.clear();
    if (options.outage > Duration{0}) stop_a_third(world, options.outage);
  });
  world.at(ends, [&] {
    compare(before, totals(world), result);
    result.connections = world.fabric().connections() - result.connections;
    meter.open = false;
  });
  const TimePoint over = ends + drain;
  while (world.now() < over) {
    world.run_until(world.now() + 250ms);
    const double done = to_seconds(world.now().time_since_epoch()) / to_seconds(over.time_since_epoch());
    if (tick && !tick(std::min(done, 1.0))) break;
  }
  meter.summarize(result);
  summarize_links(world, result);
  const double rate =
      static_cast<double>(options.nodes) * static_cast<double>(options.nodes - 1) / result.interval_seconds;
  if (options.outage > Duration{0}) {
    result.outage_goodput = goodput(meter, measured, measured + options.outage, rate);
    result.recovered_seconds = recovery(meter, measured + options.outage, ends, rate);
  }
  result.virtual_seconds = to_seconds(world.now().time_since_epoch());
  result.trace = world.trace();
  result.events = world.events();
  return result;
}

std::string to_json(const SpreadingResult& r, double wall_seconds) {
  nlohmann::ordered_json j;
  j["command"] = "sim";
  j["profile"] = "spreading";
  j["nodes"] = r.options.nodes;
  j["sim_seed"] = r.options.seed;
  j["payload_bytes"] = r.options.payload_bytes;
  j["load"] = r.options.load;
  j["network"] = r.options.network.name;
  j["interval_seconds"] = r.interval_seconds;
  j["virtual_seconds"] = r.virtual_seconds;
  j["wall_seconds"] = wall_seconds;
  j["trace_hash"] = to_hex(BytesView(reinterpret_cast<const std::uint8_t*>(&r.trace), sizeof r.trace));
  j["updates"] = r.updates;
  j["deliveries"] = r.deliveries;
  j["missing"] = r.missing;
  j["copies_per_delivery"] = r.copies;
  j["delivery_seconds"] = {
      {"p50", r.p50}, {"p99", r.p99}, {"last_p99", r.last_p99}, {"worst_node_median", r.worst_node_median}};
  j["hops"] = {{"mean", r.hops_mean}, {"max", r.hops_max}};
  j["busiest_uplink"] = r.busiest_uplink;
  j["control_fraction"] = r.control_share;
  j["links"] = {{"mean", r.links_mean}, {"least", r.links_least}, {"made", r.connections}};
  if (r.options.outage > Duration{0})
    j["outage"] = {{"seconds", to_seconds(r.options.outage)},
                   {"goodput", r.outage_goodput},
                   {"recovered_seconds", r.recovered_seconds}};
  return j.dump(2) + "\n";
}

}  // namespace rumor::sim
