#include "runtime/node/node.h"

#include <algorithm>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/replica/checkpoint.h"
#include "runtime/run/run_identity.h"
#include "runtime/training/model_trainer.h"

namespace rumor {

namespace {

// Entries that go onto the weights of the replica in one turn while nobody waits for them: about a millisecond.
constexpr std::uint64_t replica_entries_at_a_time = 1 << 16;

gossip::Options protocol_options(const NodeCore& core, gossip::AuditPort& audits) {
  gossip::Options protocol;
  protocol.self = core.options.node;
  protocol.stream = core.options.stream;
  protocol.run = core.run;
  protocol.run_name = core.config.name;
  protocol.observes = core.options.observe;
  const models::StartWeights* const start = core.options.start.get();
  protocol.parts = run_parts(core.config, core.trainer->layout(), start);
  if (start != nullptr) protocol.start = StartNote{core.config.grid_bits, start->hash}.encode();
  protocol.advertise = core.options.advertise;
  protocol.seeds = core.options.seeds;
  protocol.known_addresses = core.options.known_addresses;
  protocol.coding = core.config.link_coding;
  protocol.keys = core.options.keys;
  protocol.rule = core.options.rule;
  protocol.admit = core.options.admit;
  protocol.unix_start = core.options.unix_start;
  protocol.began = core.options.began;
  if (core.config.records) protocol.audits = &audits;
  core.exchange->configure(protocol);
  if (core.staged != nullptr) {
    protocol.stage = core.options.pipeline->self;
    protocol.stage_links = core.staged;
  }
  if (core.options.links) protocol.links = *core.options.links;
  return protocol;
}

}  // namespace

Node::Node(const RunConfig& config, NodeOptions options, std::unique_ptr<Trainer> trainer, RunId run)
    : core_{.config = config, .options = std::move(options), .run = run, .trainer = std::move(trainer)},
      incoming_(core_),
      outgoing_(core_, incoming_),
      audits_(core_, incoming_, outgoing_),
      phases_(core_, incoming_, outgoing_, audits_),
      staged_(core_) {
  core_.audits = &audits_;
  if (staged_.is_on()) core_.staged = &staged_;
  core_.exchange = Exchange::make(core_, incoming_);
  core_.protocol = std::make_unique<gossip::Protocol>(protocol_options(core_, audits_), incoming_,
                                                      Prng::named(core_.options.chance_seed, "protocol"));
  core_.options.start.reset();
}

// The protocol refers to the store and to the exchange.
Node::~Node() { core_.protocol.reset(); }

Result<std::unique_ptr<Node>> Node::create(const RunConfig& config,
                                           std::shared_ptr<const models::DataSet> data, NodeOptions options) {
  auto trainer = ModelTrainer::create(config, std::move(data), options.shard, sampling_seed(config, options.node));
  if (!trainer) return trainer.error();
  return create(config, std::move(trainer).value(), std::move(options));
}

Result<std::unique_ptr<Node>> Node::create(const RunConfig& config, std::unique_ptr<Trainer> trainer,
                                           NodeOptions options) {
  if (auto fits = Exchange::check(config, *trainer); !fits) return fits.error();
  if (config.takes_portable_steps_only() && !options.observe && !trainer->repeatable_data())
    return Error{Errc::usage, "audit.arithmetic = \"portable\": this run takes only steps that anybody can make again, "
                              "of a built-in model on a processor (--device cpu), without optimizer.hogwild, "
                              "adaptive_revision or a budget in bytes; this peer's are none. Change that, or follow "
                              "the run with `rumor follow`"};
  const models::StartWeights* const start = options.start.get();
  if (start != nullptr && start->weights.size() != trainer->layout().params())
    return Error{Errc::usage, "the weights to start from are of another model"};
  const RunId run = run_id(config, trainer->layout(), start);
  return std::unique_ptr<Node>(new Node(config, std::move(options), std::move(trainer), run));
}

Result<void> Node::restore(BytesView bytes) {
  auto checkpoint = decode_checkpoint(form(), bytes);
  if (!checkpoint) return checkpoint.error();
  if (auto restored = incoming_.replica().restore(std::move(checkpoint->replica)); !restored) return restored;
  incoming_.set_lacks_weights(false);
  if (checkpoint->local.node != core_.options.node) return {};
  // Residual and optimizer hold what followed from an update that is taken back: the trainer begins anew.
  if (checkpoint->local.point && incoming_.replica().is_revoked(*checkpoint->local.point)) return {};
  // It was made between two updates, so nobody could make the steps from there on again: the trainer begins anew.
  begins_anew_ = core_.config.takes_portable_steps_only() && !checkpoint->local.point && !core_.options.observe;
  if (begins_anew_) return {};
  outgoing_.restored(checkpoint->local.point);
  return core_.trainer->restore(checkpoint->local.residual, checkpoint->local.optimizer);
}

Result<void> Node::restore_contributions(BytesView table) {
  auto read = Contributions::decode(core_.run, table);
  if (!read) return read.error();
  incoming_.contributions() = std::move(read).value();
  return {};
}

Result<std::string> Node::open_disk() {
  if (core_.options.disk == nullptr) return std::string();
  const auto damaged = core_.exchange->open(*core_.options.disk);
  if (!damaged) return damaged.error();
  return *damaged == 0
             ? ""
             : str(*damaged, " bytes of the log are damaged and left out; the other peers have them");
}

// ---- turns ----

template <class Input>
void Node::take_turn(TimePoint now, NodeOutbox& out, const Input& input) {
  Turn turn{now, out};
  core_.turn = &turn;
  last_turn_ = now;
  incoming_.contributions().set_time(core_.unix_seconds(now));
  input(turn);
  advance_stage(turn);
  phases_.advance(turn);
  staged_.advance(turn, staged_.is_on() && phases_.wants_to_end());
  end_turn(turn);
  core_.turn = nullptr;
}

void Node::advance_stage(Turn& turn) {
  if (!staged_.is_on()) return;
  const bool ends = phases_.wants_to_end();
  staged_.advance(turn, ends);
  if (core_.phase == Phase::ended || !staged_.give_up(ends, turn.now)) return;
  StepResult nothing;
  nothing.held = true;
  audits_.trained(core_.computed(turn.now));
  outgoing_.step_done(std::move(nothing), turn);
}

void Node::end_turn(Turn& turn) {
  for (gossip::Effect& effect : turn.network)
    std::visit([&turn](auto& e) { turn.out.push_back(std::move(e)); }, effect);
  incoming_.warn_of_dropped(turn);
  for (const gossip::UpdateHeader& header : turn.applied) turn.out.push_back(Applied{header});
  // Last, so that the goodbyes to the links go out before it.
  if (const std::optional<int> status = phases_.take_finished_status()) turn.out.push_back(Finished{*status});
}

void Node::start(TimePoint now, NodeOutbox& out) {
  take_turn(now, out, [&](Turn& turn) {
    incoming_.replay();
    phases_.start(now);
    staged_.start(now);
    if (std::string idle = audits_.idle_reason(); !idle.empty())
      turn.note(gossip::Note::Level::warning, std::move(idle));
    if (begins_anew_)
      turn.note(gossip::Note::Level::warning,
                "the checkpoint was made between two updates, and this run takes only steps that anybody can make "
                "again (audit.arithmetic): what this peer had learned and not sent is left out");
    core_.protocol->start(now, turn.network);
  });
}

void Node::on_link_up(const gossip::LinkUp& up, TimePoint now, NodeOutbox& out) {
  take_turn(now, out, [&](Turn& turn) { core_.protocol->on_link_up(up, now, turn.network); });
}

void Node::on_frame(gossip::LinkId link, BytesView frame, TimePoint now, NodeOutbox& out) {
  take_turn(now, out, [&](Turn& turn) { core_.protocol->on_frame(link, frame, now, turn.network); });
}

void Node::on_link_down(gossip::LinkId link, const std::string& reason, TimePoint now, NodeOutbox& out) {
  take_turn(now, out, [&](Turn& turn) { core_.protocol->on_link_down(link, reason, now, turn.network); });
}

void Node::on_dial_failed(const std::string& address, const std::string& reason, TimePoint now, NodeOutbox& out) {
  take_turn(now, out, [&](Turn& turn) { core_.protocol->on_dial_failed(address, reason, now, turn.network); });
}

void Node::on_backlog(gossip::LinkId link, bool full, TimePoint now, NodeOutbox& out) {
  take_turn(now, out, [&](Turn& turn) { core_.protocol->on_backlog(link, full, now, turn.network); });
}

void Node::on_time(TimePoint now, NodeOutbox& out) {
  take_turn(now, out, [&](Turn& turn) {
    core_.exchange->expire(now);
    if (core_.protocol->next_deadline() <= now) core_.protocol->on_time(now, turn.network);
    if (has_time_to_apply()) incoming_.replica().apply_some(replica_entries_at_a_time);
  });
}

void Node::set_rule(gossip::AdmissionRule rule, TimePoint now, NodeOutbox& out) {
  take_turn(now, out, [&](Turn& turn) { core_.protocol->set_rule(std::move(rule), now, turn.network); });
}

void Node::set_addresses(std::vector<std::string> addresses, TimePoint now, NodeOutbox& out) {
  take_turn(now, out, [&](Turn& turn) { core_.protocol->set_addresses(std::move(addresses), now, turn.network); });
}

void Node::ask_to_be_dialled(TimePoint now, NodeOutbox& out) {
  take_turn(now, out, [&](Turn& turn) { core_.protocol->ask_to_be_dialled(now, turn.network); });
}

Result<void> Node::revoke(const gossip::Revocation& revocation, TimePoint now, NodeOutbox& out) {
  Result<void> done;
  take_turn(now, out, [&](Turn& turn) { done = core_.protocol->revoke(revocation, now, turn.network); });
  return done;
}

void Node::on_step_done(StepResult result, TimePoint now, NodeOutbox& out) {
  take_turn(now, out, [&](Turn& turn) {
    audits_.trained(core_.computed(now));
    if (core_.phase == Phase::ended) return;
    if (!outgoing_.step_done(std::move(result), turn)) phases_.end(Phases::training_failed, turn);
  });
}

void Node::on_made(Result<gossip::Made> made, TimePoint now, NodeOutbox& out) {
  take_turn(now, out, [&](Turn&) { staged_.made(std::move(made), now); });
}

void Node::on_evaluated(const models::Evaluation& evaluation, TimePoint now, NodeOutbox& out) {
  take_turn(now, out, [&](Turn& turn) {
    core_.computed(now);
    phases_.evaluated(evaluation, turn);
  });
}

void Node::on_audited(TimePoint now, NodeOutbox& out) {
  take_turn(now, out, [&](Turn&) { audits_.slice_done(core_.computed(now)); });
}

void Node::finish(TimePoint now, NodeOutbox& out) {
  core_.options.until_samples = 0;
  take_turn(now, out, [](Turn&) {});
}

void Node::stop(TimePoint now, NodeOutbox& out) {
  phases_.stop();
  take_turn(now, out, [](Turn&) {});
}

TimePoint Node::next_deadline() const {
  if (core_.phase == Phase::ended) return never;
  if (has_time_to_apply()) return last_turn_;
  return std::min({core_.protocol->next_deadline(), phases_.deadline(), staged_.deadline()});
}

// A step is computed with weights that the trainer keeps elsewhere, so the replica may work at its own meanwhile.
bool Node::has_time_to_apply() const {
  return core_.computing && core_.trainer->keeps_weights() && !replica().nothing_pending();
}

std::unique_ptr<Trainer> Node::release_trainer() {
  core_.trainer->follow(incoming_.replica());
  core_.trainer->outlive(incoming_.replica());
  core_.trainer->set_parallel(nullptr);
  return std::move(core_.trainer);
}

void Node::check_invariants() const {
  incoming_.have().check_invariants();
  core_.protocol->check_invariants();
  core_.exchange->check_invariants();
  staged_.check_invariants();
  RUMOR_CHECK(incoming_.verify());
}

}  // namespace rumor
