// The effects of a node: its requests to the driver. Inputs are the handlers of runtime/node/node.h.
//
// Effects come out of one outbox, in order, and are carried out in order. Network effects are gossip's own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "gossip/contract/events.h"
#include "gossip/contract/update_store.h"
#include "gossip/pipeline/work.h"
#include "runtime/audit/segment_audit.h"
#include "runtime/training/trainer.h"

namespace rumor {

// Run node.trainer().step(plan) on the compute thread; bring its result to on_step_done().
struct StartStep {
  StepPlan plan;
  std::optional<gossip::MakeStep> collected = {};  // of a peer that serves a stage: its gradient
};

// Run node.trainer().evaluate(weights, rows_max) on the compute thread; bring the result to on_evaluated().
// Never outstanding together with a step. The weights are the trainer's view and valid until then; empty when the view
// is not in this machine's memory.
struct StartEvaluation {
  std::span<const float> weights;
  std::uint32_t rows_max = 0;
};

// Run audit->work() on the compute thread, then call on_audited(). Never outstanding together with the two above.
struct StartAudit {
  audit::SegmentAudit* audit = nullptr;  // the node's, until then
};

// Write these bytes as the newest checkpoint, atomically. Nothing comes back; a driver that fails tells its user.
struct SaveCheckpoint {
  Bytes bytes;
  Bytes contributions = {};  // beside it (runtime/CHECKPOINT.md); empty: none
};

// An update of another peer was applied, for measuring delivery; only when NodeOptions.report_applied.
struct Applied {
  gossip::UpdateHeader header;
};

// An own update was published; only when NodeOptions.report_applied.
struct Published {
  gossip::StoredUpdate update;
};

// gossip::Work, of a peer that serves a stage: run StageWorker::make(work, node.trainer().view()) on the compute
// thread; bring its result to on_made(). Never outstanding together with a step, an evaluation or an audit.

// The node has nothing more to do: flush the network and end with this exit status.
struct Finished {
  int status = 0;
};

using NodeEffect = std::variant<gossip::Send, gossip::Dial, gossip::Close, gossip::Note, gossip::Work, StartStep,
                                StartEvaluation, StartAudit, SaveCheckpoint, Applied, Published, Finished>;
using NodeOutbox = std::vector<NodeEffect>;

}  // namespace rumor
