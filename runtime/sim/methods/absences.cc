#include "runtime/sim/methods/absences.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace rumor::sim {

Result<Absences> Absences::create(const ClusterOptions& options, const std::string& mode) {
  Absences a;
  a.kills_ = options.planned_faults;
  const bool others = std::any_of(a.kills_.begin(), a.kills_.end(),
                                  [](const PlannedFault& f) { return f.kind != PlannedFault::Kind::kill; });
  if (others || options.light_faults)
    return Error{Errc::usage, str("exchange.mode = \"", mode, "\" has no links that could break: of faults it knows ",
                                  "only kind = \"kill\", in a file; use mode = \"broadcast\" for others")};
  return a;
}

TimePoint Absences::back(std::size_t i, TimePoint now) const {
  TimePoint until = now;
  for (bool moved = true; moved;) {  // one absence may begin before another ends
    moved = false;
    for (const PlannedFault& kill : kills_) {
      if (std::find(kill.nodes.begin(), kill.nodes.end(), i) == kill.nodes.end()) continue;
      TimePoint begin{kill.at};
      if (until < begin) continue;
      if (kill.every > Duration{0}) begin += kill.every * ((until - begin) / kill.every);
      if (until >= begin + kill.lasts) continue;
      until = begin + kill.lasts;
      moved = true;
    }
  }
  return until;
}

bool Absences::away_between(std::size_t i, TimePoint begin, TimePoint end) const {
  for (const PlannedFault& kill : kills_) {
    if (std::find(kill.nodes.begin(), kill.nodes.end(), i) == kill.nodes.end()) continue;
    TimePoint at{kill.at};
    if (kill.every > Duration{0} && begin >= at + kill.lasts)  // the first that ends after `begin`
      at += kill.every * ((begin - at - kill.lasts) / kill.every + 1);
    if (at < end && begin < at + kill.lasts) return true;
  }
  return false;
}

}  // namespace rumor::sim
