#include "gossip/pipeline/uppers.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/limits.h"

namespace rumor::gossip {

std::vector<Slot> Uppers::remove(LinkId link) {
  std::vector<Slot> slots;
  for (const auto& [transfer, awaited] : uppers_.at(link).awaited) slots.push_back(awaited.slot);
  uppers_.erase(link);
  std::sort(slots.begin(), slots.end());
  return slots;
}

std::optional<std::string_view> Uppers::take_credit(LinkId link, std::uint64_t limit) {
  Upper& upper = uppers_.at(link);
  if (limit < upper.limit) return "a credit that falls";
  if (limit - upper.limit > limits::credit_step_max) return "a credit that rises too far";
  upper.limit = limit;
  return std::nullopt;
}

// Leaves out neighbours that are not measured; 0: none is.
Duration Uppers::mean_time(std::optional<LinkId> but) const {
  std::int64_t sum = 0, count = 0;
  for (const auto& [link, upper] : uppers_) {
    if (link == but || upper.time == Duration{0}) continue;
    sum += upper.time.count();
    ++count;
  }
  return Duration(count == 0 ? 0 : sum / count);
}

std::optional<LinkId> Uppers::choose(Prng& prng, std::optional<LinkId> but) const {
  if (but && !another_has_credit(*but)) but.reset();
  constexpr std::uint64_t scale = std::uint64_t{1} << 40;
  const Duration mean = mean_time();
  std::vector<std::pair<LinkId, std::uint64_t>> ends;  // of the ranges of a draw
  std::uint64_t all = 0;
  for (const auto& [link, upper] : uppers_) {
    if (!upper.has_credit() || link == but) continue;
    const Duration time = std::max(upper.time == Duration{0} ? mean : upper.time, Duration{1});
    const std::uint64_t queue = upper.awaited.size() + 1;
    all += std::max<std::uint64_t>(scale / (static_cast<std::uint64_t>(time.count()) * queue), 1);
    ends.emplace_back(link, all);
  }
  if (ends.empty()) return std::nullopt;
  const std::uint64_t drawn = prng.below(all);
  return std::find_if(ends.begin(), ends.end(), [&](const auto& end) { return drawn < end.second; })->first;
}

Duration Uppers::patience(LinkId link, std::int64_t place) const {
  const Duration others = mean_time(link), time = others == Duration{0} ? uppers_.at(link).time : others;
  if (time == Duration{0}) return patience_unmeasured;
  return std::max(patience_min, time * lateness * place);
}

std::uint64_t Uppers::send(LinkId link, Slot slot, TimePoint now) {
  Upper& upper = uppers_.at(link);
  RUMOR_CHECK(upper.has_credit());
  const auto place = static_cast<std::int64_t>(upper.awaited.size()) + 1;
  upper.awaited[++upper.sent] = {slot, now, place, now + patience(link, place)};
  return upper.sent;
}

const Uppers::Awaited* Uppers::find(LinkId link, std::uint64_t transfer) const {
  const auto& awaited = uppers_.at(link).awaited;
  const auto at = awaited.find(transfer);
  return at == awaited.end() ? nullptr : &at->second;
}

void Uppers::answered(LinkId link, std::uint64_t transfer, TimePoint now) {
  Upper& upper = uppers_.at(link);
  const Awaited& awaited = upper.awaited.at(transfer);
  const Duration time = std::max((now - awaited.sent) / awaited.place, Duration{1});
  upper.time = upper.time == Duration{0} ? time : (upper.time * 3 + time) / 4;
  upper.awaited.erase(transfer);
}

bool Uppers::another_has_credit(LinkId but) const {
  return std::any_of(uppers_.begin(), uppers_.end(),
                     [&](const auto& one) { return one.first != but && one.second.has_credit(); });
}

std::vector<Uppers::Late> Uppers::take_late(TimePoint now) {
  std::vector<Late> late;
  for (auto& [link, upper] : uppers_) {
    const bool other = another_has_credit(link);
    const std::size_t before = late.size();
    for (auto& [transfer, awaited] : upper.awaited) {
      if (awaited.late_at > now) continue;
      if (other) {
        late.push_back({link, transfer, awaited.slot});
      } else {
        awaited.late_at = now + patience(link, awaited.place);
      }
    }
    if (late.size() > before) upper.time = std::max(upper.time, mean_time()) * 2;
  }
  for (const Late& one : late) forget(one.link, one.transfer);
  return late;
}

TimePoint Uppers::next_deadline() const {
  TimePoint next = never;
  for (const auto& [link, upper] : uppers_)
    for (const auto& [transfer, awaited] : upper.awaited) next = std::min(next, awaited.late_at);
  return next;
}

}  // namespace rumor::gossip
