#include "runtime/in_flight_view.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"
#include "runtime/base/limits.h"

namespace rumor {

InFlightView::InFlightView(ParamLayout layout, double weight)
    : layout_(std::move(layout)), weight_(weight), overlay_(layout_.params(), 0) {
  RUMOR_CHECK(weight >= 0 && weight <= 1);
}

void InFlightView::move(const Own& own, std::int32_t shares, std::vector<std::uint32_t>& touched) {
  for (const compress::StepRun& run : own.shares) {
    const auto amount = static_cast<std::uint32_t>(run.step) * static_cast<std::uint32_t>(shares);
    for (std::size_t e = run.first; e < run.first + run.count; ++e) {
      const auto before = static_cast<std::uint32_t>(overlay_[own.index[e]]);
      overlay_[own.index[e]] = static_cast<std::int32_t>(own.negative[e] ? before - amount : before + amount);
    }
  }
  touched.insert(touched.end(), own.index.begin(), own.index.end());
}

void InFlightView::sent(const compress::SparseUpdate& update, std::uint64_t period,
                        std::span<const NodeId> live, std::vector<std::uint32_t>& touched) {
  std::vector<compress::StepRun> shares = compress::step_runs(layout_, update);
  for (compress::StepRun& run : shares) run.step = static_cast<std::int32_t>(std::lround(weight_ * run.step));
  const bool nothing =
      std::all_of(shares.begin(), shares.end(), [](const compress::StepRun& run) { return run.step == 0; });
  std::vector<NodeId> waiting_for;
  for (const NodeId& peer : live) {
    const auto heard = heard_.find(peer);
    if (heard == heard_.end() || heard->second < period) waiting_for.push_back(peer);
  }
  if (nothing || waiting_for.empty()) return;
  RUMOR_CHECK(own_.empty() || own_.back().period < period);
  own_.push_back({period, std::move(shares), update.index, update.negative, std::move(waiting_for)});
  move(own_.back(), static_cast<std::int32_t>(own_.back().waiting_for.size()), touched);
  if (own_.size() > limits::in_flight_max) {
    move(own_.front(), -static_cast<std::int32_t>(own_.front().waiting_for.size()), touched);
    own_.pop_front();
  }
}

void InFlightView::answered(const NodeId& peer, std::uint64_t period, std::vector<std::uint32_t>& touched) {
  std::uint64_t& heard = heard_[peer];
  heard = std::max(heard, period);
  take_off(peer, period, touched);
}

void InFlightView::gone(const NodeId& peer, std::vector<std::uint32_t>& touched) {
  heard_.erase(peer);
  take_off(peer, UINT64_MAX, touched);
}

void InFlightView::take_off(const NodeId& peer, std::uint64_t period, std::vector<std::uint32_t>& touched) {
  for (Own& own : own_) {
    if (own.period > period) break;
    const auto found = std::find(own.waiting_for.begin(), own.waiting_for.end(), peer);
    if (found == own.waiting_for.end()) continue;
    own.waiting_for.erase(found);
    move(own, -1, touched);
  }
  std::erase_if(own_, [](const Own& own) { return own.waiting_for.empty(); });
}

}  // namespace rumor
