#include "runtime/stages/stage_choice.h"

#include <algorithm>
#include <tuple>

#include "runtime/base/check.h"
#include "runtime/base/mix64.h"
#include "runtime/base/text.h"

namespace rumor {

namespace {

// Equal on all machines, and without a pattern between stages.
std::uint64_t place_in_line(const NodeId& node, std::uint32_t stage) {
  std::uint64_t hash = mix64(stage);
  for (const std::uint8_t byte : node.view()) hash = mix64(hash ^ byte);
  return hash;
}

// [stage]: live peers of it; [0] stays empty.
std::vector<std::size_t> peers_of_stages(std::uint32_t stages, const std::vector<StagePeer>& live) {
  std::vector<std::size_t> counts(stages + 1);
  for (const StagePeer& peer : live)
    if (peer.stage >= 1 && peer.stage <= stages) ++counts[peer.stage];
  return counts;
}

std::string peers_text(std::size_t count) {
  return count == 0 ? "no live peer" : count == 1 ? "1 live peer" : str(count, " live peers");
}

}  // namespace

StageChoice choose_stage(const NodeId& self, std::uint32_t stages, const std::vector<StagePeer>& live,
                         std::optional<std::uint32_t> kept) {
  RUMOR_CHECK(stages >= 1);
  const auto counts = peers_of_stages(stages, live);
  const std::size_t fewest = *std::min_element(counts.begin() + 1, counts.end());
  StageChoice choice;
  std::size_t equals = 0;
  for (std::uint32_t stage = 1; stage <= stages; ++stage) {
    if (counts[stage] != fewest) continue;
    ++equals;
    if (choice.stage == 0 || place_in_line(self, stage) < place_in_line(self, choice.stage)) choice.stage = stage;
  }
  const bool resumes = kept && *kept >= 1 && *kept <= stages && counts[*kept] == fewest;
  if (resumes) choice.stage = *kept;
  choice.why = str("stage ", choice.stage, " has ", peers_text(fewest));
  if (equals > 1) choice.why += str(", as ", equals - 1, equals == 2 ? " other has" : " others have");
  if (equals > 1) choice.why += resumes ? "; this peer has kept its weights" : "; drawn by this peer's identity";
  return choice;
}

bool StageWatch::wants_look(TimePoint now, std::uint64_t counted, bool trains) {
  if (counted != counted_ || !trains) {
    counted_ = counted;
    counted_at_ = now;
    empty_ = 0;
  }
  if (now - counted_at_ < stalled_after || now < look_at_) return false;
  look_at_ = now + look_every;
  return true;
}

std::optional<StageChoice> StageWatch::on_look(TimePoint now, const std::vector<StagePeer>& live) {
  auto everyone = live;
  everyone.push_back({self_, stage_});
  const auto counts = peers_of_stages(stages_, everyone);
  const auto first = std::find(counts.begin() + 1, counts.end(), 0U);
  const auto empty = first == counts.end() ? 0 : static_cast<std::uint32_t>(first - counts.begin());
  if (empty != empty_) empty_since_ = now, rank_ = 0;
  empty_ = empty;
  if (empty == 0 || counts[stage_] < 2 || now < counted_at_ + stalled_after) return std::nullopt;
  const auto place_of = [&](const StagePeer& peer) {
    return std::tuple(everyone.size() - counts[peer.stage], place_in_line(peer.node, empty), peer.node);
  };
  const auto own = place_of({self_, stage_});
  const auto before = std::count_if(live.begin(), live.end(), [&](const StagePeer& peer) {
    const bool may_move = peer.stage >= 1 && peer.stage <= stages_ && counts[peer.stage] >= 2;
    return may_move && place_of(peer) < own;
  });
  rank_ = std::max<std::int64_t>(rank_, before);  // one of them that is gone may be on its way to the empty stage
  if (now - empty_since_ < empty_for + rank_ * turn_of_each) return std::nullopt;
  return StageChoice{empty, str("stage ", empty, " has no live peer, and stage ", stage_, " has ", counts[stage_])};
}

}  // namespace rumor
