// StreamReplay: makes the updates of one stream again, one after another, as their tape says (runtime/AUDIT.md): from
// its first update on, or from a segment on.
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
#include <span>
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

  std::uint32_t segment() const { return config.segment_updates(form.layout.params()); }
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

  // The same from a segment on, whose first update is `first`. `state`: the trainer's behind the update before; empty
  // where that is a new trainer's, at the beginning of a stream that continues no other.
  StreamReplay(const AuditedRun& run, const NodeId& origin, const StreamId& stream, std::uint64_t first, Bytes state);

  // Makes this update again. The first call wants the first update, and all together no gap.
  Finding next(const gossip::StoredUpdate& update);
  // Compares the trainer's state with the one that a segment begins with, whose first update is next. Requires: the
  // last update agreed.
  Finding compare_state(const gossip::StoredUpdate& next);
  // The trainer's state behind the last update. Requires: it agreed.
  TrainerState state() const;
  // The steps of the last update.
  const std::vector<ReplayedStep>& steps() const { return steps_; }
  // Steps whose record names fewer live peers than had sent updates since the step before.
  std::uint64_t fewer_peers() const { return fewer_peers_; }

 private:
  Finding make_again(const gossip::StoredUpdate& update);
  Finding make_steps(std::span<const TapeReader::Read> tape, StepResult& made);
  Finding begin(const TapeReader::Read& first);
  Finding make_trainer(const TapeStart& start);
  Finding resume(const TapeReader::Read& first);
  Finding find_own(const std::vector<InFlightView::Waiting>& in_flight);
  Finding compare_root(const SegmentStart& segment);
  Finding check(const gossip::StoredUpdate& update, std::span<const TapeReader::Read> tape) const;
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
  std::uint64_t first_ = 1;         // the update that is made again first
  std::optional<Bytes> from_ = {};  // the state to begin with, until it is taken over; absent: the stream's first
  std::uint64_t pieces_ = 0;        // drawn by the trainer
  bool local_steps_ = false;
  bool moved_ = false;              // the replica has shown a view of the stream
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

// The finding about an update whose record says that nobody can make its peer's steps again.
Finding not_repeatable(const RunConfig& config);

}  // namespace rumor::audit
