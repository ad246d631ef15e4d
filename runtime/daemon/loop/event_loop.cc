#include "runtime/daemon/loop/event_loop.h"

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "gossip/asio/address.h"
#include "gossip/asio/transport.h"
#include "runtime/base/text.h"
#include "runtime/daemon/admission/peer_admission.h"
#include "runtime/daemon/console/console.h"
#include "runtime/daemon/console/stop_signals.h"
#include "runtime/daemon/loop/auto_stage.h"
#include "runtime/daemon/loop/built_in_training.h"
#include "runtime/daemon/loop/checkpoint_saver.h"
#include "runtime/daemon/loop/follower.h"
#include "runtime/daemon/loop/follower_trainer.h"
#include "runtime/daemon/loop/pauses.h"
#include "runtime/daemon/loop/seed_check.h"
#include "runtime/daemon/loop/several_stages.h"
#include "runtime/daemon/loop/stage_training.h"
#include "runtime/daemon/loop/system_random.h"
#include "runtime/daemon/loop/take_up.h"
#include "runtime/daemon/loop/worker.h"
#include "runtime/daemon/loop/worker_steps.h"
#include "runtime/daemon/ports/reachability.h"
#include "runtime/daemon/stages/stage_mover.h"
#include "runtime/daemon/state/peer_files.h"
#include "runtime/daemon/state/recent_updates.h"
#include "runtime/daemon/status/figure_text.h"
#include "runtime/daemon/status/peer_view.h"
#include "runtime/node/node.h"
#include "runtime/replica/capture.h"
#include "runtime/run/run_identity.h"
#include "runtime/threads/thread_pool.h"

namespace rumor::daemon {

namespace {

class EventLoop final : net::TransportEvents, StepEvents {
 public:
  // `runner`: of the program around us; null: the process is ours, and a thread of ours does the steps.
  EventLoop(const PeerOptions& options, StepRunner* runner, net::Identity identity, PeerFiles files,
            PeerAdmission admission)
      : options_(options),
        takes_signals_(runner == nullptr && !options.companion),
        steps_(runner),
        files_(std::move(files)),
        admission_(std::move(admission)),
        pauses_(std::chrono::duration_cast<Pauses::Span>(
            std::chrono::duration<double, std::milli>(options.config.period_ms))),
        identity_(identity),
        transport_(io_, std::move(identity), *this),
        timer_(io_),
        report_timer_(io_),
        view_(options.config.period_ms, runner == nullptr && !options.companion),
        compute_(io_),
        storage_(io_),
        saver_(files_, storage_, console_) {
    console_.listen([this](gossip::Note::Level level, const std::string& text) { view_.said(level, text); });
    if (options.companion) console_.begin_lines_with(options.companion->name + ": ");
    if (options.muted) console_.mute([this](gossip::Note::Level, const std::string& text) { view_.progressed(text); });
    if (runner != nullptr) view_.listen([runner](const std::string& line) { runner->event(line); });
  }

  Result<void> open(Training training);
  PeerEnd run();

 private:
  // StepEvents
  void on_step_done(StepResult result, Time begin, Time end) override {
    computed(begin, end);
    node_->on_step_done(std::move(result), now(), out_);
    carry_out();
  }
  void on_checkpoint_asked() override { node_->checkpoint_soon(); }
  void on_finish_asked() override {
    node_->finish(now(), out_);
    carry_out();
  }
  void on_stop_asked() override {
    node_->stop(now(), out_);
    carry_out();
  }
  // net::TransportEvents
  void on_link_up(const gossip::LinkUp& up) override {
    look_at_admission();  // a key put on the list a moment ago counts
    node_->on_link_up(up, now(), out_);
    carry_out();
  }
  void on_frame(gossip::LinkId link, BytesView frame) override {
    node_->on_frame(link, frame, now(), out_);
    carry_out();
  }
  void on_link_down(gossip::LinkId link, const std::string& reason) override {
    node_->on_link_down(link, reason, now(), out_);
    carry_out();
    if (leaving_ && transport_.links() == 0) close_network();
  }
  void on_dial_failed(const std::string& address, const std::string& reason) override {
    node_->on_dial_failed(address, reason, now(), out_);
    carry_out();
  }
  void on_backlog(gossip::LinkId link, bool full) override {
    node_->on_backlog(link, full, now(), out_);
    carry_out();
  }

