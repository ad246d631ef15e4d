// Node::status(): the figures of a node at one moment.
#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/node/node.h"

namespace rumor {

NodeStatus Node::status(TimePoint now) const {
  NodeStatus s;
  s.run_name = config_.name;
  s.run_id = run_.hex();
  s.node_id = options_.node.hex();
  static constexpr const char* names[] = {"catching up", "training", "finishing", "finished", "ended"};
  s.phase = names[static_cast<int>(phase_)];
  s.waiting_for = waits_since_ && training() ? waits_for() : protocol_->waiting_for();
  s.params = trainer_->layout().params();
  s.samples = samples();
  s.samples_planned = samples_wanted();
  const gossip::ReplicaDigest& digest = replica_.digest();
  s.updates = digest.updates;
  ByteWriter whole;
  whole.raw(digest.have_hash.view().first(8));
  whole.u64(digest.fingerprint);
  s.digest = to_hex(whole.bytes());
  s.peers = protocol_->peers();
  s.digests_equal =
      std::all_of(s.peers.begin(), s.peers.end(), [](const auto& peer) { return peer.digest_equal; });
  s.live_peers = live_count();
  s.members = protocol_->members();
  s.rate_factor = staleness_.rate_factor();
  s.rate = rate_now();
  s.target_density = config_.density_for(neighbourhood_ ? 1 : live_count());
  s.exchange = config_.mode;
  s.in_flight = in_flight_.in_flight();
  s.training = figures_;
  s.staleness = staleness_.peers();
  s.traffic = protocol_->counters();
  const gossip::Reach& reach = protocol_->reach();
  if (reach.by) s.reached = NodeStatus::Reached{reach.by->hex(), to_seconds(now - reach.at)};
  if (reach.asked_at) s.asked_to_be_dialled_seconds = to_seconds(now - *reach.asked_at);
  s.log_updates = log_.size();
  s.log_bytes = log_.bytes();
  s.log_dropped = log_.dropped_unacknowledged();
  s.log_trouble = log_.trouble();
  s.memory = trainer_memory_;
  s.memory.weights += replica_.weight_bytes();
  s.memory.weights += neighbourhood_ ? neighbourhood_->memory_bytes() : 0;
  s.memory.in_flight = in_flight_.memory_bytes();
  s.memory.entries += replica_.entry_bytes();
  s.memory.log = log_.memory_bytes();
  s.threshold = compression_.threshold;
  double waiting = 0, leaving = 0;
  for (std::size_t t = 0; t < compression_.tensors.size(); ++t) {
    const TensorInfo& info = trainer_->layout().tensors()[t];
    s.tensors.push_back(
        {info.name, info.size, compression_.tensors[t].entries, compression_.tensors[t].residual_rms,
         compression_.tensors[t].threshold});
    waiting += compression_.tensors[t].residual_sum;
    leaving += compression_.step * compression_.tensors[t].entries;
  }
  if (leaving > 0) s.residual_age = waiting / leaving;
  return s;
}

}  // namespace rumor
