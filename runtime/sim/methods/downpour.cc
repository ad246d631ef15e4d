// Downpour SGD: an asynchronous parameter server. Every peer is a worker; the first of them are servers besides.
#include <algorithm>
#include <variant>

#include "runtime/base/text.h"
#include "runtime/sim/methods/absences.h"
#include "runtime/sim/methods/method_record.h"
#include "runtime/sim/methods/methods.h"
#include "runtime/sim/methods/server_shard.h"
#include "runtime/sim/world/event_queue.h"
#include "runtime/sim/methods/transfers.h"

namespace rumor::sim {

namespace {

constexpr std::size_t request_bytes = 16;

class Downpour {
 public:
  explicit Downpour(const MethodSetting& in)
      : config_(in.config),
        learners_(in.learners),
        absences_(in.absences),
        record_(in),
        transfers_(in.options.network, in.options.nodes, in.options.seed),
        model_(in.learners.start()),
        gradient_(model_.size()),
        workers_(in.learners.count()) {
    const std::size_t count = config_.server_rules.servers;
    for (std::size_t s = 0; s <= count; ++s) first_.push_back(model_.size() * s / count);
    for (std::size_t s = 0; s < count; ++s) {
      const std::span<float> part = part_of(model_, s);
      auto optimizer = models::make_optimizer(config_.optimizer, static_cast<std::uint32_t>(part.size()));
      shards_.emplace_back(part, std::move(optimizer).value());  // Learners has tried it
    }
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      workers_[i].weights = model_;
      workers_[i].versions.resize(count);
      start_anew(i);
      events_.push(now_, Begin{i});
    }
  }

  Result<SimResult> run() {
    const auto evaluate = [this] { return learners_.evaluate(model_); };
    while (!events_.empty()) {
      auto on = record_.watch(samples_, now_, evaluate);
      if (!on) return on.error();
      if (!*on) break;
      auto [at, event] = events_.pop();
      now_ = at;
      std::visit([this](auto& e) { handle(e); }, event);
    }
    std::vector<std::span<const float>> copies;
    for (const Worker& worker : workers_) copies.push_back(worker.weights);
    auto result = record_.conclude(samples_, now_, evaluate(), copies);
    if (!result) return result.error();
    result->guarantee = str("one model, at the servers; peers have copies of it as they fetched them. A push is ",
                            fixed(static_cast<double>(staleness_) / std::max(1.0, static_cast<double>(applied_)), 1),
                            " pushes behind in the mean, ", staleness_max_, " at most");
    return result;
  }

 private:
  struct Worker {
    std::vector<float> weights, gathered;  // its copy; the sum of gradients not yet pushed
    std::vector<std::uint64_t> versions;   // of the shards in its copy
    std::unique_ptr<models::Optimizer> optimizer;  // for its steps on its copy
    std::uint64_t steps = 0, unsent = 0;           // since it began anew; of these not yet pushed
    std::size_t missing = 0;                       // shards it has asked for
    TimePoint since{};                             // when it began to fetch or to compute
  };
  // A worker begins its next step.
  struct Begin {
    std::size_t worker;
  };
  // Its request for a shard has arrived there.
  struct Asked {
    std::size_t worker, shard;
  };
  struct Fetched {
    std::size_t worker, shard;
    std::vector<float> weights;
    std::uint64_t version;
  };
  struct Computed {
    std::size_t worker;
    Duration took;
  };
  struct Pushed {
    std::size_t shard;
    std::vector<float> gradient;
    std::uint64_t version;
    double rate;  // when it was sent
  };

  std::span<float> part_of(std::vector<float>& all, std::size_t shard) const {
    return std::span(all).subspan(first_[shard], first_[shard + 1] - first_[shard]);
  }
  std::size_t bytes_of(std::size_t shard) const { return 4 * (first_[shard + 1] - first_[shard]); }
  // Shard s is at peer s.
  TimePoint send(std::size_t from, std::size_t to, std::size_t bytes) {
    if (from == to) return now_;
    record_.sent(from, static_cast<double>(bytes));
    record_.received(to, static_cast<double>(bytes));
    return transfers_.deliver(from, to, bytes, now_);
  }
  double rate() const {
    const double progress = static_cast<double>(samples_) / static_cast<double>(config_.samples);
    return learners_.rate(std::min(progress, 1.0)) / static_cast<double>(workers_.size());
  }

  // All that a worker had is lost, or it never had any.
  void start_anew(std::size_t i) {
    Worker& worker = workers_[i];
    worker.gathered.assign(model_.size(), 0.0f);
    worker.optimizer = learners_.optimizer();
    worker.steps = worker.unsent = 0;
  }
  // Whether the worker went away since it began what it is at; then it begins anew when it is back.
  bool was_lost(std::size_t i) {
    if (!absences_.away_between(i, workers_[i].since, now_)) return false;
    start_anew(i);
    events_.push(absences_.back(i, now_), Begin{i});
    return true;
  }