  TimePoint now() const {
    return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - started_));
  }
  Result<void> make_node(Training& training, const std::string& bound);
  void computed(Time begin, Time end);
  void carry_out();
  void arm();
  void ask_router();
  void ask_neighbours();
  void report();
  void follow();
  void look_at_admission();
  void on_signal(int signal);
  std::string asked_to_end() const;
  void close_network() {
    report_timer_.cancel();
    transport_.stop();
  }
  void stop_politely(const std::string& why);

  void effect(gossip::Send& e) { transport_.send(e.link, std::move(e.frame), e.lane); }
  void effect(gossip::Dial& e) { transport_.dial(e.address); }
  void effect(gossip::Close& e) { transport_.close(e.link, e.reason); }
  void effect(gossip::Note& e) {
    console_.note(e);
    if (e.level != gossip::Note::Level::error) return;
    trouble_ = e.text;
    steps_->complain(e.text);
  }
  // The first step's loop may ask at once how far the run is, for its learning rate: it may have joined late.
  void effect(StartStep& e) {
    if (!std::exchange(has_begun_, true)) steps_->publish(node_->status(now()));
    if (e.collected) stage_->begin_step(*e.collected);
    steps_->offer(std::move(e.plan));
  }
  void effect(gossip::Work& e);
  void effect(StartEvaluation& e);
  void effect(StartAudit& e);
  void effect(SaveCheckpoint& e) { saver_.save(std::move(e), node_->protocol().known_addresses()); }
  void effect(Applied&) {}
  void effect(Published& e) {
    files_.capture(*e.update.payload);
    recent_.add(e.update.payload);
  }
  void effect(Finished& e);

  const PeerOptions& options_;
  const bool takes_signals_;
  StepRunner* steps_;  // ours, or that of the program around us
  std::optional<WorkerSteps> own_steps_;
  PeerFiles files_;
  PeerAdmission admission_;
  Pauses pauses_;
  net::Identity identity_;
  asio::io_context io_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  net::Transport transport_;
  asio::steady_timer timer_, report_timer_;
  std::optional<StopSignals> signals_;
  Console console_;
  std::optional<ThreadPool> pool_;
  Reachability reach_;
  std::unique_ptr<Node> node_;
  PeerView view_;
  NodeOutbox out_;
  bool carrying_out_ = false;
  RecentUpdates recent_;
  std::string trouble_;          // the last error that was said
  bool has_begun_ = false;  // the first step was offered
  bool signalled_ = false;
  bool leaving_ = false;  // goodbyes are under way
  std::optional<int> exit_status_;
  std::unique_ptr<Follower> follower_;  // null: the peer trains
  std::optional<StageDuty> stage_;
  std::optional<StageMover> mover_;  // absent: it chooses no stage
  Worker compute_, storage_;  // last: joined before the destruction of members that their jobs use
  CheckpointSaver saver_;
};

