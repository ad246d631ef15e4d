#include "gossip/pipeline/uppers.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/limits.h"

namespace rumor::gossip {

namespace {

constexpr Duration slowest = std::chrono::hours(1);  // that a neighbour given up again and again counts as

// Whether an answer after `expected` comes soon enough where another would come after `soonest`.
bool is_soon(Duration expected, Duration soonest) {
  return expected <= soonest + soonest / 2;
}

}  // namespace

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
Duration Uppers::mean(Member which, std::optional<LinkId> but) const {
  std::int64_t sum = 0, count = 0;
  for (const auto& [link, upper] : uppers_) {
    if (link == but || upper.*which == Duration{0}) continue;
    sum += (upper.*which).count();
    ++count;
  }
  return Duration(count == 0 ? 0 : sum / count);
}

Duration Uppers::Upper::remembered(TimePoint now) const {
  if (!awaited.empty()) return pace;
  const std::int64_t halvings = (now - quiet_since) / std::min(pace * forgets_after, forgets_max);
  return std::max(pace / (std::int64_t{1} << std::clamp<std::int64_t>(halvings, 0, 40)), Duration{1});
}

Duration Uppers::Upper::expected(Duration unmeasured, TimePoint now) const {
  Duration one = std::max(pace == Duration{0} ? unmeasured : remembered(now), Duration{1});
  if (!awaited.empty()) one = std::max(one, (now - owes_since()) / lateness);  // it is slower than it was
  return one * static_cast<std::int64_t>(awaited.size() + 1);
}

std::optional<LinkId> Uppers::choose(Prng& prng, std::optional<LinkId> but, TimePoint now) {
  look_again_ = never;
  if (but && !another_has_credit(*but)) but.reset();
  const Duration unmeasured = mean(&Upper::pace);
  Duration soonest = Duration::max(), open = Duration::max();  // of all who answer; of those with credit
  for (const auto& [link, upper] : uppers_) {
    if (link == but || (!upper.has_credit() && upper.awaited.empty())) continue;
    const Duration expected = upper.expected(unmeasured, now);
    soonest = std::min(soonest, expected);
    if (upper.has_credit()) open = std::min(open, expected);
  }
  if (open == Duration::max()) return std::nullopt;
  if (!is_soon(open, soonest)) {
    wait_for_quicker(but, open, unmeasured, now);
    return std::nullopt;
  }
  constexpr std::uint64_t scale = std::uint64_t{1} << 40;
  std::vector<std::pair<LinkId, std::uint64_t>> ends;  // of the ranges of a draw
  std::uint64_t all = 0;
  for (const auto& [link, upper] : uppers_) {
    const Duration expected = upper.expected(unmeasured, now);
    if (!upper.has_credit() || link == but || !is_soon(expected, soonest)) continue;
    all += std::max<std::uint64_t>(scale / static_cast<std::uint64_t>(expected.count()), 1);
    ends.emplace_back(link, all);
  }
  const std::uint64_t drawn = prng.below(all);
  return std::find_if(ends.begin(), ends.end(), [&](const auto& end) { return drawn < end.second; })->first;
}

// A quicker neighbour without credit that stays silent is expected ever later. Once none of them is sooner than `open`,
// the choice is another one.
void Uppers::wait_for_quicker(std::optional<LinkId> but, Duration open, Duration unmeasured, TimePoint now) {
  look_again_ = now;
  for (const auto& [link, upper] : uppers_) {
    if (link == but || upper.has_credit() || upper.awaited.empty()) continue;
    if (is_soon(open, upper.expected(unmeasured, now))) continue;
    const auto queue = static_cast<std::int64_t>(upper.awaited.size() + 1);
    const Duration silence = (open * 2 / (3 * queue) + Duration{1}) * lateness;
    look_again_ = std::max(look_again_, upper.owes_since() + silence);
  }
  look_again_ = std::max(look_again_, now + Duration{1});
}

Duration Uppers::patience(LinkId link, std::int64_t place) const {
  const Duration others = mean(&Upper::time, link), time = others == Duration{0} ? uppers_.at(link).time : others;
  if (time == Duration{0}) return patience_unmeasured;
  return std::max(patience_min, time * lateness * place);
}

std::uint64_t Uppers::send(LinkId link, Slot slot, TimePoint now) {
  Upper& upper = uppers_.at(link);
  RUMOR_CHECK(upper.has_credit());
  if (upper.pace > Duration{0} && upper.awaited.empty()) {
    upper.pace = upper.remembered(now);
    upper.quiet_since = now;
  }
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
  const auto average = [](Duration& mean, Duration measured) {
    measured = std::max(measured, Duration{1});
    mean = mean == Duration{0} ? measured : (mean * 3 + measured) / 4;
  };
  average(upper.time, (now - awaited.sent) / awaited.place);
  average(upper.pace, now - std::max(awaited.sent, upper.quiet_since));
  upper.quiet_since = now;
  ++upper.answered;
  upper.awaited.erase(transfer);
}

bool Uppers::another_has_credit(LinkId but) const {
  return std::any_of(uppers_.begin(), uppers_.end(),
                     [&](const auto& one) { return one.first != but && one.second.has_credit(); });
}

std::vector<Uppers::Late> Uppers::take_late(TimePoint now) {
  std::vector<Late> late;
  if (look_again_ <= now) look_again_ = never;
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
    if (late.size() == before) continue;
    upper.time = std::min(std::max(upper.time, mean(&Upper::time)) * 2, slowest);
    upper.pace = std::min(std::max(upper.pace, mean(&Upper::pace, link)) * 2, slowest);
    upper.quiet_since = now;
  }
  for (const Late& one : late) forget(one.link, one.transfer);
  return late;
}

TimePoint Uppers::next_deadline() const {
  TimePoint next = look_again_;
  for (const auto& [link, upper] : uppers_)
    for (const auto& [transfer, awaited] : upper.awaited) next = std::min(next, awaited.late_at);
  return next;
}

std::vector<Uppers::Figures> Uppers::figures() const {
  std::vector<Figures> all;
  for (const auto& [link, upper] : uppers_)
    all.push_back({link, upper.pace, upper.awaited.size(), upper.answered});
  return all;
}

}  // namespace rumor::gossip
