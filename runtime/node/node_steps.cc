// Steps and updates of a node: from the plan of a step to a published update, and from a received one to the
// view.
#include <algorithm>
#include <cmath>

#include "compress/statistics.h"
#include "runtime/base/limits.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/node/node.h"
#include "runtime/replica/payload_coder.h"
#include "runtime/training/own_model.h"

namespace rumor {

namespace {
// More steps behind one update than anybody's batch: a header that claims more is damaged.
constexpr std::uint32_t update_samples_max = 1u << 24;
constexpr std::uint32_t all_rows = UINT32_MAX;
constexpr Duration survey_every = 10s, survey_soon = 100ms;  // soon: nothing has been sent yet
// So long those who are to wait at first wait for somebody to begin.
constexpr Duration early_patience = 10s;
// While the trainer waits for its period to end, so many entries go onto the view without waiting for more: some 5 ms
// that the next step does not wait for.
constexpr std::uint64_t entries_worth_going_first = 1 << 18;
// Of a run, before which nobody knows enough to teach (Anil et al., ICLR 2018: burn-in).
constexpr double codistillation_from = 0.1;
}  // namespace

// ---- own steps ----

void Node::maybe_compute(TimePoint now, NodeOutbox& out) {
  if (computing_ || phase_ == Phase::ended) return;
  if (phase_ == Phase::done && !final_evaluation_done_) {
    complete_evaluation_ = true;
    return start_evaluation(all_rows, out);
  }
  if (phase_ != Phase::training || stopping_ || options_.observe) return;
  if (next_evaluation_ <= now) {
    next_evaluation_ = now + options_.evaluation_every;
    evaluation_began_ = now;
    return start_evaluation(options_.evaluation_rows, out);
  }
  if (next_step_ <= now && !waits_for_others(now)) return start_step(now, out);
  if (neighbourhood_) return;
  if (std::max(replica_.recent_entries(), in_flight_.stale_entries()) >= entries_worth_going_first) bring_view_up();
}

// Early in the run, when the others are to train alone. Where there are none of them, somebody has to begin.
bool Node::sits_out(TimePoint now) {
  if (options_.shard.index < config_.early_peers || config_.early_peers == 0) return false;
  if (!config_.is_early(progress()) || begins_anyway_) return false;
  begins_anyway_ = live_.count() == 0 && gives_up_waiting() <= now;
  return !begins_anyway_;
}

TimePoint Node::gives_up_waiting() const {
  const bool alone = config_.early_peers > 0 && !begins_anyway_ && live_.count() == 0;
  return alone && waits_since_ ? *waits_since_ + early_patience : never;
}

std::string Node::waits_for() const {
  if (staleness_.waits(own_seq_)) return staleness_.waits_for(own_seq_);
  return str("the early phase to end, in which shards 1 to ", config_.early_peers,
             " train alone: exchange.early_share = ", fixed(config_.early_share, 2));
}

// By the rules against staleness, and by the run file's early phase.
bool Node::waits_for_others(TimePoint now) {
  if (staleness_.waits(own_seq_) || sits_out(now)) {
    if (!waits_since_) waits_since_ = now;
    return true;
  }
  if (waits_since_) figures_.seconds_waited += to_seconds(now - *waits_since_);
  waits_since_.reset();
  return false;
}

// To the shared weights, and what others are expected to do on top.
void Node::bring_view_up() {
  if (replica_.refreshed() && in_flight_.stale_entries() == 0) return;
  trainer_->follow(replica_);
  trainer_->expect(replica_, in_flight_);
}

// By what is known of the neighbours. While the own copy stands still, so does what averaging adds: many steps of it
// would draw the model beyond theirs. Teachers are asked once there is something to learn from them. Returns how many.
std::size_t Node::draw_model(bool tells) {
  trainer_->follow(replica_);
  if (config_.averages()) {
    trainer_->own_model()->pull_towards(*neighbourhood_, tells ? neighbourhood_->share(density_now()) : 0);
    return 0;
  }
  const std::size_t wanted = progress() < codistillation_from ? 0 : config_.neighbour_rules.teachers;
  const auto teachers = neighbourhood_->teachers(wanted, figures_.steps);
  trainer_->own_model()->learn_from(teachers);
  return teachers.size();
}

void Node::start_step(TimePoint now, NodeOutbox& out) {
  const bool tells = protocol_->may_publish(now) && tells_next();
  StepPlan plan;
  if (neighbourhood_)
    plan.teachers = draw_model(tells);
  else
    bring_view_up();
  computing_ = true;
  next_step_ = now + Duration(static_cast<std::int64_t>(config_.period_ms * 1000));
  own_period_ = neighbourhood_ ? static_cast<std::uint64_t>(std::llround(neighbourhood_->mean_samples()))
                               : std::max(own_period_ + 1, replica_.period());
  plan.rate = rate_now();
  plan.density = density_now();
  plan.period = own_period_;
  plan.seconds = last_step_ ? to_seconds(now - *last_step_) : 0;
  plan.hold = !tells;
  plan.others = std::move(others_);
  plan.peers = live_count();
  plan.survey = next_survey_ <= now;
  plan.drift_bound = config_.averages() ? config_.neighbour_rules.drift_bound : 0;
  last_step_ = now;
  staleness_.step_began();
  tell_of_brake(out);
  out.push_back(StartStep{std::move(plan)});
  others_.clear();
  others_entries_ = 0;
}

// With a model of its own a peer tells of itself after every so many steps.
bool Node::tells_next() const { return !neighbourhood_ || (figures_.steps + 1) % config_.steps_of_update() == 0; }

double Node::density_now() const { return config_.density_at(neighbourhood_ ? 1 : live_count(), progress()); }

// Of the shared weights, without what others are expected to do. No pass over all of them: the trainer waits.
void Node::start_evaluation(std::uint32_t rows, NodeOutbox& out) {
  trainer_->follow(replica_);
  trainer_->lift(replica_, in_flight_);
  computing_ = true;
  out.push_back(StartEvaluation{trainer_->view().values, rows});
}

void Node::on_step_done(StepResult result, TimePoint now, NodeOutbox& out) {
  RUMOR_CHECK(computing_);
  now_ = now;
  computing_ = false;
  trainer_memory_ = trainer_->memory();
  if (phase_ == Phase::ended) return advance(now, out);
  if (result.compression) {
    compression_ = *std::move(result.compression);
    next_survey_ = now + (compression_.step > 0 ? survey_every : survey_soon);
  }
  if (!result.failure.empty()) {
    out.push_back(gossip::Note{gossip::Note::Level::error, "training cannot go on: " + result.failure});
    end(1, now, out);
  } else if (!replica_.is_revoked({options_.stream, own_seq_ + 1})) {
    const double before = figures_.train_loss;
    // Without samples there is no loss: a loop that leaves hands over what is left, which may be nothing.
    if (result.samples > 0) figures_.train_loss = before == 0 ? result.loss : before + (result.loss - before) * 0.02;
    ++figures_.steps;
    samples_held_ += result.samples;
    if (result.held) {
      ++figures_.steps_held;
    } else {
      publish(std::move(result), now, out);
    }
    if (neighbourhood_) neighbourhood_->set_untold(samples_held_);
  }
  advance(now, out);
}

void Node::publish(StepResult result, TimePoint now, NodeOutbox& out) {
  figures_.own_payload_bytes += result.payload.size();
  figures_.own_entries += result.update.index.size();
  figures_.own_bound_bits += compress::bound_bits(trainer_->layout().params(), result.update.index.size());

  gossip::StoredUpdate update;
  update.header.key = {options_.stream, ++own_seq_};
  update.header.origin = options_.node;
  update.header.payload_hash = sha256(result.payload);
  update.header.period = result.period;
  update.header.samples = std::min(samples_held_, update_samples_max);
  samples_held_ -= update.header.samples;
  update.payload = std::make_shared<const Bytes>(std::move(result.payload));
  const compress::SharedUpdate change = replica_.apply_own(update.header, std::move(result.update), update.payload);
  update.header.signature = options_.keys->sign(gossip::update_message(run_, update.header));

  if (!neighbourhood_) {
    in_flight_.sent(change, result.period, live_.list());
    log_.append(update, now_);
  }
  protocol_->publish(update, now, protocol_out_);
  if (options_.report_applied) out.push_back(Published{update});
}

void Node::on_evaluated(const models::Evaluation& evaluation, TimePoint now, NodeOutbox& out) {
  RUMOR_CHECK(computing_);
  now_ = now;
  computing_ = false;
  trainer_memory_ = trainer_->memory();
  // A model that takes long to evaluate does it less often: at most a tenth of the time.
  if (next_evaluation_ != never) next_evaluation_ = std::max(next_evaluation_, now + 9 * (now - evaluation_began_));
  ++figures_.evaluations;
  figures_.loss = evaluation.loss;
  figures_.accuracy = evaluation.accuracy;
  if (complete_evaluation_) final_evaluation_done_ = true;
  advance(now, out);
}

// ---- updates of others, and the replica as bytes (gossip::UpdateStore) ----

Result<gossip::Accepted> Node::accept(const gossip::StoredUpdate& update) {
  const gossip::UpdateHeader& header = update.header;
  if (replica_.have().contains(header.key) || replica_.is_revoked(header.key))
    return gossip::Accepted::duplicate;
  const std::string name = str("update ", header.key.seq, " of stream ", header.key.stream.brief());
  if (header.key.seq == 0 || header.samples > update_samples_max)
    return Error{Errc::corrupt, name + ": its header is out of range"};
  // The trainer's threads are idle between two steps, when a long decoding would keep it waiting.
  auto decoded = compress::decode(trainer_->layout(), *update.payload,
                                  {.parallel = computing_ ? nullptr : &trainer_->parallel()});
  if (!decoded) return Error{Errc::corrupt, name + ": " + decoded.error().text};
  const bool wanted = wants_others_ && header.origin != options_.node;
  compress::SparseUpdate change = wanted ? *decoded : compress::SparseUpdate();
  const auto applied = replica_.apply(header, std::move(decoded).value(), update.payload);
  if (!applied || *applied == gossip::Accepted::duplicate) return applied;
  log_.append(update, now_);
  trainer_->arrived(update.payload);
  if (wanted) remember(std::move(change));
  if (header.origin != options_.node) {
    live_.heard(header.origin, now_);
    const std::uint64_t staleness =
        staleness_.heard(header.origin, header.key, header.period, own_period_, own_seq_);
    ++figures_.updates_of_others;
    figures_.staleness_sum += staleness;
    figures_.staleness_max = std::max(figures_.staleness_max, staleness);
    in_flight_.answered(header.origin, header.period);
  }
  if (options_.report_applied) applied_.push_back(header);
  return applied;
}

void Node::remember(compress::SparseUpdate update) {
  others_entries_ += update.index.size();
  if (others_entries_ <= trainer_->layout().params())
    others_.push_back(std::move(update));
  else
    others_.clear();
}

Result<void> Node::revoke(const gossip::Revocation& revocation) {
  std::vector<gossip::StoredUpdate> taken;
  std::uint64_t gone = 0;
  for (const auto& [stream, ranges] : replica_.have().streams()) {
    if (!revocation.covers({stream, revocation.range.first})) continue;
    for (const gossip::SeqRange& range : ranges) {
      const std::uint64_t last = std::min(range.last, revocation.range.last);
      for (std::uint64_t seq = std::max(range.first, revocation.range.first); seq <= last; ++seq) {
        auto update = log_.find({stream, seq});
        update ? taken.push_back(std::move(*update)) : void(++gone);
      }
    }
  }
  if (gone != 0) return Error{Errc::limit, str(gone, " of its updates are no longer kept here")};
  for (const gossip::StoredUpdate& update : taken) RUMOR_CHECK(take_back(update.header.key).ok());
  replica_.mark(revocation);
  return {};
}

Result<void> Node::take_back(const UpdateKey& key) {
  const auto update = log_.find(key);
  if (!update) return Error{Errc::limit, "it is no longer kept here"};
  auto decoded = compress::decode(trainer_->layout(), *update->payload);
  RUMOR_CHECK(decoded.ok());  // it was accepted once
  replica_.take_back(update->header, std::move(decoded).value(), update->payload);
  log_.erase(key);
  return {};
}

std::unique_ptr<gossip::LinkCoder> Node::coder_for_link() const {
  return std::make_unique<PayloadCoder>(trainer_->layout());
}

Result<void> Node::install(ReplicaState state) {
  for (const gossip::Revocation& revocation : replica_.revocations())
    if (!state.revocations.contains(revocation))
      return Error{Errc::mismatch, "it lacks a revocation of the run's owner"};
  for (const gossip::Revocation& revocation : state.revocations)
    if (!options_.rule.owner ||
        !gossip::revocation_is_signed(*options_.keys, run_, *options_.rule.owner, revocation))
      return Error{Errc::corrupt, "it holds a revocation that the run's owner has not signed"};
  if (auto restored = replica_.restore(std::move(state)); !restored) return restored;
  replay_log();
  others_.clear();
  others_entries_ = 0;
  return {};
}

// What the log holds and the replica lacks: after a snapshot, or after a restart from an older checkpoint.
void Node::replay_log() {
  for (const UpdateKey& key : log_.keys()) {
    if (replica_.have().contains(key)) continue;
    const auto update = replica_.is_revoked(key) ? std::nullopt : log_.find(key);
    auto decoded = update ? compress::decode(trainer_->layout(), *update->payload)
                          : Result<compress::SparseUpdate>(Error{Errc::corrupt, "it is revoked or damaged"});
    if (!decoded || !replica_.apply(update->header, std::move(decoded).value(), update->payload))
      log_.erase(key);
  }
}

Bytes Node::make_checkpoint() const {
  RUMOR_CHECK(!computing_);
  RUMOR_CHECK(replica_.verify());  // never write a damaged replica
  LocalState local;
  local.node = options_.node;
  const std::span<const float> residual = trainer_->residual();
  local.residual.assign(residual.begin(), residual.end());
  local.optimizer = trainer_->optimizer_state();
  local.own_model = neighbourhood_.has_value();
  return encode_checkpoint(form(), replica_.state(), local);
}

}  // namespace rumor