Result<void> EventLoop::open(Training training) {
  const std::string& listen = options_.config.listen;
  const auto address = net::parse_address(listen);
  if (!address) return address.error();
  if (!net::is_loopback(address->host) && admission_.rule().everyone)
    return Error{Errc::usage,
                 str("will not listen on ", listen,
                     ": anybody who reaches it could join. Say who may: --allow FILE (`rumor key allow`), or "
                     "run.owner in the run file for join tokens (`rumor key --help`)")};
  const auto seeds = check_seeds(options_.config.seeds, files_.known_addresses().size(), look_up);
  if (!seeds) return seeds.error();
  const auto bytes_of = [](double mbit) { return static_cast<std::uint64_t>(mbit * 125'000); };
  transport_.limit_rates(bytes_of(options_.config.up_mbit), bytes_of(options_.config.down_mbit));
  const auto bound = transport_.listen(listen);
  if (!bound) return bound.error();
  if (auto viewed = view_.open(options_.config); !viewed) return viewed;
  stage_ = training.stage;
  if (auto made = make_node(training, *bound); !made) return made;
  if (options_.following) {
    auto follower = Follower::open(*options_.following, {node_->run(), training.model_json, training.tokenizer_json,
                                                         training.adapter_json}, storage_, console_);
    if (!follower) return follower.error();
    follower_ = std::move(follower).value();
  }
  transport_.mark_backlogs(node_->protocol().backlog_marks());
  if (auto kept = keep_descriptions(files_, training); !kept) return kept;
  if (options_.search)
    mover_.emplace(io_, options_.search->why, [this] { return now(); }, [this](const std::string& why) {
      if (!exit_status_ && !signalled_) stop_politely(why);
    });
  if (const std::string warning = options_.config.warning(); !warning.empty())
    console_.note({gossip::Note::Level::warning, warning});
  for (const std::string& warning : seeds->warnings) console_.note({gossip::Note::Level::warning, warning});
  console_.started(node_->status(now()), training.device, options_.following ? "" : *bound, view_.address(),
                   files_.directory());
  if (options_.companion) options_.companion->listens(*bound);
  return {};
}

Result<void> EventLoop::make_node(Training& training, const std::string& bound) {
  NodeOptions node;
  node.node = identity_.id();
  node.stream = gossip::stream_of(node.node, system_random<std::uint64_t>());
  node.keys = std::make_shared<net::IdentityKeys>(identity_);
  node.chance_seed = system_random<std::uint64_t>();
  node.audit_secret = system_random<Hash256>();
  node.seeds = options_.config.seeds;
  reach_.open(options_.config, bound);
  node.advertise = reach_.addresses();
  node.known_addresses = files_.known_addresses();
  node.rule = admission_.rule();
  node.admit = admission_.admit(node.node);
  node.unix_start = unix_now();
  const auto unix_time = std::chrono::system_clock::now().time_since_epoch();
  node.began = static_cast<std::uint64_t>(unix_time / std::chrono::milliseconds(1));
  node.observe = admission_.observe();
  node.shard = options_.shard;
  if (options_.following) Follower::adapt(*options_.following, node);
  if (training.start) files_.note_start(StartNote{options_.config.grid_bits, training.start->hash}.encode());
  files_.note_parts(run_parts(options_.config, training.trainer->layout(), training.start.get()));
  node.start = std::move(training.start);
  node.lacks_weights = training.lacks_weights;
  node.until_samples = options_.until_samples;
  node.report_applied = true;
  node.disk = files_.disk();
  node.pipeline = options_.pipeline;
  if (options_.state) node.checkpoint_every = options_.checkpoint_every;
  auto made = Node::create(options_.config, std::move(training.trainer), std::move(node));
  if (!made) return made.error();
  node_ = std::move(made).value();
  recent_.open(encode_capture_head(node_->form()));
  Trainer& trainer = node_->trainer();
  if (steps_ == nullptr) steps_ = &own_steps_.emplace(compute_, trainer);
  const unsigned enough = ThreadPool::width_for(trainer.layout().params(), trainer.multiply_adds());
  pool_.emplace(std::max(options_.threads != 0 ? options_.threads : enough, options_.config.hogwild));
  trainer.set_parallel(&*pool_);
  const RunId member_of = options_.pipeline ? options_.pipeline->self.membership() : node_->form().run;
  if (std::string trouble = admission_.trouble(member_of); !trouble.empty())
    return Error{Errc::mismatch, std::move(trouble)};
  if (auto taken = take_up_state(*node_, files_, console_); !taken) return taken;
  return files_.open_capture(options_.capture, node_->form());
}

PeerEnd EventLoop::run() {
  if (takes_signals_) signals_.emplace(io_, [this](int signal) { on_signal(signal); });
  steps_->publish(node_->status(now()));
  steps_->connect(*this, [this](StepRunner::Job job) { asio::post(io_, std::move(job)); });
  node_->start(now(), out_);
  carry_out();
  if (options_.search && options_.search->stopped()) signalled_ = true, stop_politely("stopping");
  ask_router();
  report();
  io_.run();
  NodeStatus status = node_->status(now());
  if (options_.search) status.stage.chosen = options_.search->why;
  steps_->publish(status);
  steps_->disconnect();
  console_.finished(status);
  PeerEnd end{exit_status_.value_or(0), status_json(status), trouble_, node_->release_trainer()};
  if (follower_) follower_->judge(end);
  if (mover_ && !signalled_ && end.exit_status == 0) end.move = mover_->choice();
  for (const gossip::KnownAddress& one : node_->protocol().known_addresses()) end.known.push_back(one.address);
  return end;
}

// Runs after signals are awaited, since a port opened by a router must be closed again.
void EventLoop::ask_router() {
  if (exit_status_) return;
  reach_.begin(io_, [this](gossip::Note::Level level, const std::string& text, bool moved) {
    if (exit_status_) return;
    console_.note({level, text});
    if (!moved) return;
    node_->set_addresses(reach_.addresses(), now(), out_);
    reach_.has_moved(now());
    carry_out();
  });
}

void EventLoop::ask_neighbours() {
  if (options_.following || node_->protocol().peers().empty() || !reach_.asks_now(now())) return;
  node_->ask_to_be_dialled(now(), out_);
  carry_out();
}

void EventLoop::carry_out() {
  if (carrying_out_) return;  // the outer call carries out the added effects
  carrying_out_ = true;
  while (!out_.empty()) {
    NodeOutbox batch;
    batch.swap(out_);
    for (NodeEffect& one : batch) std::visit([this](auto& e) { effect(e); }, one);
  }
  carrying_out_ = false;
  arm();
}

void EventLoop::arm() {
  const TimePoint deadline = node_->next_deadline();
  if (deadline == never) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(started_ + deadline.time_since_epoch());
  timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    node_->on_time(now(), out_);
    carry_out();
  });
}

