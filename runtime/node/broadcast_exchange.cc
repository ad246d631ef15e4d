#include "runtime/node/broadcast_exchange.h"

#include <algorithm>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/node/node_core.h"

namespace rumor {

namespace {

// Peers that leave the early phase to others train after this time all the same, if no other peer has begun.
constexpr Duration early_patience = 10s;
// From this many entries on, work_ahead() updates the view: about 5 ms that the next step need not spend.
constexpr std::uint64_t entries_worth_going_first = 1 << 18;

ViewWeight view_weight(const NodeCore& core) {
  if (!core.trainer->computes_at_shared_weights()) return ViewWeight(0);
  return ViewWeight(core.config.in_flight_weight);
}

RoundLength round_length(const NodeCore& core) {
  const RunConfig& config = core.config;
  if (config.follows_delay() && core.trainer->takes_batches())
    return RoundLength::following(config.density_for(1, 1));
  return {config.batches(), config.batches()};
}

}  // namespace

BroadcastExchange::BroadcastExchange(NodeCore& core, HeldUpdates& held)
    : core_(core),
      held_(held),
      view_weight_(view_weight(core)),
      in_flight_(held.form().layout, view_weight_.weight()),
      staleness_(core.config.staleness),
      turns_(core.config.turn_rules(), {core.options.shard.index, core.options.shard.count}),
      round_(round_length(core)) {}

// Before its first update a peer has often heard no other, so it shares the learning rate with its neighbours.
std::size_t BroadcastExchange::live_count() const {
  const bool begins = core_.phase == Phase::training && core_.own_updates == 0;
  if (turns_.on() && !turns_.has_trained()) return turns_.expected();
  return 1 + std::max(live_.count(), begins ? core_.protocol->peers().size() : 0);
}

double BroadcastExchange::rate() const {
  return core_.config.rate_for(live_count(), core_.progress()) * late_factor();
}

// Late updates lower the learning rate by rule, and where no view keeps them stable.
double BroadcastExchange::late_factor() const {
  return std::min(staleness_.rate_factor(), view_weight_.rate_factor(staleness_.mean()));
}

void BroadcastExchange::configure(gossip::Options& options) {
  if (core_.config.has_byte_budget()) return;
  options.gives_way = core_.config.narrow_links == narrow_wait ? gossip::GiveWay::fewer_steps
                                                                : gossip::GiveWay::thinner_updates;
}

// ---- updates ----

void BroadcastExchange::applied(const gossip::UpdateHeader& header, TimePoint now) {
  if (turns_.heard(header.origin, header.period, now)) turn_began();
  TrainingFigures& figures = core_.figures;
  ++figures.updates_of_others;
  in_flight_.answered(header.origin, header.period);
  if (turns_.on() && !turns_.is_current(header.period)) return;  // its origin trains no more
  live_.heard(header.origin, now);
  const std::uint64_t staleness =
      staleness_.heard(header.origin, header.key, header.period, own_period_, core_.own_updates);
  figures.staleness_sum += staleness;
  figures.staleness_max = std::max(figures.staleness_max, staleness);
}

// Nothing is expected of the peers of the last turn.
void BroadcastExchange::turn_began() {
  if (!turns_.is_apart()) return;
  for (const NodeId& peer : live_.list()) {
    live_.forget(peer);
    in_flight_.gone(peer);
    staleness_.gone(peer);
  }
}

void BroadcastExchange::published(const gossip::StoredUpdate& update, compress::SharedUpdate change, TimePoint now) {
  if (turns_.published(update.header.period)) turn_began();
  if (live_.count() > 0) view_weight_.seen(update.header.origin, *change);
  view_weight_.published();
  in_flight_.set_weight(view_weight_.weight());
  in_flight_.sent(std::move(change), update.header.period, live_.list());
  held_.log_own(update, now);
  staleness_.published(update.header.period);
  round_.published(staleness_.mean());
}

void BroadcastExchange::expire(TimePoint now) {
  for (const NodeId& peer : live_.expire(now)) {
    in_flight_.gone(peer);
    staleness_.gone(peer);
  }
}

// ---- waiting for other peers ----

bool BroadcastExchange::waits_for_links(TimePoint now) {
  if (core_.config.narrow_links != narrow_wait || core_.protocol->may_publish(now)) return false;
  const TimePoint from = core_.protocol->publishes_from();
  links_until_ = from > now ? from : never;  // a link whose backlog goes makes a turn of its own
  return true;
}

// For this peer's turn, by the rules against staleness, for narrow links, and by the run file's early phase.
BroadcastExchange::Waits BroadcastExchange::waits(TimePoint now) {
  if (turns_.advance(held_.replica().period())) turn_began();
  turns_.take_over(own_period_, now);
  if (!turns_.next(own_period_)) return Waits::turn;
  if (staleness_.waits(core_.own_updates)) return Waits::updates;
  if (waits_for_links(now)) return Waits::links;
  return leaves_early_phase_to_others(now) ? Waits::early_phase : Waits::no;
}

bool BroadcastExchange::must_wait(TimePoint now) {
  const Waits cause = waits(now);
  if (cause != waits_) {
    const double waited = to_seconds(now - waits_since_);
    if (waits_ == Waits::links) core_.figures.seconds_waited_links += waited;
    if (waits_ != Waits::no && waits_ != Waits::links) core_.figures.seconds_waited += waited;
    waits_ = cause;
    waits_since_ = now;
  }
  return cause != Waits::no;
}

// Only the first shards train in the early phase. When none of their peers is there, another one has to begin.
bool BroadcastExchange::leaves_early_phase_to_others(TimePoint now) {
  const RunConfig& config = core_.config;
  if (core_.options.shard.index < config.early_peers || config.early_peers == 0) return false;
  if (!config.is_early(core_.progress()) || begins_anyway_) return false;
  begins_anyway_ = live_.count() == 0 && early_patience_ends() <= now;
  return !begins_anyway_;
}

TimePoint BroadcastExchange::early_patience_ends() const {
  const bool alone = core_.config.early_peers > 0 && !begins_anyway_ && live_.count() == 0;
  return alone && waits_ != Waits::no ? waits_since_ + early_patience : never;
}

std::optional<TimePoint> BroadcastExchange::waits_until() const {
  if (waits_ == Waits::no) return std::nullopt;
  const TimePoint turn = waits_ == Waits::turn ? turns_.patience_ends(own_period_) : never;
  return std::min({turn, live_.next_expiry(), early_patience_ends(), waits_ == Waits::links ? links_until_ : never});
}

std::string BroadcastExchange::waiting_for() const {
  if (waits_ == Waits::no) return {};
  if (waits_ == Waits::updates) return staleness_.waits_for(core_.own_updates);
  if (waits_ == Waits::turn) return str("its turn to train: exchange.trainers = ", core_.config.turns.trainers);
  if (waits_ == Waits::links) return "links to carry its updates, exchange.narrow_links = \"wait\"";
  return str("the early phase to end, in which shards 1 to ", core_.config.early_peers,
             " train alone: exchange.early_share = ", fixed(core_.config.early_share, 2));
}

// ---- own steps ----

void BroadcastExchange::begin_step(StepPlan& plan) {
  show_weights();
  const std::uint64_t usual = std::max(own_period_ + 1, held_.replica().period());
  plan.period = std::max(usual, turns_.next(own_period_).value_or(usual));
  plan.drop_residual = turns_.drops_residual(own_period_, plan.period);
  own_period_ = plan.period;
  plan.adam_factor = core_.config.adam_factor_for(live_count());
  staleness_.step_began();
}

// The shared weights, and on top of them what other peers are expected to do.
void BroadcastExchange::show_weights() {
  if (held_.replica().refreshed() && in_flight_.stale_entries() == 0) return;
  core_.trainer->follow(held_.replica());
  core_.trainer->expect(held_.replica(), in_flight_);
}

void BroadcastExchange::work_ahead() {
  if (std::max(held_.replica().recent_entries(), in_flight_.stale_entries()) >= entries_worth_going_first)
    show_weights();
}

// The shared weights alone. The expectation is lifted off the view, since a copy of all weights would cost a pass over
// them while the trainer waits.
void BroadcastExchange::show_for_evaluation() {
  core_.trainer->follow(held_.replica());
  core_.trainer->lift(held_.replica(), in_flight_);
}

std::string BroadcastExchange::warning() {
  if (view_weight_.is_unlike() && !told_unlike_) {
    told_unlike_ = true;
    return str("updates of other peers undo ours (agreement ", fixed(*view_weight_.agreement(), 2), "), as where the ",
               "data of peers are unlike, so training no longer expects others to move as this peer does, and late ",
               "updates lower the learning rate to ", fixed(late_factor() * 100, 0), " %; nothing need be done. ",
               "Where time is not scarce, exchange.staleness_bound = 1 learns more from each sample; ",
               "exchange.in_flight_weight = 0.5 would keep the expectation");
  }
  const std::uint32_t trainers = core_.config.turn_rules().trainers;
  if (trainers > 0 && core_.options.shard.count == 1 && live_.count() >= trainers && !told_of_turns_) {
    told_of_turns_ = true;
    const char* cause = core_.trainer->computes_at_shared_weights()
                            ? "a peer knows its turn by its shard, and this one has all of the data; start each with "
                              "its own --shard I/N"
                            : "a training loop of another program has no turns";
    return str(1 + live_.count(), " peers train at once, although exchange.trainers = ", trainers, ": ", cause);
  }
  if (warned_ || staleness_.brake() > 0.9 || !core_.trainer->computes_at_shared_weights()) return {};
  warned_ = true;
  return str("updates of others are ", fixed(staleness_.mean(), 1), " of our steps old when they arrive, so the ",
             "learning rate is lowered to ", fixed(staleness_.brake() * 100, 0), " %, and further should that grow; ",
             "larger steps (optimizer.batch) or fewer (exchange.period_ms) would not need it");
}

// ---- the end, and figures ----

bool BroadcastExchange::handed_over(std::span<const gossip::PeerInfo> neighbours) const {
  return std::any_of(neighbours.begin(), neighbours.end(),
                     [](const gossip::PeerInfo& peer) { return peer.finished && peer.digest_equal; });
}

void BroadcastExchange::fill(NodeStatus& status) const {
  status.waits_for_links = waits_ == Waits::links;
  status.batches = round_.length();
  status.rate_factor = late_factor();
  status.density_factor = core_.protocol->density_factor();
  status.in_flight_weight = view_weight_.weight();
  status.agreement = view_weight_.agreement();
  status.unlike = view_weight_.is_unlike();
  status.in_flight = in_flight_.in_flight();
  status.staleness = staleness_.peers();
  status.memory.in_flight = in_flight_.memory_bytes() + view_weight_.memory_bytes();
}

}  // namespace rumor
