// Inputs, phases and deadlines of a node. Steps and updates are in node_steps.cc.
#include "runtime/node/node.h"

#include <algorithm>

#include "runtime/base/limits.h"
#include "runtime/base/text.h"
#include "runtime/training/model_trainer.h"

namespace rumor {

namespace {

constexpr Duration log_told_every = 60s;
// Entries that go onto weights nobody waits for, at a time: about a millisecond.
constexpr std::uint64_t applied_at_a_time = 1 << 16;

bool follows_in_flight(const RunConfig& config, const Trainer& trainer) {
  return trainer.computes_at_shared_weights() && config.mode == "broadcast";
}

}  // namespace

Node::Node(const RunConfig& config, NodeOptions options, std::unique_ptr<Trainer> trainer, RunId run)
    : config_(config),
      options_(std::move(options)),
      run_(run),
      trainer_(std::move(trainer)),
      replica_(run, trainer_->layout(), options_.start ? options_.start->weights : trainer_->initial_weights()),
      log_(options_.disk != nullptr ? config.log_bytes : limits::log_bytes_max,
           options_.disk != nullptr ? limits::log_cache_bytes_max : SIZE_MAX),
      snapshots_(form(), replica_, log_, [this](ReplicaState state) { return install(std::move(state)); }),
      in_flight_(trainer_->layout(), follows_in_flight(config, *trainer_) ? config.in_flight_weight : 0),
      staleness_(config.staleness),
      wants_others_(trainer_->wants_changes_of_others()) {
  options_.start.reset();
  gossip::Options protocol;
  protocol.self = options_.node;
  protocol.stream = options_.stream;
  protocol.run = run_;
  protocol.run_name = config_.name;
  protocol.advertise = options_.advertise;
  protocol.seeds = options_.seeds;
  protocol.known_addresses = options_.known_addresses;
  protocol.coding = config_.link_coding;
  protocol.keys = options_.keys;
  protocol.rule = options_.rule;
  protocol.admit = options_.admit;
  protocol.unix_start = options_.unix_start;
  if (config.has_own_models()) {
    neighbourhood_.emplace(form(), replica_, config.neighbour_rules);
    protocol.copies = &*neighbourhood_;
    protocol.links = links_of(config.neighbour_rules);
  }
  protocol_ =
      std::make_unique<gossip::Protocol>(std::move(protocol), static_cast<gossip::UpdateStore&>(*this),
                                         Prng::named(options_.chance_seed, "protocol"));
}

Node::~Node() = default;

Result<std::unique_ptr<Node>> Node::create(const RunConfig& config,
                                           std::shared_ptr<const models::DataSet> data, NodeOptions options) {
  auto trainer = ModelTrainer::create(config, std::move(data), options.shard, sampling_seed(config, options.node));
  if (!trainer) return trainer.error();
  return create(config, std::move(trainer).value(), std::move(options));
}

Result<std::unique_ptr<Node>> Node::create(const RunConfig& config, std::unique_ptr<Trainer> trainer,
                                           NodeOptions options) {
  if (config.mode != "broadcast" && !config.has_own_models())
    return Error{Errc::usage,
                 str("exchange.mode = \"", config.mode,
                     "\" is of the simulator alone; a peer runs \"broadcast\", \"average\" or \"codistill\"")};
  if (config.has_own_models() && trainer->own_model() == nullptr)
    return Error{Errc::usage, str("exchange.mode = \"", config.mode, "\" is for built-in models on a processor ",
                                  "(--device cpu) so far; set exchange.mode = \"broadcast\"")};
  const models::StartWeights* const start = options.start.get();
  if (start != nullptr && start->weights.size() != trainer->layout().params())
    return Error{Errc::usage, "the weights to start from are of another model"};
  const RunId run = run_id(config, trainer->layout(), start);
  return std::unique_ptr<Node>(new Node(config, std::move(options), std::move(trainer), run));
}

Result<void> Node::restore(BytesView bytes) {
  auto checkpoint = decode_checkpoint(form(), bytes);
  if (!checkpoint) return checkpoint.error();
  if (auto restored = replica_.restore(std::move(checkpoint->replica)); !restored) return restored;
  if (checkpoint->local.node != options_.node) return {};
  return trainer_->restore(checkpoint->local.residual, checkpoint->local.optimizer);
}

Result<std::string> Node::open_disk() {
  if (options_.disk == nullptr || neighbourhood_) return std::string();
  const auto damaged = log_.open(*options_.disk, run_);
  if (!damaged) return damaged.error();
  snapshots_.open(*options_.disk);
  return *damaged == 0
             ? ""
             : str(*damaged, " bytes of the log are damaged and left out; the other peers have them");
}

// ---- inputs ----

void Node::start(TimePoint now, NodeOutbox& out) {
  now_ = now;
  replay_log();
  if (!trainer_->evaluates()) final_evaluation_done_ = true;
  next_evaluation_ = options_.evaluation_every > Duration{0} && trainer_->evaluates() ? now : never;
  if (options_.checkpoint_every > Duration{0}) next_checkpoint_ = now + options_.checkpoint_every;
  protocol_->start(now, protocol_out_);
  advance(now, out);
}

void Node::on_link_up(const gossip::LinkUp& up, TimePoint now, NodeOutbox& out) {
  now_ = now;
  protocol_->on_link_up(up, now, protocol_out_);
  advance(now, out);
}

void Node::on_frame(gossip::LinkId link, BytesView frame, TimePoint now, NodeOutbox& out) {
  now_ = now;
  protocol_->on_frame(link, frame, now, protocol_out_);
  advance(now, out);
}

void Node::on_link_down(gossip::LinkId link, const std::string& reason, TimePoint now, NodeOutbox& out) {
  now_ = now;
  protocol_->on_link_down(link, reason, now, protocol_out_);
  advance(now, out);
}

void Node::on_dial_failed(const std::string& address, const std::string& reason, TimePoint now,
                          NodeOutbox& out) {
  now_ = now;
  protocol_->on_dial_failed(address, reason, now, protocol_out_);
  advance(now, out);
}

void Node::on_backlog(gossip::LinkId link, bool full, TimePoint now, NodeOutbox& out) {
  now_ = now;
  protocol_->on_backlog(link, full, now, protocol_out_);
  advance(now, out);
}

void Node::on_time(TimePoint now, NodeOutbox& out) {
  now_ = now;
  for (const NodeId& peer : live_.expire(now)) {
    in_flight_.gone(peer);
    staleness_.gone(peer);
  }
  if (protocol_->next_deadline() <= now) protocol_->on_time(now, protocol_out_);
  if (has_time_to_apply()) replica_.apply_some(applied_at_a_time);
  advance(now, out);
}

void Node::set_rule(gossip::AdmissionRule rule, TimePoint now, NodeOutbox& out) {
  now_ = now;
  protocol_->set_rule(std::move(rule), now, protocol_out_);
  advance(now, out);
}

void Node::set_addresses(std::vector<std::string> addresses, TimePoint now, NodeOutbox& out) {
  now_ = now;
  protocol_->set_addresses(std::move(addresses), now, protocol_out_);
  advance(now, out);
}

void Node::ask_to_be_dialled(TimePoint now, NodeOutbox& out) {
  now_ = now;
  protocol_->ask_to_be_dialled(now, protocol_out_);
  advance(now, out);
}

Result<void> Node::revoke(const gossip::Revocation& revocation, TimePoint now, NodeOutbox& out) {
  now_ = now;
  const Result<void> done = protocol_->revoke(revocation, now, protocol_out_);
  advance(now, out);
  return done;
}

void Node::stop(TimePoint now, NodeOutbox& out) {
  now_ = now;
  stopping_ = true;
  advance(now, out);
}

void Node::finish(TimePoint now, NodeOutbox& out) {
  now_ = now;
  options_.until_samples = 0;
  advance(now, out);
}

void Node::checkpoint_soon() {
  if (options_.checkpoint_every > Duration{0}) next_checkpoint_ = TimePoint{};
}

std::unique_ptr<Trainer> Node::release_trainer() {
  trainer_->follow(replica_);
  trainer_->set_parallel(nullptr);
  return std::move(trainer_);
}

// While a step is computed with weights that are kept elsewhere.
bool Node::has_time_to_apply() const {
  return computing_ && trainer_->keeps_weights() && !replica_.nothing_pending();
}

TimePoint Node::next_deadline() const {
  if (phase_ == Phase::ended) return never;
  if (has_time_to_apply()) return now_;
  TimePoint at = protocol_->next_deadline();
  if (phase_ == Phase::finishing) at = std::min(at, finishing_.deadline());
  if (!computing_) {
    at = std::min(at, next_checkpoint_);
    if (phase_ == Phase::training && !options_.observe)
      at = std::min({at, waits_since_ ? std::min(live_.next_expiry(), gives_up_waiting()) : next_step_,
                     next_evaluation_});
  }
  return at;
}

// ---- what the state asks for ----

void Node::advance(TimePoint now, NodeOutbox& out) {
  if (phase_ != Phase::ended) {
    change_phase(now, out);
    if (phase_ != Phase::ended && !computing_ && next_checkpoint_ <= now) {
      Bytes checkpoint = make_checkpoint();
      const double seconds = static_cast<double>(checkpoint.size()) / limits::checkpoint_bytes_per_second;
      next_checkpoint_ = now + std::max(options_.checkpoint_every, from_seconds(seconds));
      out.push_back(SaveCheckpoint{std::move(checkpoint)});
    }
    maybe_compute(now, out);
  }
  for (gossip::Effect& effect : protocol_out_)
    std::visit([&out](auto& e) { out.push_back(std::move(e)); }, effect);
  protocol_out_.clear();
  tell_of_log(now, out);
  for (const gossip::UpdateHeader& header : applied_) out.push_back(Applied{header});
  applied_.clear();
  // Ended: the links' goodbyes above go out first.
  if (phase_ == Phase::ended && finished_status_) {
    out.push_back(Finished{*finished_status_});
    finished_status_.reset();
  }
}

// What the log could not carry: a peer that was away will need a snapshot.
void Node::tell_of_log(TimePoint now, NodeOutbox& out) {
  const std::uint64_t dropped = log_.dropped_unacknowledged();
  if (dropped == dropped_told_ || now < tell_dropped_) return;
  out.push_back(
      gossip::Note{gossip::Note::Level::warning,
                   str("the log is full: ", dropped - dropped_told_,
                       " updates that not all members have acknowledged are no longer kept; a peer that "
                       "missed them takes over the weights instead (network.log_mib may be raised)")});
  dropped_told_ = dropped;
  tell_dropped_ = now + log_told_every;
}

// Once: who sees it in a log knows where to look for more.
void Node::tell_of_brake(NodeOutbox& out) {
  if (brake_told_ || staleness_.brake() > 0.9 || !trainer_->computes_at_shared_weights()) return;
  brake_told_ = true;
  out.push_back(gossip::Note{
      gossip::Note::Level::warning,
      str("updates of others are ", fixed(staleness_.mean(), 1), " of our steps old when they arrive, so the learning ",
          "rate is lowered to ", fixed(staleness_.brake() * 100, 0), " %, and further should that grow; larger steps ",
          "(optimizer.batch) or fewer (exchange.period_ms) would not need it")});
}

std::string Node::complaint(int& status) const {
  if (std::string text = protocol_->divergence(); !text.empty()) {
    status = 4;
    return text;
  }
  if (replica_.is_revoked({options_.stream, own_seq_ + 1})) {
    status = 3;
    return "the run's owner has put this peer out and taken its updates back; ask the owner why";
  }
  if (std::string text = protocol_->refused_by_run(); !text.empty()) {
    status = 3;
    return text;
  }
  return {};
}

void Node::change_phase(TimePoint now, NodeOutbox& out) {
  int status = 0;
  if (const std::string text = complaint(status); !text.empty()) {
    out.push_back(gossip::Note{gossip::Note::Level::error, text});
    return end(status, now, out);
  }
  if (stopping_ && !computing_) return end(0, now, out);
  if (phase_ == Phase::catching_up && protocol_->ready_to_train()) {
    phase_ = Phase::training;
    next_step_ = now;
  }
  if (phase_ == Phase::training && !computing_ && samples() >= samples_wanted()) {
    samples_at_end_ = samples();
    phase_ = Phase::finishing;
    protocol_->set_finished(true, now, protocol_out_);
  }
  if (phase_ == Phase::finishing) await_convergence(now, out);
  if (phase_ == Phase::done && final_evaluation_done_ && options_.until_samples) end(0, now, out);
}

void Node::await_convergence(TimePoint now, NodeOutbox& out) {
  const std::vector<gossip::PeerInfo> peers = protocol_->peers();
  const bool handed_over =
      neighbourhood_ || std::any_of(peers.begin(), peers.end(),
                                    [](const auto& peer) { return peer.finished && peer.digest_equal; });
  const Finishing::Verdict verdict =
      finishing_.judge(now, {replica_.digest().updates, !peers.empty(), protocol_->converged(), handed_over,
                            protocol_->members_here() > 1});
  if (verdict == Finishing::Verdict::waits) return;
  if (verdict == Finishing::Verdict::given_up)
    out.push_back(gossip::Note{gossip::Note::Level::warning,
                               "some neighbours did not finish in time; ending without them"});
  phase_ = Phase::done;
}

void Node::end(int status, TimePoint now, NodeOutbox& out) {
  RUMOR_CHECK(phase_ != Phase::ended);
  phase_ = Phase::ended;
  if (options_.checkpoint_every > Duration{0} && !computing_)
    out.push_back(SaveCheckpoint{make_checkpoint()});
  protocol_->leave(now, protocol_out_);
  finished_status_ = status;
}

std::uint64_t Node::samples_wanted() const {
  return options_.until_samples.value_or(config_.samples);
}

std::uint64_t Node::samples() const {
  if (!neighbourhood_) return replica_.samples();
  if (samples_at_end_) return *samples_at_end_;  // with the last links goes what one knew of others
  return static_cast<std::uint64_t>(neighbourhood_->mean_samples() * static_cast<double>(protocol_->members()));
}

double Node::progress() const {
  return std::min(1.0, static_cast<double>(samples()) / static_cast<double>(config_.samples));
}

// A peer that moves a model of its own does so at the run file's rate, whoever else trains.
double Node::rate_now() const {
  if (neighbourhood_) return config_.rate * config_.schedule.factor(progress());
  return config_.rate_for(live_count(), progress()) * staleness_.rate_factor();
}

std::size_t Node::live_count() const {
  if (neighbourhood_) return 1 + neighbourhood_->size();
  // Right after a start nobody has been heard yet; neighbours then tell how many to share the rate with.
  return 1 +
         std::max(live_.count(), phase_ == Phase::training && own_seq_ == 0 ? protocol_->peers().size() : 0);
}

void Node::check_invariants() const {
  replica_.have().check_invariants();
  protocol_->check_invariants();
  if (neighbourhood_) neighbourhood_->check_invariants();
  RUMOR_CHECK(replica_.verify());
}

}  // namespace rumor
