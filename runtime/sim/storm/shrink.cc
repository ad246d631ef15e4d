// Makes a failing request small: the next smaller one is kept whenever it still fails.
#include <algorithm>

#include "runtime/sim/storm/storm.h"

namespace rumor::sim {

namespace {

using Fails = std::function<bool(const StormRequest&)>;

void fewer_kinds(StormRequest& request, const Fails& fails) {
  const FaultSet enabled = draw_plan(request).enabled;
  for (std::size_t k = 0; k < fault_kinds; ++k) {
    if ((enabled >> k & 1) == 0) continue;
    StormRequest less = request;
    less.allowed &= ~(FaultSet{1} << k);
    if (fails(less)) request = less;
  }
}

// Leaves out pieces of the list of actions, smaller and smaller ones.
void fewer_actions(StormRequest& request, const Fails& fails) {
  StormRequest none = request;
  none.no_actions = true;
  if (fails(none)) {
    request = none;
    return;
  }
  std::vector<std::uint32_t> left;
  for (const FaultAction& action : draw_plan(request).actions) left.push_back(action.number);
  for (std::size_t piece = std::max<std::size_t>(left.size() / 2, 1);; piece /= 2) {
    for (std::size_t at = 0; at < left.size() && left.size() > 1;) {
      StormRequest less = request;
      less.only = left;
      const auto from = less.only.begin() + static_cast<std::ptrdiff_t>(at);
      less.only.erase(from, from + static_cast<std::ptrdiff_t>(std::min(piece, left.size() - at)));
      if (!less.only.empty() && fails(less)) {
        left = less.only;
        request = less;
      } else {
        at += piece;
      }
    }
    if (piece <= 1) return;
  }
}

void fewer_nodes(StormRequest& request, const Fails& fails) {
  for (std::size_t nodes = draw_plan(request).nodes; nodes > 2; --nodes) {
    StormRequest less = request;
    less.nodes = nodes - 1;
    if (!fails(less)) return;
    request = less;
  }
}

void less_time(StormRequest& request, const Fails& fails) {
  Duration low{1s}, high = draw_plan(request).chaos;
  while (high - low > 500ms) {
    const Duration middle = (low + high) / 2;
    StormRequest less = request;
    less.chaos = middle;
    (fails(less) ? high : low) = middle;
    if (high == middle) request = less;
  }
}

}  // namespace

StormRequest shrink(StormRequest request, const Fails& fails) {
  fewer_kinds(request, fails);
  fewer_actions(request, fails);
  fewer_nodes(request, fails);
  less_time(request, fails);
  return request;
}

}  // namespace rumor::sim
