#include "runtime/audit/step_recorder.h"

#include <utility>

#include "compress/payload/recorded.h"
#include "models/data/data_hash.h"
#include "runtime/base/check.h"
#include "runtime/base/limits.h"

namespace rumor::audit {

TapeStart tape_start(const RunConfig& config, const models::DataSet* repeatable_data, const models::Shard& shard) {
  TapeStart start;
  if (repeatable_data == nullptr) return start;
  start.repeatable = true;
  start.shard = shard.index;
  start.shards = shard.count;
  start.emit = config.emit;
  start.scope = config.scope;
  start.local_steps = config.takes_local_steps();
  start.data = models::training_data_hash(*repeatable_data);
  return start;
}

StepRecorder::StepRecorder(const RunConfig& config, const Trainer& trainer, const models::Shard& shard)
    : segment_(config.segment_updates(trainer.layout().params())), rows_(config.batch_rules()) {
  if (config.records) start_ = tape_start(config, trainer.repeatable_data().get(), shard);
}

void StepRecorder::continues(const std::optional<UpdateKey>& point) {
  if (!repeatable()) return;
  RUMOR_CHECK(!begun_);
  start_->continues = point;
  start_->repeatable = point.has_value();
}

void StepRecorder::began(StepRecord record, const gossip::HaveSet& view, const Trainer& trainer) {
  if (!on() || too_long_ || (begun_ && !start_->repeatable)) return;
  if (!begun_) record.start = start_;
  if (start_->repeatable && begins_segment()) {
    record.start = start_;
    const auto state = states_.keep(updates_ + 1, trainer.carried_state());
    record.segment = SegmentStart{state->root, state->bytes.size(), pieces_};
  }
  under_way_ = Step{std::move(record), view};
}

void StepRecorder::ended(bool held) {
  if (!under_way_) return;
  begun_ = true;
  ++steps_;
  under_way_->record.held = held;
  if (!under_way_->record.flush)
    pieces_ += rows_.pieces(under_way_->record.peers, under_way_->record.batches);
  tape_.add(under_way_->record, under_way_->view);
  under_way_.reset();
  too_long_ = tape_.bytes() > limits::record_bytes_max;
}

Bytes StepRecorder::payload(Bytes update) {
  if (!on()) return update;
  steps_ = 0;
  ++updates_;
  const Bytes tape = tape_.take();
  return compress::with_record(too_long_ ? Bytes() : tape, update);
}

}  // namespace rumor::audit
