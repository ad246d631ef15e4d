#include "runtime/daemon/status/status_metrics.h"

#include <algorithm>

#include "runtime/base/time.h"
#include "runtime/daemon/status/prometheus_text.h"

namespace rumor::daemon {

namespace {

// A model may have thousands of tensors, and a scraper keeps a row for each label.
constexpr std::size_t tensors_max = 256;

double real(std::uint64_t value) {
  return static_cast<double>(value);
}

// Samples of one name stand together, so each figure goes through all peers.
void neighbours(PrometheusText& out, const std::vector<gossip::PeerInfo>& peers) {
  for (const gossip::PeerInfo& peer : peers)
    if (peer.round_trip)
      out.gauge("rumor_peer_round_trip_seconds", "Of the last ping that each neighbour answered.",
                to_seconds(*peer.round_trip), {{"node", peer.node.hex()}});
  for (const gossip::PeerInfo& peer : peers)
    out.gauge("rumor_peer_updates", "Updates that each neighbour had by its last digest.", real(peer.updates),
              {{"node", peer.node.hex()}});
  for (const gossip::PeerInfo& peer : peers)
    out.counter("rumor_peer_sent_bytes_total", "Frame bytes sent on the link to each neighbour.", real(peer.sent_bytes),
                {{"node", peer.node.hex()}});
  for (const gossip::PeerInfo& peer : peers)
    out.counter("rumor_peer_received_bytes_total", "Frame bytes received on the link to each neighbour.",
                real(peer.received_bytes), {{"node", peer.node.hex()}});
}

void tensors(PrometheusText& out, const std::vector<TensorStatus>& all) {
  const std::size_t count = std::min(all.size(), tensors_max);
  for (std::size_t t = 0; t < count; ++t)
    out.gauge("rumor_tensor_threshold", "Least magnitude sent of each tensor, of the first 256, in weight units.",
              all[t].threshold, {{"tensor", all[t].name}});
  for (std::size_t t = 0; t < count; ++t)
    out.gauge("rumor_tensor_density_ratio", "Entries of the last update over the parameters of each tensor.",
              all[t].params > 0 ? real(all[t].entries) / real(all[t].params) : 0, {{"tensor", all[t].name}});
}

void run_and_limit(PrometheusText& out, const NodeStatus& s) {
  out.gauge("rumor_info", "Always 1; its labels say what runs.", 1,
            {{"version", s.version}, {"run", s.run_name}, {"run_id", s.run_id}, {"node", s.node_id}});
  out.gauge("rumor_uptime_seconds", "Since this peer started.", s.uptime_seconds);
  for (const char* kind : limit_kinds)
    out.gauge("rumor_limit", "1 for what limits training now, 0 for the others.", s.limit.kind == kind ? 1 : 0,
              {{"kind", kind}});
  out.gauge("rumor_compute_ratio", "Share of the last ten seconds spent on steps and evaluations.", s.compute_share);
  out.gauge("rumor_storage_trouble", "1 when the last checkpoint or event could not be written.",
            s.storage_trouble.empty() ? 0 : 1);
  out.gauge("rumor_run_planned_samples", "Samples after which the run is done.", real(s.samples_planned));
  out.gauge("rumor_members", "Peers known, this one included.", real(s.members));
}

}  // namespace

std::string status_metrics(const NodeStatus& s) {
  PrometheusText out;
  run_and_limit(out, s);
  out.gauge("rumor_run_samples", "Training samples of the whole run, all peers together.", real(s.samples));
  out.counter("rumor_steps_total", "Training steps of this peer.", real(s.training.steps));
  out.counter("rumor_steps_held_total", "Of these: without an update, ahead of the network.",
              real(s.training.steps_held));
  out.gauge("rumor_training_pause_seconds", "Longest wait for the next step in the last ten seconds.",
            s.pause_ms / 1e3);
  out.gauge("rumor_train_loss", "Moving average of the loss over own batches, in nats.",
            s.training.train_loss);
  if (s.training.loss) out.gauge("rumor_test_loss", "Loss on the test set, in nats.", *s.training.loss);
  if (s.training.accuracy)
    out.gauge("rumor_test_accuracy_ratio", "Share of the test set classified rightly.", *s.training.accuracy);
  out.gauge("rumor_learning_rate", "Share of the learning rate this peer uses now.", s.rate);
  out.gauge("rumor_live_peers", "Peers that train now, this one included.", real(s.live_peers));
  out.gauge("rumor_links", "Admitted links to neighbours.", real(s.peers.size()));
  out.gauge("rumor_digests_equal", "1 when every neighbour's last digest equals ours.",
            s.digests_equal ? 1 : 0);
  out.gauge("rumor_applied_updates", "Updates in this replica.", real(s.updates));
  out.gauge("rumor_in_flight_updates", "Own updates not yet answered by every live peer.", real(s.in_flight));
  out.counter("rumor_payload_bytes_total", "Payload bytes of own updates.",
              real(s.training.own_payload_bytes));
  out.counter("rumor_entries_total", "Entries of own updates.", real(s.training.own_entries));
  out.gauge("rumor_compression_ratio", "Dense fp32 bytes of own updates over their payload bytes.",
            s.ratio());
  out.gauge("rumor_memory_bytes_per_parameter", "Memory for each parameter, without activations.",
            s.bytes_per_parameter());
  out.gauge("rumor_threshold", "Smallest magnitude sent in the last update, in weight units.", s.threshold);
  out.gauge("rumor_residual_age_updates", "Updates until a change is sent, on the average.", s.residual_age);
  out.gauge("rumor_staleness_updates", "Own updates between the making of another's update and its arrival.",
            s.staleness_mean());
  out.gauge("rumor_staleness_rate_factor", "What the rules against staleness multiply the learning rate by.",
            s.rate_factor);
  for (const PeerStaleness& peer : s.staleness)
    out.gauge("rumor_peer_staleness_updates", "The same for each live peer, of its last sixteen updates or so.",
              peer.mean, {{"node", peer.node.hex()}});
  out.counter("rumor_training_waited_seconds_total", "Time training waited for others, by the rules against staleness.",
              s.training.seconds_waited);
  out.counter("rumor_net_sent_payload_bytes_total", "Payload bytes sent, in the coding of their link.",
              real(s.traffic.sent_payload_bytes));
  out.counter("rumor_net_sent_bytes_total", "Frame bytes sent.", real(s.traffic.sent_bytes));
  out.counter("rumor_net_received_bytes_total", "Frame bytes received.", real(s.traffic.received_bytes));
  out.counter("rumor_dense_bytes_total", "Bytes of the own updates in dense fp32, each sent once.",
              real(s.dense_bytes()));
  neighbours(out, s.peers);
  tensors(out, s.tensors);
  out.counter("rumor_updates_received_total", "Updates received that were new.",
              real(s.traffic.updates_received));
  out.counter("rumor_updates_duplicate_total", "Updates received that were known already.",
              real(s.traffic.updates_duplicate));
  out.counter("rumor_updates_invalid_total", "Updates refused.", real(s.traffic.updates_invalid));
  out.gauge("rumor_lost_updates", "Updates applied here that nobody holds any more; fewer when a peer gives them back.",
            real(s.traffic.updates_lost));
  return out.text();
}

}  // namespace rumor::daemon
