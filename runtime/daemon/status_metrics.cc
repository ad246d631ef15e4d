#include "runtime/daemon/status_metrics.h"

#include "runtime/daemon/prometheus_text.h"

namespace rumor::daemon {

std::string status_metrics(const NodeStatus& s) {
  PrometheusText out;
  const auto real = [](std::uint64_t value) { return static_cast<double>(value); };
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
  out.counter("rumor_updates_received_total", "Updates received that were new.",
              real(s.traffic.updates_received));
  out.counter("rumor_updates_duplicate_total", "Updates received that were known already.",
              real(s.traffic.updates_duplicate));
  out.counter("rumor_updates_invalid_total", "Updates refused.", real(s.traffic.updates_invalid));
  out.counter("rumor_updates_lost_total", "Updates that nobody holds any more.",
              real(s.traffic.updates_lost));
  return out.text();
}

}  // namespace rumor::daemon
