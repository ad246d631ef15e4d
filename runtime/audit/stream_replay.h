// StreamReplay: makes the updates of one stream again, one after another, as their tape says (runtime/AUDIT.md).
//
// It has a replica of its own, which it moves to the view of each step, and a trainer of its own, which carries
// residual and optimizer from step to step. Two updates agree when their bytes do.
//
// Thread: one owner. Memory: that of a training peer, without a log.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "compress/payload/recorded.h"
#include "models/data/dataset.h"
#include "runtime/audit/tape.h"
#include "runtime/replica/replica.h"
#include "runtime/replica/run_form.h"
#include "runtime/replica/update_log.h"
#include "runtime/run/run_config.h"
#include "runtime/training/model_trainer.h"

namespace rumor::audit {

// All that the audits of one run have in common. `log` has the updates that views are made of; `base` is the run
// without them: its weights when the log is complete are the initial ones.
struct AuditedRun {
  RunConfig config;
  RunForm form;
  std::shared_ptr<const models::DataSet> data;
  Hash256 data_hash;  // models::training_data_hash(*data)
  const UpdateLog& log;
  ReplicaState base;
  Parallel* parallel = nullptr;  // threads to compute with; null: the caller's. Must outlive its use
};

enum class Verdict : std::uint8_t { agrees, differs, cannot_tell };

struct Finding {
  Verdict verdict = Verdict::agrees;
  std::string why = {};  // empty when it agrees
};

// The state that a trainer carries from step to step.
struct TrainerState {
  std::vector<float> residual;
  Bytes optimizer;
};

// One step that was made again, for people.
struct ReplayedStep {
  StepRecord record;
  double rate = 0, loss = 0;
  std::uint32_t samples = 0;
  std::vector<std::uint32_t> rows;  // of the training data, in the order in which they were drawn
  compress::SparseUpdate update;
};

class StreamReplay {
 public:
  // Refers to `run`, which must outlive it. `earlier` gives the trainer's state behind an update of another stream, or
  // nothing where that could not be made again.
  using StateBehind = std::function<std::optional<TrainerState>(const UpdateKey&)>;
  StreamReplay(const AuditedRun& run, const NodeId& origin, const StreamId& stream, StateBehind earlier);

  // Makes update number `seq` again. Calls must count from 1, without a gap.
  Finding next(const gossip::StoredUpdate& update);
  // The trainer's state behind the last update. Requires: it agreed.
  TrainerState state() const;
  // The steps of the last update.
  const std::vector<ReplayedStep>& steps() const { return steps_; }
  // Steps whose record names fewer live peers than had sent updates since the step before.
  std::uint64_t fewer_peers() const { return fewer_peers_; }

 private:
  Finding make_again(const gossip::StoredUpdate& update);
  Finding begin(const TapeStart& start);
  Finding show(const TapeReader::Read& step);
  Finding move_to(const gossip::HaveSet& view);
  Finding take(const UpdateKey& key, bool back);
  StepPlan plan_of(const StepRecord& record) const;
  StepResult compute(const TapeReader::Read& step);
  Finding compare(const gossip::StoredUpdate& update, BytesView claimed, StepResult made);

  const AuditedRun& run_;
  NodeId origin_;
  StreamId stream_;
  StateBehind earlier_;
  TapeReader tape_;
  std::optional<Finding> over_;  // why nothing of the stream can be told any more
  std::unique_ptr<ModelTrainer> trainer_;
  std::optional<models::BatchSampler> rows_;  // draws what the trainer draws
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<InFlightView> in_flight_;
  std::set<NodeId> heard_;  // origins of what is new in the view of the step
  std::map<std::uint64_t, compress::SharedUpdate> own_;  // by period: those that may be in flight
  std::vector<ReplayedStep> steps_;
  std::uint64_t fewer_peers_ = 0;
};

}  // namespace rumor::audit
