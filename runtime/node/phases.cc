#include "runtime/node/phases.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "compress/statistics.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"
#include "runtime/node/staged_steps.h"
#include "runtime/replica/checkpoint.h"

namespace rumor {

namespace {
constexpr std::uint32_t all_rows = UINT32_MAX;
constexpr double flush_density = 0.05;  // of each update of a flush
constexpr Duration flush_again = 20ms;  // while the links have no room
constexpr Duration sharing_again = 1s;  // while there are no buffers to share
constexpr Duration sharing_every = 10s;  // at least, between two reports of them
constexpr Duration taking_every = 1s;  // at least, of the buffers of all, which may have megabytes
constexpr std::uint64_t sharing_bytes_per_second = 4 << 10;  // that reach a peer, from all
}  // namespace

void Phases::start(TimePoint now) {
  const NodeOptions& options = core_.options;
  const bool evaluates = core_.trainer->evaluates();
  final_evaluation_done_ = !evaluates;
  next_evaluation_ = options.evaluation_every > Duration{0} && evaluates ? now : never;
  if (options.checkpoint_every > Duration{0}) next_checkpoint_ = now + options.checkpoint_every;
}

TimePoint Phases::deadline() const {
  TimePoint at = audits_.deadline();
  if (core_.phase == Phase::finishing) at = std::min(at, finishing_.deadline());
  if (core_.computing) return at;
  if (keeps_checkpoints()) at = std::min(at, next_checkpoint_);
  if (core_.phase == Phase::flushing) at = std::min(at, next_step_);
  if (core_.phase == Phase::training) at = std::min(at, next_evaluation_);
  if (trains()) at = std::min(at, core_.exchange->waits_until().value_or(next_step_));
  return at;
}

void Phases::advance(Turn& turn) {
  if (core_.phase == Phase::ended) return;
  change_phase(turn);
  if (core_.phase == Phase::ended) return;
  audits_.advance(turn);
  exchange_buffers(turn);
  save_checkpoint_if_due(turn);
  compute(turn);
}

// ---- from one phase to the next ----

// Empty, or why no update of this process counts any more.
std::string Phases::taken_back() const {
  using Kind = gossip::Revocation::Kind;
  for (const gossip::Revocation& one : incoming_.revocations()) {
    if (!one.covers({core_.options.stream, core_.own_updates + 1})) continue;
    if (one.kind == Kind::owner)
      return "the run's owner has put this peer out and taken its updates back; ask the owner why";
    if (one.kind == Kind::withdrawn)
      return str("update ", one.range.first, " of this peer was computed wrongly: memory or disk of this machine has "
                 "made an error. The updates from there on are taken back. Test the memory, then start the peer again; "
                 "it goes on from the weights of the others");
    return str("the others have proven that update ", one.false_update.seq, " of this peer is not what the run file "
               "says, and have put it out. If you run the same program, run file and data as they do, this machine "
               "computes wrongly: test its memory, and join again with a new key (another --state directory)");
  }
  return {};
}

std::optional<Phases::Complaint> Phases::complaint() const {
  if (std::string text = core_.protocol->divergence(); !text.empty()) return Complaint{4, std::move(text)};
  if (std::string text = taken_back(); !text.empty()) return Complaint{3, std::move(text)};
  if (std::string text = core_.protocol->superseded(); !text.empty()) return Complaint{3, std::move(text), true};
  if (std::string text = core_.protocol->refused_by_run(); !text.empty()) return Complaint{3, std::move(text)};
  return std::nullopt;
}

void Phases::change_phase(Turn& turn) {
  Phase& phase = core_.phase;
  if (std::optional<Complaint> found = complaint(); found && !(found->after_step && core_.computing)) {
    turn.note(gossip::Note::Level::error, std::move(found->text));
    return end(found->status, turn);
  }
  if (stopping_ && !core_.computing) return end(0, turn);
  if (phase == Phase::catching_up && core_.protocol->ready_to_train()) {
    phase = Phase::training;
    next_step_ = turn.now;
  }
  if (phase == Phase::training && !core_.computing && run_is_over()) {
    if (core_.staged != nullptr) core_.staged->finish(turn);
    phase = Phase::flushing;
    next_step_ = turn.now;
  }
  if (phase == Phase::flushing && !core_.computing && flushes_ >= flushes_allowed()) {
    core_.exchange->finish();
    share_buffers(turn);
    phase = Phase::finishing;
    core_.protocol->set_finished(true, turn.now, turn.network);
  }
  if (phase == Phase::finishing) await_convergence(turn);
  const bool ends = core_.options.until_samples && final_evaluation_done_ && audits_.may_end(turn.now);
  if (phase != Phase::done || !ends) return;
  audits_.tell_last(turn);
  end(0, turn);
}

// The first stage of a pipeline decides for all.
bool Phases::run_is_over() const {
  if (core_.staged != nullptr && !core_.staged->is_source()) return core_.staged->is_over();
  return core_.exchange->samples() >= core_.samples_wanted();
}

void Phases::await_convergence(Turn& turn) {
  const std::vector<gossip::PeerInfo> neighbours = core_.protocol->peers();
  const Finishing::Verdict verdict =
      finishing_.judge(turn.now, {.updates = incoming_.digest().updates,
                                  .has_links = !neighbours.empty(),
                                  .all_converged = core_.protocol->converged(),
                                  .handed_over = core_.exchange->handed_over(neighbours),
                                  .knows_others = core_.protocol->members_here() > 1,
                                  .follows = core_.options.observe});
  if (verdict == Finishing::Verdict::waits) return;
  if (verdict == Finishing::Verdict::given_up)
    turn.note(gossip::Note::Level::warning, "some neighbours did not finish in time; ending without them");
  core_.phase = Phase::done;
  audits_.run_is_over(turn);
}

void Phases::end(int status, Turn& turn) {
  RUMOR_CHECK(core_.phase != Phase::ended);
  core_.phase = Phase::ended;
  if (!core_.computing) core_.trainer->take_buffers(core_.protocol->node_buffers(), true);
  // Where training has failed, residual and optimizer hold what made it fail: the last checkpoint is the better one.
  if (keeps_checkpoints() && status != training_failed)
    turn.out.push_back(make_checkpoint());
  core_.protocol->leave(turn.now, turn.network);
  finished_status_ = status;
}

// ---- buffers ----

void Phases::exchange_buffers(Turn& turn) {
  if (core_.computing || core_.phase == Phase::ended) return;
  if (core_.phase == Phase::training && turn.now >= next_sharing_) share_buffers(turn);
  if (core_.protocol->buffers_hash() == buffers_taken_ || turn.now < next_taking_) return;
  next_taking_ = turn.now + taking_every;
  buffers_taken_ = core_.protocol->buffers_hash();
  core_.trainer->take_buffers(core_.protocol->node_buffers(), false);
}

void Phases::share_buffers(Turn& turn) {
  Bytes own = core_.trainer->buffers();
  next_sharing_ = turn.now + sharing_again;
  if (own.empty()) return;
  const double bytes = static_cast<double>(own.size() * core_.protocol->members());
  next_sharing_ = turn.now + std::max(sharing_every, from_seconds(bytes / sharing_bytes_per_second));
  core_.protocol->share_buffers(std::move(own), core_.exchange->samples(), turn.now, turn.network);
}

// ---- checkpoints ----

void Phases::checkpoint_soon() {
  if (core_.options.checkpoint_every > Duration{0}) next_checkpoint_ = TimePoint{};
}

void Phases::save_checkpoint_if_due(Turn& turn) {
  if (core_.phase == Phase::ended || turn.now < next_checkpoint_ || !keeps_checkpoints()) return;
  SaveCheckpoint checkpoint = make_checkpoint();
  const double seconds = static_cast<double>(checkpoint.bytes.size()) / limits::checkpoint_bytes_per_second;
  next_checkpoint_ = turn.now + std::max(core_.options.checkpoint_every, from_seconds(seconds));
  turn.out.push_back(std::move(checkpoint));
}

SaveCheckpoint Phases::make_checkpoint() const {
  RUMOR_CHECK(!core_.computing);
  RUMOR_CHECK(incoming_.verify());  // never write a damaged replica
  LocalState local;
  local.node = core_.options.node;
  const std::span<const float> residual = core_.trainer->residual();
  local.residual.assign(residual.begin(), residual.end());
  local.residual.resize(incoming_.form().layout.params());  // a follower has none
  local.optimizer = core_.trainer->optimizer_state();
  local.own_model = core_.config.has_own_models();
  local.point = outgoing_.point();
  SaveCheckpoint made{encode_checkpoint(incoming_.form(), incoming_.replica().state(), local)};
  if (!local.own_model) made.contributions = incoming_.contributions().encode(core_.run);
  return made;
}

// ---- work for the trainer ----

void Phases::compute(Turn& turn) {
  if (core_.computing || core_.phase == Phase::ended) return;
  if (core_.phase == Phase::done && !final_evaluation_done_) {
    final_evaluation_under_way_ = true;
    return start_evaluation(all_rows, turn);
  }
  if (core_.phase == Phase::flushing) return flush(turn);
  if (core_.phase == Phase::finishing) core_.exchange->work_ahead();
  const bool may_audit = core_.phase != Phase::catching_up;
  if (may_audit && !stopping_ && audits_.begin_slice(turn)) return;
  if (core_.phase != Phase::training || stopping_) return;
  if (evaluation_due(turn.now)) {
    evaluation_began_ = turn.now;
    return start_evaluation(core_.options.evaluation_rows, turn);
  }
  if (!trains()) return core_.exchange->work_ahead();  // else entries pile up
  if (turn.now < next_step_ || core_.exchange->must_wait(turn.now)) return core_.exchange->work_ahead();
  next_step_ = turn.now + Duration(static_cast<std::int64_t>(core_.config.period_ms * 1000));
  if (core_.exchange->turn_ends() && can_flush() && core_.protocol->may_publish(turn.now))
    return outgoing_.start_flush(density_max, turn);
  outgoing_.start_step(turn);
}

// An observer does not evaluate the same weights twice.
bool Phases::evaluation_due(TimePoint now) {
  if (now < next_evaluation_) return false;
  next_evaluation_ = now + core_.options.evaluation_every;
  const std::uint64_t weights = incoming_.replica().fingerprint();
  return !core_.options.observe || std::exchange(evaluated_, weights) != weights;
}

bool Phases::can_flush() const {
  return core_.trainer->flushes() && !core_.config.has_byte_budget() && !core_.options.observe;
}

std::size_t Phases::flushes_allowed() const {
  if (!can_flush() || core_.own_updates == 0) return 0;
  const std::uint64_t params = incoming_.form().layout.params();
  const auto entries = static_cast<std::uint64_t>(flush_density * static_cast<double>(params));
  const double bits = compress::bound_bits(params, std::max<std::uint64_t>(entries, 1));
  return static_cast<std::size_t>(core_.config.flush_bits * static_cast<double>(params) / bits);
}

void Phases::flush(Turn& turn) {
  if (turn.now < next_step_) return core_.exchange->work_ahead();  // updates of others pile up else
  next_step_ = turn.now + flush_again;
  if (!core_.protocol->may_publish(turn.now)) return;
  ++flushes_;
  outgoing_.start_flush(flush_density, turn);
}

std::string Phases::waiting_for() const {
  if (core_.phase == Phase::done && final_evaluation_done_) return audits_.waiting_for();
  if (core_.phase != Phase::flushing) return {};
  return str("sends what it has learned and not sent yet: ", flushes_, " of ", flushes_allowed(), " updates");
}

void Phases::start_evaluation(std::uint32_t rows, Turn& turn) {
  core_.exchange->show_for_evaluation();
  core_.begin_computing(turn.now);
  turn.out.push_back(StartEvaluation{core_.trainer->view().values, rows});
}

void Phases::evaluated(const models::Evaluation& evaluation, Turn& turn) {
  // A model that takes long to evaluate does it less often: at most a tenth of the time.
  if (next_evaluation_ != never)
    next_evaluation_ = std::max(next_evaluation_, turn.now + 9 * (turn.now - evaluation_began_));
  ++core_.figures.evaluations;
  core_.figures.loss = evaluation.loss;
  core_.figures.accuracy = evaluation.accuracy;
  if (final_evaluation_under_way_) final_evaluation_done_ = true;
}

}  // namespace rumor
