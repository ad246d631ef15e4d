#include "runtime/sim/storm/trained_storm.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace rumor::sim {

namespace {

constexpr Duration look_every = 20ms;
// After healing, besides the training that is left and what slow links carry.
constexpr Duration finished_within = 120s;

}  // namespace

TrainedStorm::TrainedStorm(const StormRequest& request, StormPlan plan, std::uint64_t samples_wanted)
    : FaultyRun(request, std::move(plan)), samples_wanted_(samples_wanted) {}

bool TrainedStorm::watch() {
  if (!stopped_) stopped_ = !show();
  return !stopped_ && !world_.violation();
}

void TrainedStorm::train_to_the_end() {
  const TimePoint healed = world_.now();
  const gossip::HaveSet before = checkers_.held();
  const Duration within = finished_within + 4 * request_.training + carrying_time();
  while (watch() && !(complete() && checkers_.equal())) {
    if (world_.now() - healed > within)
      return world_.violate("L1", 0,
                            str("the run is not over, or replicas differ, ", fixed(to_seconds(within), 0),
                                " s after healing", state_text()));
    world_.run_until(world_.now() + look_every);
  }
  if (stopped_ || world_.violation()) return;
  report_.converged_seconds = to_seconds(world_.now() - healed);
  checkers_.check_kept(before);
  if (!world_.violation()) checkers_.check_equal();
  if (!world_.violation()) await_mesh();
  for (HostId i = 0; i < plan_.nodes && !world_.violation(); ++i)
    if (world_.host(i).up()) checkers_.check_weights(i);
}

StormReport TrainedStorm::run_storm(const std::string& command) {
  start_hosts();
  while (watch() && world_.now() < chaos_end() && samples() * 10 < samples_wanted_ * 9)
    world_.run_until(std::min(world_.now() + look_every, chaos_end()));
  if (watch()) {
    heal();
    train_to_the_end();
  }
  if (!world_.violation()) conclude();
  if (watch()) say_goodbye();
  fill(report_);
  report_.replay = replay_line(request_, command);
  return report_;
}

}  // namespace rumor::sim
