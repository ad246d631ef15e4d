#include "runtime/audit/stream_replay.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "gossip/contract/state_pieces.h"
#include "runtime/base/check.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"

namespace rumor::audit {

namespace {

Finding differs(std::string why) { return {Verdict::differs, std::move(why)}; }
Finding cannot_tell(std::string why) { return {Verdict::cannot_tell, std::move(why)}; }

// The peer's choices that the tape names, in place of the auditor's own.
RunConfig config_of(RunConfig config, const TapeStart& start) {
  config.emit = start.emit;
  config.scope = start.scope;
  config.round_rules.local_steps = start.local_steps ? 0 : 1;
  config.hogwild = 0;
  config.bytes_per_update = config.bytes_per_second = 0;
  return config;
}

// How far the claimed entries are those of the step, for people.
std::string compared(const compress::SparseUpdate& claimed, const compress::SparseUpdate& made) {
  std::set<std::pair<std::uint32_t, std::uint8_t>> entries;
  for (std::size_t e = 0; e < made.index.size(); ++e) entries.emplace(made.index[e], made.negative[e]);
  std::size_t alike = 0;
  for (std::size_t e = 0; e < claimed.index.size(); ++e)
    alike += entries.contains({claimed.index[e], claimed.negative[e]}) ? 1 : 0;
  std::string text = str("it has ", claimed.index.size(), " entries, and its step makes ", made.index.size(), "; ",
                         alike, " have one place and sign");
  if (claimed.step != made.step && claimed.step > 0 && made.step > 0)
    text += str(", and each moves ", fixed(static_cast<double>(claimed.step) / made.step, 6), " times as far");
  return text;
}

}  // namespace

StreamReplay::StreamReplay(const AuditedRun& run, const NodeId& origin, const StreamId& stream, StateBehind earlier)
    : run_(run), origin_(origin), stream_(stream), earlier_(std::move(earlier)), tape_(run.segment()) {}

StreamReplay::StreamReplay(const AuditedRun& run, const NodeId& origin, const StreamId& stream, std::uint64_t first,
                           Bytes state)
    : run_(run),
      origin_(origin),
      stream_(stream),
      earlier_([](const UpdateKey&) { return std::nullopt; }),
      first_(first),
      tape_(run.segment(), first) {
  RUMOR_CHECK(first == 1 || !state.empty());
  if (!state.empty()) from_ = std::move(state);
}

Finding StreamReplay::next(const gossip::StoredUpdate& update) {
  if (over_) return *over_;
  Finding found = make_again(update);
  if (found.verdict == Verdict::differs)
    over_ = cannot_tell(str("it follows update ", update.header.key.seq, ", which differs"));
  if (found.verdict == Verdict::cannot_tell) over_ = found;
  return found;
}

Finding StreamReplay::make_again(const gossip::StoredUpdate& update) {
  const auto parts = compress::split_record(*update.payload);
  if (!parts) return cannot_tell("it has no record");
  auto tape = tape_.read(parts->record);
  if (!tape) return differs(tape.error().text);
  if (tape->empty()) return cannot_tell("its record is empty");
  steps_.clear();
  const std::optional<SegmentStart>& segment = tape->front().record.segment;
  if (!trainer_)
    if (Finding begun = begin(tape->front()); begun.verdict != Verdict::agrees) return begun;
  if (segment)
    if (Finding root = compare_root(*segment); root.verdict != Verdict::agrees) return root;
  if (Finding possible = check(update, *tape); possible.verdict != Verdict::agrees) return possible;
  StepResult made;
  if (Finding stepped = make_steps(*tape, made); stepped.verdict != Verdict::agrees) return stepped;
  if (update.header.period != made.period) return differs("its period is not that of its step");
  return compare(update, parts->update, std::move(made));
}

Finding StreamReplay::compare_state(const gossip::StoredUpdate& next) {
  const auto parts = compress::split_record(*next.payload);
  if (!parts) return cannot_tell("it has no record");
  const auto tape = tape_.read(parts->record);
  if (!tape) return differs(tape.error().text);
  if (tape->empty() || !tape->front().record.segment) return cannot_tell("its record is empty");
  return compare_root(*tape->front().record.segment);
}

// Before anything is computed: what a record asks for must be what the header says.
Finding StreamReplay::check(const gossip::StoredUpdate& update, std::span<const TapeReader::Read> tape) const {
  std::uint64_t samples = 0;
  for (const TapeReader::Read& step : tape) {
    if (step.record.held != (&step != &tape.back())) return differs("its record does not end with its own step");
    if (step.record.flush) continue;
    if (step.record.batches != 1 && !local_steps_) return differs("its step has more mini-batches than its peer takes");
    samples += step.record.batches * trainer_->built().rows.rows(step.record.peers);
  }
  if (update.header.samples != samples)
    return differs(str("it says that it is of ", update.header.samples, " samples, and its steps have ", samples));
  return {};
}

Finding StreamReplay::make_steps(std::span<const TapeReader::Read> tape, StepResult& made) {
  for (const TapeReader::Read& step : tape) {
    if (Finding shown = show(step); shown.verdict != Verdict::agrees) return shown;
    made = compute(step);
    if (!made.failure.empty()) return differs("its step cannot be made: " + made.failure);
  }
  return {};
}

Finding not_repeatable(const RunConfig& config) {
  if (!config.takes_portable_steps_only()) return cannot_tell("its peer's steps cannot be made again (not auditable)");
  return differs("it says that nobody can make its peer's steps again, and the run takes no such steps "
                 "(audit.arithmetic)");
}

Finding StreamReplay::begin(const TapeReader::Read& first) {
  const TapeStart& start = *first.record.start;
  if (!start.repeatable) return not_repeatable(run_.config);
  if (start.data != run_.data_hash) return cannot_tell("its peer trained on other data than these");
  if (Finding made = make_trainer(start); made.verdict != Verdict::agrees) return made;
  replica_ = std::make_unique<Replica>(run_.form.run, run_.form.layout, run_.base.weights);
  RUMOR_CHECK(replica_->restore(run_.base).ok());
  if (from_) return resume(first);
  if (!start.continues) return {};
  const auto state = earlier_(*start.continues);
  if (!state)
    return cannot_tell(str("it goes on from update ", start.continues->seq, " of an earlier stream, which could not ",
                           "be made again"));
  if (!trainer_->restore(state->residual, state->optimizer)) return differs("it goes on from another model's state");
  return {};
}

Finding StreamReplay::make_trainer(const TapeStart& start) {
  const RunConfig config = config_of(run_.config, start);
  const std::uint64_t seed = sampling_seed(config, origin_);
  auto trainer = ModelTrainer::create(config, run_.data, {.index = start.shard, .count = start.shards}, seed);
  if (!trainer) return differs("it names a part of the data that there is not: " + trainer.error().text);
  trainer_ = std::move(trainer).value();
  trainer_->set_parallel(run_.parallel);
  local_steps_ = start.local_steps;
  const BuiltInModel& built = trainer_->built();
  rows_.emplace(run_.data, models::Shard{start.shard, start.shards, config.seed, config.data.skew},
                built.rows.piece(), seed, built.model->state_floats());
  return {};
}

Finding StreamReplay::resume(const TapeReader::Read& first) {
  const SegmentStart& segment = *first.record.segment;
  const Bytes state = *std::exchange(from_, std::nullopt);
  if (gossip::keep_state(state)->root != segment.root)
    return cannot_tell("the state to begin with is not the one that its record names");
  if (Finding moved = move_to(first.view); moved.verdict != Verdict::agrees) return moved;
  // Drawing them again costs time, so not more than anybody can have drawn.
  if (segment.pieces > replica_->samples() / trainer_->built().rows.piece())
    return cannot_tell("its record names more rows than its view has samples");
  if (auto resumed = trainer_->resume(state, segment.pieces); !resumed) return differs(resumed.error().text);
  for (pieces_ = 0; pieces_ < segment.pieces; ++pieces_) rows_->next_rows();
  return find_own(first.record.in_flight);
}

// The own updates before the segment that are in flight at its start, newest first.
Finding StreamReplay::find_own(const std::vector<InFlightView::Waiting>& in_flight) {
  std::uint64_t seq = first_;
  for (auto waiting = in_flight.rbegin(); waiting != in_flight.rend(); ++waiting) {
    std::optional<gossip::StoredUpdate> update;
    do {
      if (--seq == 0 || first_ - seq > limits::in_flight_max) return {};  // show() says that there is none
      update = run_.log.find({stream_, seq});
      if (!update) return cannot_tell(str("update ", seq, " was in flight, and the log does not have it"));
    } while (update->header.period > waiting->period);
    if (update->header.period != waiting->period) return {};
    auto change = compress::decode(run_.form.layout, compress::update_part(*update->payload));
    if (!change) return cannot_tell("the log is damaged: " + change.error().text);
    own_.emplace(waiting->period, std::make_shared<const compress::SparseUpdate>(std::move(change).value()));
  }
  return {};
}

Finding StreamReplay::compare_root(const SegmentStart& segment) {
  const auto state = gossip::keep_state(trainer_->carried_state());
  if (segment.bytes == state->bytes.size() && segment.pieces == pieces_ && segment.root == state->root) return {};
  return differs("its record names another state of the trainer than the steps before it left");
}

Finding StreamReplay::show(const TapeReader::Read& step) {
  if (in_flight_) trainer_->lift(*replica_, *in_flight_);
  heard_.clear();
  if (Finding moved = move_to(step.view); moved.verdict != Verdict::agrees) return moved;
  heard_.insert(origin_);
  // A peer that begins a turn has heard those of the turns before.
  const bool counts = std::exchange(moved_, true) && !step.record.drop_residual;
  if (counts && heard_.size() > step.record.peers) ++fewer_peers_;
  trainer_->follow(*replica_);
  in_flight_ = std::make_unique<InFlightView>(run_.form.layout, 0);
  // One half has the same run id as "auto", in which each peer measures its own.
  const std::optional<double> fixed = run_.config.in_flight_weight;
  for (const InFlightView::Waiting& waiting : step.record.in_flight) {
    const auto own = own_.find(waiting.period);
    if (own == own_.end()) return differs("its record names an update in flight that its peer has not made");
    if (fixed && *fixed != 0.5 && waiting.weight != *fixed)
      return differs("its in-flight weight is not that of the run file");
    in_flight_->set_weight(waiting.weight);
    in_flight_->sent(own->second, waiting.period, std::vector<NodeId>(waiting.peers));
  }
  trainer_->expect(*replica_, *in_flight_);
  return {};
}

Finding StreamReplay::move_to(const gossip::HaveSet& view) {
  const gossip::HaveSet more = replica_->have().missing_from(view), less = view.missing_from(replica_->have());
  for (const gossip::HaveSet* names : {&more, &less})
    for (const auto& [stream, ranges] : names->streams())
      for (const gossip::SeqRange& range : ranges)
        for (std::uint64_t seq = range.first; seq <= range.last; ++seq)
          if (Finding taken = take({stream, seq}, names == &less); taken.verdict != Verdict::agrees) return taken;
  return {};
}

Finding StreamReplay::take(const UpdateKey& key, bool back) {
  const auto update = run_.log.find(key);
  if (!update)
    return cannot_tell(str("its step was made with", back ? "out" : "", " update ", key.seq, " of stream ",
                           key.stream.brief(), ", which the log does not have"));
  auto change = compress::decode(run_.form.layout, compress::update_part(*update->payload));
  if (!change) return cannot_tell("the log is damaged: " + change.error().text);
  if (!back) heard_.insert(update->header.origin);
  if (back) {
    replica_->take_back(update->header, std::move(change).value(), update->payload);
  } else if (!replica_->apply(update->header, std::move(change).value(), update->payload)) {
    return cannot_tell("the log is damaged");
  }
  return {};
}

StepPlan StreamReplay::plan_of(const StepRecord& record) const {
  const auto samples = static_cast<double>(replica_->samples());
  const double progress = std::min(1.0, samples / static_cast<double>(run_.config.samples));
  StepPlan plan;
  plan.rate = record.flush ? 0 : run_.config.rate_for(record.peers, progress) * record.brake;
  plan.adam_factor = run_.config.adam_factor_for(record.peers);
  plan.density = record.density;
  plan.period = record.period;
  plan.batches = static_cast<std::uint32_t>(record.batches);
  plan.hold = record.held && !record.flush;
  plan.flush = record.flush;
  plan.drop_residual = record.drop_residual;
  plan.peers = record.peers;
  plan.size = run_.config.resolution.size_at(progress);
  return plan;
}

StepResult StreamReplay::compute(const TapeReader::Read& step) {
  const StepPlan plan = plan_of(step.record);
  ReplayedStep shown{.record = step.record, .rate = plan.rate};
  const std::uint64_t pieces = trainer_->built().rows.pieces(plan.peers, plan.batches);
  if (!plan.flush)
    for (std::uint64_t piece = 0; piece < pieces; ++piece, ++pieces_) {
      const std::span<const std::uint32_t> rows = rows_->next_rows();
      shown.rows.insert(shown.rows.end(), rows.begin(), rows.end());
    }
  StepResult result = trainer_->step(plan);
  shown.loss = result.loss;
  shown.samples = result.samples;
  shown.update = result.update;
  steps_.push_back(std::move(shown));
  return result;
}

Finding StreamReplay::compare(const gossip::StoredUpdate& update, BytesView claimed, StepResult made) {
  if (!std::equal(claimed.begin(), claimed.end(), made.payload.begin(), made.payload.end())) {
    const auto entries = compress::decode(run_.form.layout, claimed);
    return entries ? differs(compared(*entries, made.update)) : cannot_tell("the log is damaged");
  }
  own_.emplace(update.header.period, std::make_shared<const compress::SparseUpdate>(std::move(made.update)));
  if (own_.size() > limits::in_flight_max) own_.erase(own_.begin());
  return {};
}

TrainerState StreamReplay::state() const {
  const std::span<const float> residual = trainer_->residual();
  return {{residual.begin(), residual.end()}, trainer_->optimizer_state()};
}

}  // namespace rumor::audit
