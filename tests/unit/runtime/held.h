// A small store of updates with replica, log and snapshots, for the tests of runtime.
#pragma once

#include <boost/test/unit_test.hpp>

#include "runtime/replica/held_updates.h"
#include "tests/unit/runtime/support.h"

namespace rumor::test {

struct Held final : HeldUpdates {
  explicit Held(std::size_t log_bytes = 1 << 20)
      : HeldUpdates({some_run(), small_layout()}, LargeVector<std::int32_t>(small_layout().params(), 77), log_bytes,
                    SIZE_MAX) {}

  Result<gossip::Accepted> accept(const gossip::StoredUpdate& update) override {
    auto change = decode(*update.payload);
    if (!change) return change.error();
    return apply(update, std::move(change).value(), TimePoint{});
  }
};

// The taker installs a snapshot of all that the giver has.
inline void give_snapshot(Held& giver, Held& taker) {
  gossip::SnapshotPort& give = giver.snapshots();
  BOOST_TEST_REQUIRE(give.begin_cut(nullptr).ok());
  while (!give.advance_cut()) continue;
  gossip::SnapshotPort& take = taker.snapshots();
  BOOST_TEST_REQUIRE(take.begin_intake(give.cut()->manifest()).ok());
  for (std::uint32_t chunk = 0; chunk < give.cut()->manifest().chunks.size(); ++chunk)
    BOOST_TEST_REQUIRE(take.take_chunk(chunk, give.cut()->chunk(chunk)).ok());
  BOOST_TEST_REQUIRE(take.install(give.cut()->period()).ok());
}

}  // namespace rumor::test
