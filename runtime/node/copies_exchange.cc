#include "runtime/node/copies_exchange.h"

#include <cmath>

#include "runtime/node/node_core.h"
#include "runtime/training/own_model.h"

namespace rumor {

namespace {
// Progress of a run before which no model knows enough to teach (Anil et al., ICLR 2018: burn-in).
constexpr double codistillation_from = 0.1;
}  // namespace

CopiesExchange::CopiesExchange(NodeCore& core, HeldUpdates& held)
    : core_(core), replica_(held.replica()), neighbourhood_(held.form(), replica_, core.config.neighbour_rules) {}

void CopiesExchange::configure(gossip::Options& options) {
  options.copies = &neighbourhood_;
  options.links = links_of(core_.config.neighbour_rules);
}

std::uint64_t CopiesExchange::samples() const {
  if (samples_at_end_) return *samples_at_end_;
  return static_cast<std::uint64_t>(neighbourhood_.mean_samples() * static_cast<double>(core_.protocol->members()));
}

// A model of its own moves at the run file's learning rate, however many peers train.
double CopiesExchange::rate() const { return core_.config.rate * core_.config.schedule.factor(core_.progress()); }

bool CopiesExchange::publishes_next() const {
  return (core_.figures.steps + 1) % core_.config.steps_of_update() == 0;
}

// The model is pulled towards its neighbours only in steps that publish: while the own copy stays as it is, the pull
// stays too, and many steps of it would carry the model past theirs. Teachers are asked once they know something.
void CopiesExchange::begin_step(StepPlan& plan) {
  core_.trainer->follow(replica_);
  plan.period = static_cast<std::uint64_t>(std::llround(neighbourhood_.mean_samples()));
  if (core_.config.averages()) {
    core_.trainer->own_model()->pull_towards(neighbourhood_, plan.hold ? 0 : neighbourhood_.share(core_.density()));
    plan.drift_bound = core_.config.neighbour_rules.drift_bound;
    return;
  }
  const std::size_t wanted = core_.progress() < codistillation_from ? 0 : core_.config.neighbour_rules.teachers;
  const auto teachers = neighbourhood_.teachers(wanted, core_.figures.steps);
  core_.trainer->own_model()->learn_from(teachers);
  plan.teachers = teachers.size();
}

void CopiesExchange::show_for_evaluation() { core_.trainer->follow(replica_); }

void CopiesExchange::fill(NodeStatus& status) const {
  status.batches = core_.config.steps_of_update();
  status.memory.weights += neighbourhood_.memory_bytes();
}

}  // namespace rumor
