// NodeCore: what the parts of a node share: Incoming, Outgoing, Phases and the Exchange.
//
// Thread: one owner, as Node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "gossip/protocol.h"
#include "runtime/base/check.h"
#include "runtime/node/exchange.h"
#include "runtime/node/node_options.h"
#include "runtime/node/node_status.h"
#include "runtime/node/turn.h"
#include "runtime/run/run_config.h"
#include "runtime/training/trainer.h"

namespace rumor {

class Audits;
class StagedSteps;

// More samples than any update has: a header that claims more is damaged.
constexpr std::uint32_t update_samples_max = 1u << 24;

enum class Phase : std::uint8_t { catching_up, training, flushing, finishing, done, ended };

struct NodeCore {
  RunConfig config;
  NodeOptions options;
  RunId run;
  std::unique_ptr<Trainer> trainer;
  std::unique_ptr<Exchange> exchange = {};
  std::unique_ptr<gossip::Protocol> protocol = {};
  Audits* audits = nullptr;  // the node's
  StagedSteps* staged = nullptr;  // the same

  Turn* turn = nullptr;                // the handler under way; null between two
  Phase phase = Phase::catching_up;    // changed by Phases
  bool computing = false;              // a step, an evaluation or a slice of an audit is with the driver
  TimePoint computing_since = {};
  std::uint64_t own_updates = 0;       // published in this life: the sequence number of the last
  TrainingFigures figures = {};
  MemoryUse trainer_memory = {};       // as of the last time that the trainer was idle

  void begin_computing(TimePoint now) {
    RUMOR_CHECK(!computing);
    computing = true;
    computing_since = now;
  }
  // The driver has brought back what it computed: the trainer is ours again. Returns how long it took.
  Duration computed(TimePoint now) {
    RUMOR_CHECK(computing);
    computing = false;
    trainer_memory = trainer->memory();
    return now - computing_since;
  }
  std::uint64_t unix_seconds(TimePoint now) const {
    return static_cast<std::uint64_t>(options.unix_start + now.time_since_epoch() / 1s);
  }
  std::uint64_t samples_wanted() const { return options.until_samples.value_or(config.samples); }
  // How far the run is, in [0, 1].
  double progress() const {
    return std::min(1.0, static_cast<double>(exchange->samples()) / static_cast<double>(config.samples));
  }
  // The next own update's: as planned, or less where links are too narrow for that.
  double density() const {
    return config.density_at(exchange->density_peers(), progress(), exchange->batches()) * protocol->density_factor();
  }
};

}  // namespace rumor
