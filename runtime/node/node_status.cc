#include "runtime/node/node_status.h"

#include <algorithm>

#include "runtime/run/run_config.h"

namespace rumor {
namespace {

double quotient(double dividend, double divisor) {
  return divisor > 0 ? dividend / divisor : 0;
}

const char* coding_name(gossip::Coding coding) {
  switch (coding) {
    case gossip::Coding::canonical: return "canonical";
    case gossip::Coding::adapt: return "adapt";
    case gossip::Coding::link: return "link";
  }
  return "";
}

using S = NodeStatus;

constexpr FigureRow<S> run_rows[] = {
    figure<&S::run_name>("run").info("run"),
    figure<&S::run_id>("run_id").info("run_id"),
    figure<&S::node_id>("node_id").info("node"),
    figure<&S::version>("version").info("version"),
    figure<&S::exchange>("exchange").shown("exchange", Form::text),
    figure<&S::phase>("phase").shown("phase", Form::hidden, 10),
    figure<&S::progress>("progress").shown("done", Form::share, 7),
    figure<&S::samples>("samples").shown("samples", Form::count)
        .gauge("rumor_run_samples", "Training samples of the whole run, all peers together.").curve("samples"),
    figure<&S::samples_planned>("samples_planned").shown("planned", Form::count)
        .gauge("rumor_run_planned_samples", "Samples after which the run is done."),
    figure<&S::params>("params").shown("parameters", Form::count),
    figure<&S::uptime_seconds>("uptime_s").shown("up", Form::seconds)
        .gauge("rumor_uptime_seconds", "Time since this peer started."),
    figure<&S::unix_seconds>("unix_s"),
};

constexpr FigureRow<S> pause_rows[] = {
    figure<&S::waiting_for>("waiting_for").shown("waits for", Form::line),
    figure<&S::identity_trouble>("identity_trouble").shown("identity", Form::line)
        .gauge("rumor_identity_trouble", "1 when two processes run with one key, this peer's or another's."),
    figure<&S::audit_trouble>("audit_trouble").shown("audits", Form::line)
        .gauge("rumor_audit_trouble", "1 while a peer leaves its drawn segments without the states that it owes."),
    figure<&S::storage_trouble>("storage_trouble").shown("disk", Form::line)
        .gauge("rumor_storage_trouble", "1 when the last checkpoint or event could not be written."),
    figure<&S::port_mapping>("port_mapping").shown("router", Form::line),
    figure<&S::pause_ms>("pause_ms").shown("longest pause", Form::ms)
        .gauge("rumor_training_pause_seconds", "Longest wait for the next step in the last ten seconds.", 1e-3),
};

constexpr FigureRow<S> rate_rows[] = {
    figure<&S::rate>("rate").shown("learning rate", Form::small)
        .gauge("rumor_learning_rate", "Learning rate that this peer uses now.").curve("", "train/rate"),
    figure<&S::picture_side>("picture_side").shown("pixels a side", Form::count)
        .gauge("rumor_picture_side_pixels", "Pixels a side of the pictures in a step now, with data.resolution."),
};

constexpr FigureRow<S> peers_rows[] = {
    figure<&S::live_peers>("live_peers").shown("live", Form::count, 4)
        .gauge("rumor_live_peers", "Peers that train now, this one included unless it only observes.")
        .curve("live_peers", "swarm/live_peers"),
    figure<S>("links", [](const auto& s) { return s.peers.size(); }).shown("neighbours", Form::count)
        .gauge("rumor_links", "Admitted links to neighbours."),
    figure<&S::members>("members").shown("known", Form::count)
        .gauge("rumor_members", "Peers known, this one included."),
    figure<&S::digests_equal>("digests_equal").shown("equal digests", Form::equal)
        .gauge("rumor_digests_equal", "1 when every neighbour's last digest equals ours."),
};

constexpr FigureRow<S> replica_rows[] = {
    figure<&S::updates>("updates").shown("updates", Form::count)
        .gauge("rumor_applied_updates", "Updates in this replica."),
    figure<&S::in_flight>("in_flight").shown("in flight", Form::count)
        .gauge("rumor_in_flight_updates", "Own updates not yet answered by every live peer."),
    figure<&S::digest>("digest").shown("digest", Form::text),
    figure<S>("guarantee", [](const auto& s) { return guarantee_of(s.exchange); }).shown("weights", Form::line),
};

constexpr FigureRow<S> size_rows[] = {
    figure<&S::update_bytes_mean>("update_bytes_mean").shown("mean update", Form::bytes),
    figure<S>("dense_update_bytes", [](const auto& s) { return 4 * s.params; }).shown("dense update", Form::bytes),
    figure<&S::dense_bytes>("dense_bytes").shown("own updates dense", Form::bytes)
        .counter("rumor_dense_bytes_total", "Bytes of the own updates in dense fp32, each sent once.")
        .curve("dense_bytes"),
    figure<&S::ratio>("ratio").shown("times smaller", Form::count)
        .gauge("rumor_compression_ratio", "Dense fp32 bytes of own updates over their payload bytes.")
        .curve("", "traffic/times_smaller_than_dense"),
};

constexpr FigureRow<S> compression_rows[] = {
    figure<&S::density>("density").shown("density", Form::share),
    figure<&S::target_density>("target_density").shown("target", Form::share),
    figure<&S::density_factor>("density_factor").shown("target multiplied by", Form::decimal)
        .gauge("rumor_density_factor", "Narrow links multiply the density of own updates by this."),
    figure<&S::threshold>("threshold").shown("threshold", Form::small)
        .gauge("rumor_threshold", "Smallest magnitude sent in the last update, in weight units."),
    figure<&S::residual_age>("residual_age").shown("residual age", Form::decimal)
        .gauge("rumor_residual_age_updates", "Mean number of updates until a change is sent."),
    figure<S>("entries", [](const auto& s) { return s.training.own_entries; })
        .counter("rumor_entries_total", "Entries of own updates."),
    figure<S>("at_range_end", [](const auto& s) { return s.training.entries_at_range_end; })
        .counter("rumor_entries_at_range_end_total",
                 "Entries that wait because their weights are near the end of the grid (compress.grid_bits)."),
    figure<S>("payload_bytes", [](const auto& s) { return s.training.own_payload_bytes; })
        .counter("rumor_payload_bytes_total", "Payload bytes of own updates."),
    figure<&S::bits_per_entry>("bits_per_entry").shown("bits per entry", Form::decimal),
    figure<&S::bound_bits_per_entry>("bound_bits_per_entry").shown("bound", Form::decimal),
};

constexpr FigureRow<S> late_rows[] = {
    figure<&S::staleness_mean>("mean").shown("mean", Form::decimal)
        .gauge("rumor_staleness_updates", "Own updates between the making of another's update and its arrival.")
        .curve("", "swarm/staleness"),
    figure<S>("max", [](const auto& s) { return s.training.staleness_max; }).shown("max", Form::count),
    figure<&S::batches>("batches_per_update").shown("mini-batches an update", Form::count)
        .gauge("rumor_batches_per_update",
               "Mini-batches of an own update; with exchange.local_steps = auto they follow the delay."),
    figure<&S::in_flight_weight>("in_flight_weight").shown("in-flight weight", Form::decimal)
        .gauge("rumor_in_flight_weight",
               "How far training expects others to move as this peer does: 0.5, and 0 where data are unlike."),
    figure<&S::agreement>("agreement").shown("agreement", Form::decimal)
        .gauge("rumor_agreement",
               "Equal signs less unlike ones where own and others' updates meet; below 0: they undo each other."),
    figure<&S::rate_factor>("rate_factor").shown("learning rate multiplied by", Form::decimal)
        .gauge("rumor_staleness_rate_factor", "The rules against staleness multiply the learning rate by this."),
};

constexpr FigureRow<S> bytes_rows[] = {
    figure<&S::bytes_per_parameter>("bytes_per_parameter").shown("bytes per parameter", Form::decimal)
        .gauge("rumor_memory_bytes_per_parameter", "Memory for each parameter, without activations."),
};

struct Neighbour {
  const gossip::PeerInfo* link;
  std::uint64_t behind = 0;  // updates, by its last digest
  std::optional<double> staleness;
};

constexpr FigureRow<Neighbour> neighbour_rows[] = {
    figure<Neighbour>("node_id", [](const auto& n) { return n.link->node; }).shown("peer", Form::id, 8),
    figure<Neighbour>("address", [](const auto& n) { return n.link->address; }).shown("address", Form::text, 18),
    figure<Neighbour>("dialled_by_us", [](const auto& n) { return n.link->dialled_by_us; }),
    figure<Neighbour>("digest_equal", [](const auto& n) { return n.link->digest_equal; })
        .shown("same bits", Form::equal, 9),
    figure<Neighbour>("updates", [](const auto& n) { return n.link->updates; })
        .gauge("rumor_peer_updates", "Updates that each neighbour had by its last digest."),
    figure<&Neighbour::behind>("behind").shown("behind", Form::count, 6)
        .explained("Updates that this peer has and the neighbour had not at its last digest."),
    figure<&Neighbour::staleness>("staleness").shown("stale", Form::decimal, 6)
        .explained("Own updates between the making of one of its updates and the arrival."),
    figure<Neighbour>("round_trip_ms", [](const auto& n) {
      return n.link->round_trip ? figure_value(static_cast<double>(n.link->round_trip->count()) / 1000) : FigureValue();
    }).shown("ping", Form::ms, 8)
        .gauge("rumor_peer_round_trip_seconds", "Round trip of the last ping that each neighbour answered.", 1e-3),
    figure<Neighbour>("sent_bytes", [](const auto& n) { return n.link->sent_bytes; }).shown("sent", Form::bytes, 8)
        .counter("rumor_peer_sent_bytes_total", "Frame bytes sent on the link to each neighbour."),
    figure<Neighbour>("received_bytes", [](const auto& n) { return n.link->received_bytes; })
        .shown("received", Form::bytes, 8)
        .counter("rumor_peer_received_bytes_total", "Frame bytes received on the link to each neighbour."),
    figure<Neighbour>("finished", [](const auto& n) { return n.link->finished; }),
    figure<Neighbour>("coding", [](const auto& n) { return coding_name(n.link->coding); }),
    figure<Neighbour>("age_s", [](const auto& n) { return to_seconds(n.link->age); }),
};

std::vector<Neighbour> neighbours_of(const NodeStatus& s) {
  std::vector<Neighbour> list;
  for (const gossip::PeerInfo& peer : s.peers) {
    Neighbour& one = list.emplace_back(Neighbour{&peer, s.updates - std::min(s.updates, peer.updates), {}});
    for (const PeerStaleness& late : s.staleness)
      if (late.node == peer.node) one.staleness = late.mean;
  }
  return list;
}

}  // namespace

double NodeStatus::progress() const {
  return std::min(1.0, quotient(static_cast<double>(samples), static_cast<double>(samples_planned)));
}

double NodeStatus::density() const {
  return quotient(static_cast<double>(training.own_entries),
                  static_cast<double>(training.own_updates()) * static_cast<double>(params));
}

double NodeStatus::bits_per_entry() const {
  return quotient(8.0 * static_cast<double>(training.own_payload_bytes), static_cast<double>(training.own_entries));
}

double NodeStatus::bound_bits_per_entry() const {
  return quotient(training.own_bound_bits, static_cast<double>(training.own_entries));
}

double NodeStatus::staleness_mean() const {
  return quotient(static_cast<double>(training.staleness_sum), static_cast<double>(training.updates_of_others));
}

std::uint64_t NodeStatus::dense_bytes() const {
  return 4 * training.own_updates() * params;
}

double NodeStatus::update_bytes_mean() const {
  return quotient(static_cast<double>(training.own_payload_bytes), static_cast<double>(training.own_updates()));
}

double NodeStatus::ratio() const {
  return quotient(static_cast<double>(dense_bytes()), static_cast<double>(training.own_payload_bytes));
}

double NodeStatus::bytes_per_parameter() const {
  return static_cast<double>(memory.of_parameters()) / static_cast<double>(std::max<std::uint64_t>(params, 1));
}

// The order is that of `rumor status` and the page. Neighbouring groups of one title are shown as one.
FigureSheet status_figures(const NodeStatus& s) {
  FigureSheet sheet;
  sheet.add({.title = "run"}, run_rows, s);
  sheet.add({.object = "stage", .title = "stage"}, stage_rows, s.stage);
  sheet.add({.object = "limit", .title = "time"}, limit_rows, s.limit);
  sheet.add({.title = "time"}, pause_rows, s);
  sheet.add({.title = "learning"}, training_rows, s.training);
  sheet.add({.title = "learning"}, rate_rows, s);
  sheet.add({.title = "peers"}, peers_rows, s);
  sheet.add({.title = "replica"}, replica_rows, s);
  sheet.add({.object = "traffic", .title = "traffic"}, gossip::traffic_rows, s.traffic);
  sheet.add({.object = "traffic", .title = "traffic"}, size_rows, s);
  sheet.add_list({.object = "peers", .title = "Neighbours", .key = "node",
                  .note = "Behind: updates that the neighbour had not at its last digest. Stale: own updates between "
                          "the making of one of its updates and the arrival."},
                 neighbour_rows, neighbours_of(s));
  sheet.add_list({.object = "stage.uppers", .title = "Stage above", .key = "node",
                  .note = "Micro-batches of this peer. Pace: measured time between two answers while there is work."},
                 upper_rows, s.stage.uppers);
  add_contributions(sheet, s.contributions);
  sheet.add({.object = "compression", .title = "codec"}, compression_rows, s);
  sheet.add({.object = "compression.staleness", .title = "staleness"}, late_rows, s);
  sheet.add_list({.object = "compression.staleness.peers", .title = "Staleness of live peers", .key = "node"},
                 staleness_rows, s.staleness);
  sheet.add_list({.object = "compression.tensors", .title = "Sent of each tensor", .key = "tensor",
                  .note = "\u03c4: smallest change that was sent. Residual: learned and not yet sent, root mean "
                          "square. Both as of the last evaluation."},
                 tensor_rows, s.tensors);
  sheet.add({.object = "memory", .title = "memory"}, memory_rows, s.memory);
  sheet.add({.object = "memory", .title = "memory"}, bytes_rows, s);
  sheet.add({.object = "log", .title = "log"}, log_rows, s.log);
  sheet.add({.object = "reach", .title = "reach"}, reach_rows, s.reach);
  sheet.add({.object = "export", .title = "export"}, export_rows, s.exports);
  return sheet;
}

}  // namespace rumor
