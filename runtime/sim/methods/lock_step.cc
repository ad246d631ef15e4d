#include "runtime/sim/methods/lock_step.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace rumor::sim {

namespace {

constexpr int attempts_max = 1000;  // rounds in a row that nobody finishes

}  // namespace

LockStep::LockStep(const MethodSetting& in, const Plan& plan)
    : config_(in.config),
      options_(in.options),
      learners_(in.learners),
      absences_(in.absences),
      plan_(plan),
      record_(in),
      transfers_(options_.network, options_.nodes, options_.seed),
      draws_(Prng::named(options_.seed, "participation")),
      has_newest_(options_.nodes, true) {}

Result<SimResult> LockStep::run(const std::vector<float>& model, const Part& learn, const Part& exchange) {
  const std::vector<CurvePoint>* const learned = absences_.any() ? nullptr : options_.learned.get();
  bool unknown = false;
  const auto evaluate = [&]() -> models::Evaluation {
    if (learned == nullptr) return learners_.evaluate(model);
    const auto point = std::find_if(learned->begin(), learned->end(), [&](const CurvePoint& p) {
      return p.samples == samples_;
    });
    unknown = unknown || point == learned->end();
    return unknown ? models::Evaluation{} : models::Evaluation{point->loss, point->accuracy};
  };
  const auto of_another_run = [&] {
    return Error{Errc::usage, str("what is said to be learned already is of another run: it has no loss after ",
                                  samples_, " samples")};
  };
  for (;;) {
    auto on = record_.watch(samples_, now_, evaluate);
    if (unknown) return of_another_run();
    if (!on) return on.error();
    if (!*on || samples_ >= config_.samples) break;
    auto round = compute();
    if (!round) return round.error();
    if (learned == nullptr) learn(*round);
    exchange(*round);
    samples_ += std::uint64_t{round->steps} * config_.batch * round->peers.size();
  }
  const std::span<const float> all[] = {model};
  auto result = record_.conclude(samples_, now_, evaluate(), all);
  if (unknown) return of_another_run();
  return result;
}

Result<Round> LockStep::compute() {
  Round round;
  const std::uint64_t of_a_step = share_of(options_.nodes) * config_.batch;
  const std::uint64_t left = (config_.samples - samples_ + of_a_step - 1) / of_a_step;
  round.steps = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan_.steps, left));
  for (int tried = 0; round.peers.empty(); ++tried) {
    if (tried == attempts_max)
      return Error{Errc::usage, str("in ", attempts_max, " rounds one after another no peer was there from beginning ",
                                    "to end; plan fewer faults, or lower exchange.local_steps")};
    attempt(round);
  }
  const double total = static_cast<double>(config_.samples);
  round.began = static_cast<double>(samples_) / total;
  round.advance = static_cast<double>(round.peers.size() * config_.batch) / total;
  return round;
}

// Lets the time pass in which those who are drawn compute.
void LockStep::attempt(Round& round) {
  const std::vector<std::size_t> here = present();
  const TimePoint begins = now_;
  const std::vector<std::size_t> drawn = draw(here);
  const std::vector<TimePoint> ready = fetch(here, drawn);
  TimePoint last = begins;  // when it is over for those who went away
  for (std::size_t d = 0; d < drawn.size(); ++d) {
    const std::size_t i = drawn[d];
    Duration takes{0};
    for (std::uint32_t step = 0; step < round.steps; ++step) takes += learners_.step_time(i);
    last = std::max(last, ready[d] + takes);
    if (absences_.away_between(i, begins, ready[d] + takes)) continue;
    round.peers.push_back(i);
    record_.computed(takes);
    record_.update_made();
    now_ = std::max(now_, ready[d] + takes);
  }
  if (round.peers.empty()) now_ = last;
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (absences_.away_between(i, seen_, now_)) round.lost.push_back(i);
  seen_ = now_;
  if (round.peers.empty()) return;
  has_newest_.assign(options_.nodes, false);
  for (const std::size_t i : round.peers) has_newest_[i] = true;
}

// The peers that are present, at the first time when one of them has the newest state.
std::vector<std::size_t> LockStep::present() {
  for (;;) {
    std::vector<std::size_t> here;
    bool known = false;
    TimePoint soonest = never;
    for (std::size_t i = 0; i < options_.nodes; ++i) {
      const TimePoint back = absences_.back(i, now_);
      if (back == now_) here.push_back(i);
      if (has_newest_[i]) soonest = std::min(soonest, back);
      known = known || (has_newest_[i] && back == now_);
    }
    if (known) return here;
    now_ = soonest;
  }
}

std::size_t LockStep::share_of(std::size_t peers) const {
  return std::max<std::size_t>(1, static_cast<std::size_t>(plan_.participation * static_cast<double>(peers) + 0.5));
}

std::vector<std::size_t> LockStep::draw(std::vector<std::size_t> here) {
  const std::size_t count = share_of(here.size());
  if (count == here.size()) return here;
  draws_.shuffle(std::span(here));
  here.resize(count);
  std::sort(here.begin(), here.end());
  return here;
}

// When each of `peers` has the newest state.
std::vector<TimePoint> LockStep::fetch(const std::vector<std::size_t>& here, const std::vector<std::size_t>& peers) {
  std::vector<std::size_t> givers;
  for (const std::size_t i : here)
    if (has_newest_[i]) givers.push_back(i);
  std::vector<TimePoint> ready(peers.size(), now_);
  for (std::size_t p = 0; p < peers.size(); ++p) {
    if (has_newest_[peers[p]]) continue;
    const std::size_t giver = givers[turn_++ % givers.size()];
    ready[p] = transfers_.deliver(giver, peers[p], plan_.state_bytes, now_);
    record_.sent(giver, static_cast<double>(plan_.state_bytes));
    record_.received(peers[p], static_cast<double>(plan_.state_bytes));
  }
  return ready;
}

void LockStep::all_reduce(const std::vector<std::size_t>& peers, double bytes) {
  const double count = static_cast<double>(peers.size());
  pass_on(peers, 2.0 * (count - 1) / count * bytes, 2.0 * (count - 1));
}

void LockStep::all_gather(const std::vector<std::size_t>& peers, double bytes) {
  const double others = static_cast<double>(peers.size()) - 1;
  pass_on(peers, others * bytes, others);
}

// Each of the ring sends, and receives, so many bytes in so many messages.
void LockStep::pass_on(const std::vector<std::size_t>& peers, double bytes, double messages) {
  for (const std::size_t i : peers) {
    record_.sent(i, bytes);
    record_.received(i, bytes);
  }
  const NetworkModel& net = options_.network;
  const double rate = static_cast<double>(std::min(net.up_bytes_per_second, net.down_bytes_per_second));
  now_ += from_seconds(bytes / rate + messages * to_seconds(net.latency_max));
}

}  // namespace rumor::sim
