#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/node/node_status.h"
#include "runtime/run/run_config.h"

namespace rumor {

using nlohmann::ordered_json;

double NodeStatus::density() const {
  const double positions = static_cast<double>(training.own_updates()) * static_cast<double>(params);
  return positions > 0 ? static_cast<double>(training.own_entries) / positions : 0;
}

double NodeStatus::bits_per_entry() const {
  return training.own_entries > 0 ? 8.0 * static_cast<double>(training.own_payload_bytes) /
                                        static_cast<double>(training.own_entries)
                                  : 0;
}

double NodeStatus::bound_bits_per_entry() const {
  return training.own_entries > 0 ? training.own_bound_bits / static_cast<double>(training.own_entries) : 0;
}

double NodeStatus::staleness_mean() const {
  return training.updates_of_others > 0 ? static_cast<double>(training.staleness_sum) /
                                              static_cast<double>(training.updates_of_others)
                                        : 0;
}

std::uint64_t NodeStatus::dense_bytes() const {
  return 4 * training.own_updates() * params;
}

double NodeStatus::ratio() const {
  return training.own_payload_bytes > 0
             ? static_cast<double>(dense_bytes()) / static_cast<double>(training.own_payload_bytes)
             : 0;
}

double NodeStatus::bytes_per_parameter() const {
  return static_cast<double>(memory.of_parameters()) / static_cast<double>(std::max<std::uint64_t>(params, 1));
}

namespace {

const char* coding_name(gossip::Coding coding) {
  switch (coding) {
    case gossip::Coding::canonical: return "canonical";
    case gossip::Coding::adapt: return "adapt";
    case gossip::Coding::link: return "link";
  }
  return "";
}

ordered_json peers_json(const NodeStatus& s) {
  ordered_json list = ordered_json::array();
  for (const gossip::PeerInfo& peer : s.peers) {
    list.push_back({{"node_id", peer.node.hex()},
                    {"address", peer.address},
                    {"dialled_by_us", peer.dialled_by_us},
                    {"updates", peer.updates},
                    {"digest_equal", peer.digest_equal},
                    {"finished", peer.finished},
                    {"sent_bytes", peer.sent_bytes},
                    {"received_bytes", peer.received_bytes},
                    {"coding", coding_name(peer.coding)},
                    {"age_s", to_seconds(peer.age)}});
    if (peer.round_trip)
      list.back()["round_trip_ms"] = static_cast<double>(peer.round_trip->count()) / 1000;
  }
  return list;
}

ordered_json traffic_json(const NodeStatus& s) {
  const gossip::Counters& t = s.traffic;
  const double updates = static_cast<double>(s.training.own_updates());
  return {{"sent_bytes", t.sent_bytes},
          {"received_bytes", t.received_bytes},
          {"sent_control_bytes", t.sent_control_bytes},
          {"sent_payload_bytes", t.sent_payload_bytes},
          {"sent_canonical_bytes", t.sent_canonical_bytes},
          {"update_bytes_mean", updates > 0 ? static_cast<double>(s.training.own_payload_bytes) / updates : 0},
          {"dense_update_bytes", 4 * s.params},
          {"dense_bytes", s.dense_bytes()},
          {"ratio", s.ratio()},
          {"updates_received", t.updates_received},
          {"updates_duplicate", t.updates_duplicate},
          {"updates_invalid", t.updates_invalid},
          {"updates_lost", t.updates_lost},
          {"snapshots_installed", t.snapshots_installed}};
}

ordered_json memory_json(const NodeStatus& s) {
  const MemoryUse& m = s.memory;
  return {{"bytes_per_parameter", s.bytes_per_parameter()},
          {"weights", m.weights},
          {"view", m.view},
          {"gradient", m.gradient},
          {"residual", m.residual},
          {"optimizer", m.optimizer},
          {"hogwild", m.hogwild},
          {"in_flight", m.in_flight},
          {"entries", m.entries},
          {"activations", m.activations},
          {"log", m.log}};
}

ordered_json staleness_json(const NodeStatus& s) {
  ordered_json peers = ordered_json::array();
  for (const PeerStaleness& peer : s.staleness)
    peers.push_back({{"node_id", peer.node.hex()},
                     {"stream", peer.stream.hex()},
                     {"updates", peer.updates},
                     {"mean", peer.mean},
                     {"last", peer.last},
                     {"max", peer.max}});
  return {{"mean", s.staleness_mean()}, {"max", s.training.staleness_max}, {"rate_factor", s.rate_factor},
          {"peers", peers}};
}

ordered_json compression_json(const NodeStatus& s) {
  ordered_json tensors = ordered_json::array();
  for (const TensorStatus& tensor : s.tensors)
    tensors.push_back(
        {{"name", tensor.name},
         {"params", tensor.params},
         {"entries", tensor.entries},
         {"density",
          tensor.params ? static_cast<double>(tensor.entries) / static_cast<double>(tensor.params) : 0},
         {"threshold", tensor.threshold},
         {"residual_rms", tensor.residual_rms}});
  return {{"density", s.density()},
          {"target_density", s.target_density},
          {"threshold", s.threshold},
          {"residual_age", s.residual_age},
          {"staleness", staleness_json(s)},
          {"entries", s.training.own_entries},
          {"payload_bytes", s.training.own_payload_bytes},
          {"bits_per_entry", s.bits_per_entry()},
          {"bound_bits_per_entry", s.bound_bits_per_entry()},
          {"tensors", tensors}};
}

}  // namespace

std::string status_json(const NodeStatus& s) {
  ordered_json j;
  j["run"] = s.run_name;
  j["run_id"] = s.run_id;
  j["node_id"] = s.node_id;
  j["exchange"] = s.exchange;
  j["guarantee"] = guarantee_of(s.exchange);
  j["phase"] = s.phase;
  j["waiting_for"] = s.waiting_for;
  j["limit"] = {{"kind", s.limit.kind}, {"text", s.limit.text}, {"compute_share", s.compute_share}};
  j["uptime_s"] = s.uptime_seconds;
  j["unix_s"] = s.unix_seconds;
  j["version"] = s.version;
  j["params"] = s.params;
  j["samples"] = s.samples;
  j["samples_planned"] = s.samples_planned;
  j["loss"] = s.training.loss.value_or(s.training.train_loss);
  if (s.training.loss) j["test_loss"] = *s.training.loss;
  j["train_loss"] = s.training.train_loss;
  if (s.training.accuracy) j["accuracy"] = *s.training.accuracy;
  j["steps"] = s.training.steps;
  j["steps_held"] = s.training.steps_held;
  j["seconds_waited"] = s.training.seconds_waited;
  j["pause_ms"] = s.pause_ms;
  j["rate"] = s.rate;
  j["live_peers"] = s.live_peers;
  j["members"] = s.members;
  j["in_flight"] = s.in_flight;
  j["peers"] = peers_json(s);
  j["updates"] = s.updates;
  j["digest"] = s.digest;
  j["digests_equal"] = s.digests_equal;
  j["log"] = {{"updates", s.log_updates},
              {"bytes", s.log_bytes},
              {"dropped", s.log_dropped},
              {"trouble", s.log_trouble}};
  j["memory"] = memory_json(s);
  j["storage_trouble"] = s.storage_trouble;
  j["port_mapping"] = s.port_mapping;
  ordered_json& reach = j["reach"] = ordered_json::object();
  if (s.reached) reach["by"] = s.reached->by, reach["seconds_ago"] = s.reached->seconds;
  if (s.asked_to_be_dialled_seconds) reach["asked_seconds_ago"] = *s.asked_to_be_dialled_seconds;
  j["traffic"] = traffic_json(s);
  j["compression"] = compression_json(s);
  // Reasons in `waiting_for` may come from others, and need not be UTF-8.
  return j.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace rumor
