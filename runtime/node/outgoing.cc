#include "runtime/node/outgoing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compress/statistics.h"
#include "gossip/trust/signing.h"
#include "runtime/base/grid_range.h"
#include "runtime/base/sha256.h"
#include "runtime/node/staged_steps.h"

namespace rumor {

namespace {
// Between surveys of the residual, each a pass over all parameters; the shorter one before the first update.
constexpr Duration survey_every = 10s, survey_soon = 100ms;
}  // namespace

void Outgoing::start_step(Turn& turn) {
  Exchange& exchange = *core_.exchange;
  StepPlan plan;
  plan.hold = !(core_.protocol->may_publish(turn.now) && exchange.publishes_next());
  exchange.begin_step(plan);
  plan.rate = exchange.rate();
  plan.batches = exchange.batches();
  plan.density = core_.density();
  plan.seconds = last_step_ ? to_seconds(turn.now - *last_step_) : 0;
  plan.others = incoming_.take_changes();
  plan.peers = exchange.live_count();
  plan.survey = next_survey_ <= turn.now;
  plan.size = core_.config.resolution.size_at(core_.progress());
  last_step_ = turn.now;
  record(plan);
  core_.begin_computing(turn.now);
  if (std::string text = exchange.warning(); !text.empty()) turn.note(gossip::Note::Level::warning, std::move(text));
  if (core_.staged != nullptr) return core_.staged->begin(std::move(plan), turn.now);
  turn.out.push_back(StartStep{std::move(plan)});
}

void Outgoing::start_flush(double density, Turn& turn) {
  StepPlan plan;
  plan.flush = true;
  plan.density = density;
  core_.exchange->begin_step(plan);
  plan.peers = core_.exchange->live_count();
  record(plan);
  core_.begin_computing(turn.now);
  turn.out.push_back(StartStep{std::move(plan)});
}

void Outgoing::record(const StepPlan& plan) {
  if (!recorder_.on()) return;
  if (!recorder_.repeatable() && core_.figures.steps == 0)
    core_.turn->note(gossip::Note::Level::warning,
                     "nobody can make the steps of this peer again, so audits will not check it (audit.record): that "
                     "takes a built-in model on a processor, without optimizer.hogwild, adaptive_revision or a budget "
                     "in bytes, and a checkpoint that was made right behind an update");
  recorder_.began({.flush = plan.flush,
                   .drop_residual = plan.drop_residual,
                   .period = plan.period,
                   .peers = plan.peers,
                   .batches = std::max(plan.batches, 1u),
                   .brake = plan.flush ? 1 : core_.exchange->brake(),
                   .density = plan.density,
                   .in_flight = core_.exchange->in_flight()},
                  incoming_.have(), *core_.trainer);
}

std::optional<UpdateKey> Outgoing::point() const {
  if (!recorder_.repeatable() || recorder_.has_steps() || core_.own_updates == 0) return std::nullopt;
  return UpdateKey{core_.options.stream, core_.own_updates};
}

bool Outgoing::step_done(StepResult result, Turn& turn) {
  if (result.compression) {
    compression_ = *std::move(result.compression);
    next_survey_ = turn.now + (compression_.step > 0 ? survey_every : survey_soon);
  }
  if (const auto position = incoming_.replica().near_range_end())
    result.failure = range_end_text_of(*position) + "; what is shared would be wrong for everybody from here on";
  if (!result.failure.empty()) {
    turn.note(gossip::Note::Level::error, "training cannot go on: " + result.failure);
    return false;
  }
  if (!result.at_range_end.empty()) warn_of_range(result.at_range_end, turn);
  if (incoming_.replica().is_revoked({core_.options.stream, core_.own_updates + 1})) return true;
  count(result);
  recorder_.ended(result.held);
  if (!result.held) publish(std::move(result), turn);
  core_.exchange->set_unpublished(samples_held_);
  return true;
}

std::string Outgoing::range_end_text_of(std::uint32_t position) const {
  const double value = std::ldexp(incoming_.replica().weights()[position], -core_.config.grid_bits);
  return range_end_text(core_.trainer->layout(), position, value, core_.config.grid_bits);
}

// Once for each tensor.
void Outgoing::warn_of_range(std::span<const std::uint32_t> positions, Turn& turn) {
  core_.figures.entries_at_range_end += positions.size();
  for (const std::uint32_t position : positions) {
    const std::string& tensor = core_.trainer->layout().tensor_at(position).name;
    if (!at_range_end_.insert(tensor).second) continue;
    turn.note(gossip::Note::Level::error, range_end_text_of(position) + "; until then its changes are not sent");
  }
}

void Outgoing::count(const StepResult& result) {
  TrainingFigures& figures = core_.figures;
  const double before = figures.train_loss;
  // Without samples there is no loss: a loop that leaves hands over what is left, which may be nothing.
  if (result.samples > 0) figures.train_loss = before == 0 ? result.loss : before + (result.loss - before) * 0.02;
  ++figures.steps;
  if (result.held) ++figures.steps_held;
  if (result.undone) ++figures.changes_undone;
  samples_held_ += result.samples;
}

void Outgoing::publish(StepResult result, Turn& turn) {
  result.payload = recorder_.payload(std::move(result.payload));
  TrainingFigures& figures = core_.figures;
  figures.own_payload_bytes += result.payload.size();
  figures.own_entries += result.update.index.size();
  figures.own_bound_bits += compress::bound_bits(incoming_.form().layout.params(), result.update.index.size());

  gossip::StoredUpdate update;
  update.header.key = {core_.options.stream, ++core_.own_updates};
  update.header.origin = core_.options.node;
  update.header.payload_hash = sha256(result.payload);
  update.header.period = result.period;
  update.header.samples = std::min(samples_held_, update_samples_max);
  samples_held_ -= update.header.samples;
  update.payload = std::make_shared<const Bytes>(std::move(result.payload));
  compress::SharedUpdate change =
      incoming_.replica().apply_own(update.header, std::move(result.update), update.payload);
  update.header.signature = core_.options.keys->sign(gossip::update_message(core_.run, update.header));

  core_.exchange->published(update, std::move(change), turn.now);
  core_.protocol->publish(update, turn.now, turn.network);
  if (core_.options.report_applied) turn.out.push_back(Published{update});
}

}  // namespace rumor
