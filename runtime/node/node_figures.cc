// Node::status(): the figures of a node at one moment.
#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/node/node.h"

namespace rumor {

NodeStatus Node::status(TimePoint now) const {
  const gossip::Protocol& protocol = *core_.protocol;
  const Exchange& exchange = *core_.exchange;
  NodeStatus s;
  s.run_name = core_.config.name;
  s.run_id = core_.run.hex();
  s.node_id = core_.options.node.hex();
  static constexpr const char* names[] = {"catching up", "training", "flushing",
                                          "finishing",   "finished", "ended"};
  s.phase = names[static_cast<int>(core_.phase)];
  if (training()) s.waiting_for = exchange.waiting_for();
  if (training() && s.waiting_for.empty()) s.waiting_for = staged_.waiting_for(now);
  if (s.waiting_for.empty()) s.waiting_for = phases_.waiting_for();
  if (s.waiting_for.empty()) s.waiting_for = protocol.waiting_for();
  s.params = form().layout.params();
  s.samples = samples();
  s.samples_planned = core_.samples_wanted();
  const Resolution& resolution = core_.config.resolution;
  if (resolution.is_on()) s.picture_side = resolution.size_at(core_.progress());
  s.stage = staged_.status(now);
  const gossip::ReplicaDigest& digest = replica().digest();
  s.updates = digest.updates;
  s.digest = digest_text(digest);
  s.peers = protocol.peers();
  s.digests_equal =
      std::all_of(s.peers.begin(), s.peers.end(), [](const auto& peer) { return peer.digest_equal; });
  s.live_peers = exchange.live_count() - (core_.options.observe ? 1 : 0);
  s.members = protocol.members();
  s.lost = protocol.lost();
  s.identity_trouble = protocol.identity_trouble();
  s.audit_trouble = audits_.withheld_trouble();
  s.rate = exchange.rate();
  s.target_density = core_.config.density_for(exchange.density_peers(), exchange.batches());
  s.exchange = core_.config.mode;
  if (!core_.config.has_own_models())
    s.contributions = incoming_.contributions().table(replica().have(), replica().samples(), protocol.nodes());
  for (Contribution& one : s.contributions.nodes)
    if (const auto at = audits().find(one.node); at != audits().end()) {
      one.agreed = at->second.agreed;
      one.untold = at->second.cannot_tell;
      one.untold_why = at->second.untold_why;
      one.differ = at->second.differ;
      one.withheld = audits_.withheld_in_a_row(one.node);
    }
  s.training = core_.figures;
  s.training.observes = core_.options.observe;
  s.traffic = protocol.counters();
  const gossip::Reach& reach = protocol.reach();
  if (reach.by) s.reach.by = reach.by->hex(), s.reach.seconds_ago = to_seconds(now - reach.at);
  if (reach.asked_at) s.reach.asked_seconds = to_seconds(now - *reach.asked_at);
  s.log = {log().size(), log().bytes(), log().dropped_unacknowledged(), log().trouble()};
  s.memory = core_.trainer_memory;
  s.memory.weights += replica().weight_bytes();
  s.memory.entries += replica().entry_bytes();
  s.memory.log = log().memory_bytes();
  s.memory.states = kept_states().memory_bytes();
  exchange.fill(s);
  const compress::CompressorStats& compression = outgoing_.compression();
  s.threshold = compression.threshold;
  double residual = 0, leaving = 0;
  for (std::size_t t = 0; t < compression.tensors.size(); ++t) {
    const TensorInfo& info = form().layout.tensors()[t];
    s.tensors.push_back({info.name, info.size, compression.tensors[t].entries, compression.tensors[t].residual_rms,
                         compression.tensors[t].threshold});
    residual += compression.tensors[t].residual_sum;
    leaving += compression.step * compression.tensors[t].entries;
  }
  if (leaving > 0) s.residual_age = residual / leaving;
  return s;
}

}  // namespace rumor