// Notes a step or an evaluation. The trainer's waiting time in between is a pause.
void EventLoop::computed(Time begin, Time end) {
  view_.computed(std::chrono::duration<double>(end - begin).count());
  if (node_->training()) pauses_.ran(begin, end);
}

void EventLoop::effect(StartEvaluation& e) {
  if (follower_) follower_->evaluating(*node_, now());
  compute_.submit(timed([this, weights = e.weights, rows = e.rows_max] {
                    return node_->trainer().evaluate(weights, rows);
                  }),
                  [this](const Timed<models::Evaluation>& evaluation) {
                    computed(evaluation.begin, evaluation.end);
                    if (follower_) follower_->evaluated(evaluation.result.loss, now());
                    node_->on_evaluated(evaluation.result, now(), out_);
                    carry_out();
                  });
}

void EventLoop::effect(gossip::Work& e) {
  compute_.submit(timed([worker = stage_->worker, work = std::move(e), weights = node_->trainer().view().values] {
                    return worker->make(work, weights);
                  }),
                  [this](Timed<Result<gossip::Made>> made) {
                    view_.computed(std::chrono::duration<double>(made.end - made.begin).count());
                    node_->on_made(std::move(made.result), now(), out_);
                    carry_out();
                  });
}

void EventLoop::effect(StartAudit& e) {
  compute_.submit([audit = e.audit] { return audit->work(), 0; }, [this](int) {
    node_->on_audited(now(), out_);
    carry_out();
  });
}

void EventLoop::effect(Finished& e) {
  exit_status_ = e.status;
  timer_.cancel();
  report_timer_.cancel();
  if (signals_) signals_->stop();
  reach_.stop();
  if (mover_) mover_->stop();
  report();       // the last evaluation
  saver_.last();
  // Files first, then goodbyes (the transport gives each link two seconds), then the loop runs out of work.
  storage_.submit([] { return 0; },
                  [this](int) {
                    leaving_ = true;
                    view_.close(!mover_ || !mover_->choice());
                    if (transport_.links() == 0) return close_network();
                    report_timer_.expires_after(std::chrono::seconds(3));
                    report_timer_.async_wait([this](const asio::error_code&) { close_network(); });
                  });
}

