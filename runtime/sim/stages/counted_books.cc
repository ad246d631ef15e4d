#include "runtime/sim/stages/counted_books.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace rumor::sim {

std::optional<CountedBooks::Broken> CountedBooks::read(std::size_t stage, HostId host, std::uint64_t life,
                                                       const gossip::Pipeline& pipeline) {
  std::optional<Broken> broken;
  pipeline.each_counted([&](gossip::Slot slot, const gossip::MicroBatchName& name) {
    const Entry entry{host, life, slot};
    const auto [at, is_new] = of_stage_[stage].try_emplace(name, entry);
    const bool is_below = stage == 0 || of_stage_[stage - 1].contains(name);
    if (at->second == entry && (!is_new || is_below)) return;
    const std::string which = str("micro-batch ", name.number, " of stream ", name.source.brief());
    if (at->second != entry)
      broken = Broken{"P1", str("stage ", stage + 1, " counts ", which, " twice; node ", at->second.host,
                                " has counted it before")};
    else
      broken = Broken{"P2", str("stage ", stage + 1, " counts ", which, ", and the stage below has not")};
  });
  return broken;
}

std::uint64_t CountedBooks::missing(std::size_t stage) const {
  return static_cast<std::uint64_t>(
      std::count_if(of_stage_.front().begin(), of_stage_.front().end(),
                    [&](const auto& one) { return !of_stage_[stage].contains(one.first); }));
}

}  // namespace rumor::sim