  void handle(const Begin& e) {
    Worker& worker = workers_[e.worker];
    if (samples_ >= config_.samples) return push(e.worker);
    worker.since = now_;
    if (worker.steps % config_.server_rules.fetch_every != 0) return compute(e.worker);
    worker.missing = shards_.size();
    for (std::size_t s = 0; s < shards_.size(); ++s)
      events_.push(send(e.worker, s, request_bytes), Asked{e.worker, s});
  }

  void handle(const Asked& e) {
    if (absences_.away(e.shard, now_)) return events_.push(absences_.back(e.shard, now_), e);
    // A copy is made when it can be sent: made earlier, it would grow old in the queue.
    const TimePoint free = transfers_.uplink_free(e.shard);
    if (e.worker != e.shard && free > now_) return events_.push(free, e);
    const std::span<const float> weights = shards_[e.shard].weights();
    events_.push(send(e.shard, e.worker, bytes_of(e.shard)),
                 Fetched{e.worker, e.shard, {weights.begin(), weights.end()}, shards_[e.shard].version()});
  }

  void handle(const Fetched& e) {
    Worker& worker = workers_[e.worker];
    std::copy(e.weights.begin(), e.weights.end(), part_of(worker.weights, e.shard).begin());
    worker.versions[e.shard] = e.version;
    if (--worker.missing > 0 || was_lost(e.worker)) return;
    compute(e.worker);
  }

  void compute(std::size_t i) {
    workers_[i].since = now_;
    const Duration takes = learners_.step_time(i);
    events_.push(now_ + takes, Computed{i, takes});
  }

  void handle(const Computed& e) {
    if (was_lost(e.worker)) return;
    Worker& worker = workers_[e.worker];
    record_.computed(e.took);
    learners_.gradient(e.worker, worker.weights, gradient_);
    if (config_.optimizer.clip > 0) models::clip_by_norm(gradient_, config_.optimizer.clip);
    for (std::size_t p = 0; p < gradient_.size(); ++p) worker.gathered[p] += gradient_[p];
    worker.optimizer->step(gradient_, rate(), gradient_, worker.weights);
    for (std::size_t p = 0; p < gradient_.size(); ++p) worker.weights[p] += gradient_[p];
    ++worker.steps;
    if (++worker.unsent == config_.server_rules.push_every) push(e.worker);
    events_.push(now_, Begin{e.worker});
  }

  void push(std::size_t i) {
    Worker& worker = workers_[i];
    if (worker.unsent == 0) return;
    for (std::size_t s = 0; s < shards_.size(); ++s) {
      const std::span<const float> part = part_of(worker.gathered, s);
      events_.push(send(i, s, bytes_of(s)), Pushed{s, {part.begin(), part.end()}, worker.versions[s], rate()});
    }
    samples_ += worker.unsent * config_.batch;
    worker.unsent = 0;
    std::fill(worker.gathered.begin(), worker.gathered.end(), 0.0f);
    record_.update_made();
  }

  void handle(const Pushed& e) {
    if (absences_.away(e.shard, now_)) return events_.push(absences_.back(e.shard, now_), e);
    const std::uint64_t staleness = shards_[e.shard].push(e.gradient, e.version, e.rate);
    staleness_ += staleness;
    staleness_max_ = std::max(staleness_max_, staleness);
    ++applied_;
  }

  const RunConfig& config_;
  Learners& learners_;
  const Absences& absences_;
  MethodRecord record_;
  Transfers transfers_;
  EventQueue<std::variant<Begin, Asked, Fetched, Computed, Pushed>> events_;
  std::vector<float> model_, gradient_;
  std::vector<std::size_t> first_;  // parameter of each shard, and the end of the last
  std::vector<ServerShard> shards_;
  std::vector<Worker> workers_;
  std::uint64_t samples_ = 0;  // pushed
  std::uint64_t applied_ = 0, staleness_ = 0, staleness_max_ = 0;  // of pushes to a shard: number, sum, most
  TimePoint now_{};
};

}  // namespace

Result<SimResult> run_downpour(const MethodSetting& in) {
  const std::size_t peers = in.options.nodes;
  if (in.config.server_rules.servers > peers)
    return Error{Errc::usage, str("exchange.servers = ", in.config.server_rules.servers, " of ", peers,
                                  " peers; each hosts one shard at most, so set it to ", peers, " or fewer")};
  if (!in.learners.optimizer()->has_rule())
    return Error{Errc::usage, str("a parameter server cuts the model anywhere, and optimizer.kind = \"",
                                  in.config.optimizer.kind, "\" needs whole matrices; use \"adam\"")};
  return Downpour(in).run();
}

}  // namespace rumor::sim
