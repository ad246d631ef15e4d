#include "models/optimizers/hogwild.h"

#include <algorithm>
#include <array>
#include <bit>

#include "models/kernels/tasks.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"

namespace rumor::models {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
using Pair = std::array<float, 2>;
static_assert(sizeof(Pair) == sizeof(std::uint64_t) && std::atomic<std::uint64_t>::is_always_lock_free);

// A moment of the optimizer, which other workers step as well: loaded here, stored by store().
class SharedMoment {
 public:
  explicit SharedMoment(float& at) : at_(at), value(at_.load(relaxed)) {}
  void store() { at_.store(value, relaxed); }

 private:
  std::atomic_ref<float> at_;

 public:
  float value;
};

}  // namespace

Hogwild::Hogwild(std::vector<std::unique_ptr<Model>> models, std::shared_ptr<const DataSet> data, double clip)
    : data_(std::move(data)), clip_(clip) {
  RUMOR_CHECK(!models.empty());
  params_ = models.front()->layout().params();
  for (std::unique_ptr<Model>& model : models) {
    RUMOR_CHECK(model->layout().params() == params_);
    workers_.emplace_back().model = std::move(model);
  }
}

double Hogwild::round(std::span<const float> weights, std::span<const std::uint32_t> rows, std::uint32_t size,
                      std::span<const StepRule> rules, std::span<float> change) {
  RUMOR_CHECK(weights.size() == params_ && change.size() == params_);
  RUMOR_CHECK(!rules.empty() && !rows.empty() && rows.size() % rules.size() == 0);
  const long pairs = static_cast<long>((params_ + 1) / 2), grain = 4096;
  if (!change_) change_ = std::make_unique<std::atomic<std::uint64_t>[]>(static_cast<std::size_t>(pairs));
  each_range(parallel_, pairs, grain, [&](Range part) {
    for (long pair = part.begin; pair < part.end; ++pair) change_[pair].store(0, relaxed);
  });
  Round all{.weights = weights, .rows = rows, .size = size, .rules = rules};
  const std::size_t at_once = parallel_ != nullptr ? parallel_->width() : 1;
  for (Worker& worker : workers_) worker.loss = 0;
  each_task(parallel_, std::min(workers_.size(), at_once), [&](std::size_t i) { work(workers_[i], all); });
  each_range(parallel_, pairs, grain, [&](Range part) {
    for (long pair = part.begin; pair < part.end; ++pair) {
      const Pair both = std::bit_cast<Pair>(change_[pair].load(relaxed));
      const auto at = static_cast<std::size_t>(2 * pair);
      change[at] = both[0];
      if (at + 1 < params_) change[at + 1] = both[1];
    }
  });
  double loss = 0;
  for (const Worker& worker : workers_) loss += worker.loss;
  return loss / static_cast<double>(rules.size());
}

void Hogwild::work(Worker& worker, Round& round) {
  const std::size_t batches = round.rules.size(), rows = round.rows.size() / batches;
  bool looked = false;
  for (std::size_t batch = round.next++; batch < batches; batch = round.next++) {
    if (!looked) look(worker, round.weights);
    looked = true;
    const Batch drawn = data_->train_batch(round.rows.subspan(batch * rows, rows), worker.memory, round.size);
    const std::span<float> gradient(worker.gradient.data(), params_);
    worker.loss += worker.model->loss_and_gradient({worker.weights.data(), params_}, drawn, gradient);
    if (clip_ > 0) clip_by_norm(gradient, clip_);
    step(worker, round.weights, round.rules[batch]);
  }
}

// The worker's copy of the weights as they are by now.
void Hogwild::look(Worker& worker, std::span<const float> weights) const {
  worker.weights.resize(params_);
  worker.gradient.resize(params_);
  for (std::size_t i = 0; i < params_; ++i)
    worker.weights[i] = weights[i] + std::bit_cast<Pair>(change_[i / 2].load(relaxed))[i % 2];
}

// formula(i) is the effect of the worker's gradient on parameter i.
template <class Formula>
void Hogwild::step_by(Worker& worker, std::span<const float> weights, const Formula& formula) {
  const float* const from = weights.data();
  float* const seen = worker.weights.data();
  const std::size_t whole = params_ / 2;
  for (std::size_t pair = 0; pair < whole; ++pair) {
    const std::size_t i = 2 * pair;
    Pair change = std::bit_cast<Pair>(change_[pair].load(relaxed));
    change[0] += formula(i);
    change[1] += formula(i + 1);
    change_[pair].store(std::bit_cast<std::uint64_t>(change), relaxed);
    seen[i] = from[i] + change[0];
    seen[i + 1] = from[i + 1] + change[1];
  }
  if (params_ % 2 == 0) return;
  const std::size_t last = params_ - 1;
  Pair change = std::bit_cast<Pair>(change_[whole].load(relaxed));
  change[0] += formula(last);
  change_[whole].store(std::bit_cast<std::uint64_t>(change), relaxed);
  seen[last] = from[last] + change[0];
}

void Hogwild::step(Worker& worker, std::span<const float> weights, StepRule rule) {
  const float* const g = worker.gradient.data();
  const float* const seen = worker.weights.data();
  switch (rule.kind) {
    case StepRule::Kind::sgd:
      return step_by(worker, weights, [&](std::size_t i) { return step_rule::sgd(rule, g[i]); });
    case StepRule::Kind::momentum:
      return step_by(worker, weights, [&](std::size_t i) {
        SharedMoment first(rule.first[i]);
        const float change = step_rule::momentum(rule, g[i], first.value);
        first.store();
        return change;
      });
    case StepRule::Kind::rmsprop:
      return step_by(worker, weights, [&](std::size_t i) {
        SharedMoment second(rule.second[i]);
        const float change = step_rule::rmsprop(rule, g[i], second.value);
        second.store();
        return change;
      });
    case StepRule::Kind::adam:
    case StepRule::Kind::adamw:
    case StepRule::Kind::nadamw:
      return step_by(worker, weights, [&](std::size_t i) {
        SharedMoment first(rule.first[i]), second(rule.second[i]);
        const float change = rule.kind == StepRule::Kind::adam
                                 ? step_rule::adam(rule, g[i], first.value, second.value)
                             : rule.kind == StepRule::Kind::adamw
                                 ? step_rule::adamw(rule, g[i], first.value, second.value, seen[i])
                                 : step_rule::nadamw(rule, g[i], first.value, second.value, seen[i]);
        first.store();
        second.store();
        return change;
      });
    case StepRule::Kind::adaptive_revision:
      RUMOR_CHECK(false);
  }
}

std::size_t Hogwild::memory_bytes() const {
  std::size_t bytes = change_ ? (params_ + 1) / 2 * sizeof(std::uint64_t) : 0;
  for (const Worker& worker : workers_) bytes += capacity_bytes(worker.weights, worker.gradient);
  return bytes;
}

std::size_t Hogwild::activation_bytes() const {
  std::size_t bytes = 0;
  for (const Worker& worker : workers_)
    bytes += worker.model->memory_bytes() +
             capacity_bytes(worker.memory.x, worker.memory.label, worker.memory.tokens, worker.memory.whole,
                            worker.memory.scratch);
  return bytes;
}

}  // namespace rumor::models