void EventLoop::look_at_admission() {
  if (exit_status_) return;
  PeerAdmission::News news = admission_.look();
  for (const std::string& complaint : news.complaints) console_.warning(complaint);
  if (news.rule) {
    console_.line("the allowlist has changed");
    node_->set_rule(admission_.rule(), now(), out_);
  }
  for (const gossip::Revocation& revocation : news.revocations)
    if (auto taken = node_->revoke(revocation, now(), out_); !taken)
      console_.warning("a revocation was not followed: " + taken.error().text);
  carry_out();
  if (auto kept = admission_.keep(node_->protocol().own_admit()); !kept) console_.line(kept.error().text);
}

void EventLoop::follow() {
  follower_->look(*node_, now(), exit_status_.has_value());
  if (exit_status_ || !follower_->done()) return;
  node_->stop(now(), out_);
  carry_out();
}

void EventLoop::report() {
  look_at_admission();
  if (!exit_status_) ask_neighbours();
  if (follower_) follow();
  NodeStatus status = node_->status(now());
  status.storage_trouble = saver_.trouble();
  if (follower_) status.exports = follower_->status(now());
  if (mover_) mover_->look(*node_, status, !exit_status_ && !signalled_);
  status.port_mapping = reach_.text();
  const std::chrono::duration<double, std::milli> pause = pauses_.longest(std::chrono::steady_clock::now());
  status.pause_ms = pause.count();
  console_.log_trouble(status.log.trouble);
  view_.look(to_seconds(now().time_since_epoch()), status, recent_.capture());
  steps_->publish(status);
  if (!options_.quiet) console_.progress(status, to_seconds(now().time_since_epoch()));
  if (exit_status_) return;
  if (const std::string why = asked_to_end(); !why.empty() && !signalled_) {
    signalled_ = true;
    stop_politely(why);
  }
  report_timer_.expires_after(std::chrono::milliseconds(250));
  report_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) report();
  });
}

// Why the peer is to end, apart from signals; empty: it goes on.
std::string EventLoop::asked_to_end() const {
  if (options_.companion && options_.companion->stopped()) return "stopping with the other stages";
  if (!options_.until_seconds || to_seconds(now().time_since_epoch()) < *options_.until_seconds) return "";
  return str("ending after ", *options_.until_seconds, " s as asked");
}

void EventLoop::on_signal(int signal) {
  if (signalled_) std::_Exit(128 + signal);
  signalled_ = true;
  stop_politely("stopping: finishing the step, saving, saying goodbye (once more ends at once)");
}

void EventLoop::stop_politely(const std::string& why) {
  console_.line(why);
  node_->stop(now(), out_);
  carry_out();
}

// `make_training` makes the training of this peer; it is called once.
Result<PeerEnd> run(const PeerOptions& options, StepRunner* runner,
                    const std::function<Result<Training>(const NodeId&)>& make_training) {
  auto files = PeerFiles::open(options.state);
  if (!files) return files.error();
  if (options.search) files->add_known(options.search->known);
  auto identity = options.search ? Result<net::Identity>(options.search->identity) : files->identity();
  if (!identity) return identity.error();
  auto training = make_training(identity->id());
  if (!training) return training.error();
  auto admission = PeerAdmission::open(options.config, options.search ? options.search->home : files->directory());
  if (!admission) return admission.error();
  EventLoop loop(options, runner, std::move(identity).value(), std::move(files).value(), std::move(admission).value());
  if (auto opened = loop.open(std::move(training).value()); !opened) return opened.error();
  return loop.run();
}

}  // namespace

Result<PeerEnd> run_peer(const PeerOptions& options) {
  // A limit on file sizes is an error of the write, as a full disk is, and not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  if (options.stage_auto) return run_auto_stage(options);
  if (!options.stages.empty()) return run_several_stages(options);
  if (!options.stage) return run(options, nullptr, [&](const NodeId& node) { return own_training(options, node); });
  const auto staged = serve_stage(options);
  if (!staged) return staged.error();
  return run(*staged, nullptr, [&](const NodeId& node) { return stage_training(*staged, node); });
}

Result<PeerEnd> run_embedded_peer(const PeerOptions& options, Training training, StepRunner& runner) {
  return run(options, &runner, [&](const NodeId&) { return std::move(training); });
}

}  // namespace rumor::daemon
