// Settings of the training methods, from [exchange] of a run file. Some are of peers with models of their own
// (runtime/exchange/neighbourhood.h), others of methods that only the simulator knows (sim/methods/methods.h). Local
// steps hold for broadcast too. Each peer chooses for itself; none is part of the run id. METHODS.md explains them.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rumor {

// Methods in lock-step: sync, admm. local_steps also holds for broadcast.
struct RoundRules {
  // Steps that a peer takes alone in a round, or for an update. 0, "auto" in files: of a peer that broadcasts, as many
  // as the delay wants (runtime/exchange/round_length.h); of others, one.
  std::uint32_t local_steps = 1;
  std::uint32_t steps() const { return local_steps > 0 ? local_steps : 1; }
  double participation = 1;              // share of the peers sampled for a round (sync)
  std::string outer = "none";            // none | nesterov | sparse (sync): sim/methods/outer_step.h
  std::optional<double> outer_rate;      // absent: 0.7 with nesterov, 1 with sparse
  std::optional<double> outer_momentum;  // of nesterov; absent: 0.9
  double penalty = 0.1;                  // rho (admm)
};

// The parameter server: downpour.
struct ServerRules {
  std::uint32_t servers = 1;                      // shards of the model, hosted by as many of the peers
  std::uint32_t push_every = 1, fetch_every = 1;  // steps of a worker
};

// Peers with models of their own: average, codistill. The number of neighbours is even.
struct NeighbourRules {
  std::uint32_t neighbours = 4;
  double consensus_rate = 0;     // 0: from the density (average)
  double drift_bound = 0;  // squared distance to the public copy above which a peer publishes; 0: always (average)
  std::uint32_t teachers = 2;        // of the neighbours, asked in a step, in turn (codistill)
  std::uint32_t refresh_every = 50;  // steps between two tellings (codistill)
  double agreement = 1;              // weight of the teachers' predictions; labels have 1 (codistill)
};

// Rules for the start and the learning rate of a step: runtime/exchange/staleness.h. Each peer chooses for itself.
struct StalenessRules {
  double scale = 0;                   // exchange.staleness_scale: lambda; 0: off
  double brake_from = 10;             // exchange.brake_from: B, updates; 0: off
  std::uint32_t soft_sync = 0;        // exchange.soft_sync: S, updates; 0: off
  std::uint32_t steps_ahead = 0;      // exchange.steps_ahead: s, updates; 0: off
  std::uint32_t staleness_bound = 0;  // exchange.staleness_bound: A, updates; 0: off
};

// Peers that train in turn: runtime/exchange/turns.h.
struct TurnRules {
  std::uint32_t trainers = 0;       // peers that train at once; 0: all
  std::uint32_t turn_updates = 48;  // periods of a turn
};

// exchange.narrow_links: what gives way where links carry less than a peer would send.
inline constexpr const char* narrow_thin = "thin";  // entries of updates
inline constexpr const char* narrow_wait = "wait";  // steps

}  // namespace rumor
