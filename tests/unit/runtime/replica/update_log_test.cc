#include <boost/test/unit_test.hpp>

#include "runtime/base/sha256.h"
#include "runtime/replica/update_log.h"
#include "tests/shortened.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

BOOST_AUTO_TEST_CASE(the_oldest_go_first_and_the_bound_holds) {
  const ParamLayout layout = test::small_layout();
  Prng prng(4);
  UpdateLog log(20'000);
  for (std::uint64_t seq = 1; seq <= 500; ++seq)
    log.append(test::stored(layout, test::random_update(prng, layout.params(), 40), test::stream(1), seq));
  BOOST_TEST(log.bytes() <= 20'000u);
  BOOST_TEST(!log.find({test::stream(1), 1}).has_value());
  BOOST_REQUIRE(log.find({test::stream(1), 500}).has_value());
  BOOST_TEST(log.find({test::stream(1), 500})->header.key.seq == 500u);
  BOOST_TEST(log.keys().back().seq == 500u);
  BOOST_TEST(log.size() > 10u);
}

namespace {

gossip::StoredUpdate some_update(Prng& prng, std::uint64_t seq) {
  static const ParamLayout layout = test::small_layout();
  gossip::StoredUpdate update =
      test::stored(layout, test::random_update(prng, layout.params(), 40), test::stream(1), seq);
  update.header.payload_hash = sha256(*update.payload);
  return update;
}

UpdateKey key(std::uint64_t seq) {
  return {test::stream(1), seq};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_disk_brings_back_what_was_kept_and_not_what_was_taken_back) {
  MemoryDisk disk;
  Prng prng(5);
  std::vector<gossip::StoredUpdate> updates;
  {
    UpdateLog log(1 << 20, 500);  // most payloads are on the disk only
    BOOST_REQUIRE(log.open(disk, test::some_run()).ok());
    for (std::uint64_t seq = 1; seq <= 100; ++seq) {
      updates.push_back(some_update(prng, seq));
      log.append(updates.back());
    }
    log.erase(key(7));
    BOOST_TEST(log.trouble() == "");
  }
  UpdateLog again(1 << 20, 500);
  const auto damaged = again.open(disk, test::some_run());
  BOOST_REQUIRE(damaged.ok());
  BOOST_TEST(*damaged == 0u);
  BOOST_TEST(again.size() == 99u);
  BOOST_TEST(!again.contains(key(7)));
  for (const gossip::StoredUpdate& update : updates) {
    if (update.header.key.seq == 7) continue;
    const auto found = again.find(update.header.key);
    BOOST_REQUIRE(found.has_value());
    BOOST_TEST((*found->payload == *update.payload));
    BOOST_TEST((found->header.signature == update.header.signature));
    BOOST_TEST(found->header.fingerprint == update.header.fingerprint);
  }
  RunId other;
  other.bytes.fill(9);
  UpdateLog foreign(1 << 20);
  const auto refused = foreign.open(disk, other);
  BOOST_TEST((!refused.ok() && refused.error().code == Errc::mismatch));
}

BOOST_AUTO_TEST_CASE(a_torn_or_damaged_record_is_never_given_out) {
  Prng prng(6);
  MemoryDisk whole;
  {
    UpdateLog log(1 << 20, 0);
    BOOST_REQUIRE(log.open(whole, test::some_run()).ok());
    for (std::uint64_t seq = 1; seq <= 12; ++seq) log.append(some_update(prng, seq));
  }
  Prng reference_prng(6);
  std::vector<gossip::StoredUpdate> reference;
  for (std::uint64_t seq = 1; seq <= 12; ++seq) reference.push_back(some_update(reference_prng, seq));
  for (int round = 0; round < 300; ++round) {
    MemoryDisk disk = whole;
    Bytes& file = disk.files.begin()->second;
    const std::size_t at = prng.below(file.size());
    if (round % 2 == 0)
      file.resize(at);
    else
      file[at] ^= static_cast<std::uint8_t>(1u << prng.below(8));
    UpdateLog log(1 << 20, 0);
    const auto opened = log.open(disk, test::some_run());
    BOOST_REQUIRE(opened.ok());
    for (const gossip::StoredUpdate& update : reference) {
      const auto found = log.find(update.header.key);
      if (!found) continue;
      BOOST_TEST((*found->payload == *update.payload));
      BOOST_TEST((found->header.payload_hash == update.header.payload_hash));
      BOOST_TEST((found->header.origin == update.header.origin));
    }
    BOOST_TEST(log.size() <= 12u);
  }
}

BOOST_AUTO_TEST_CASE(the_bound_holds_on_the_disk_and_what_it_costs_is_counted) {
  MemoryDisk disk;
  Prng prng(7);
  UpdateLog log(20'000, 1'000);
  BOOST_REQUIRE(log.open(disk, test::some_run()).ok());
  gossip::HaveSet acknowledged;
  for (std::uint64_t seq = 1; seq <= 300; ++seq) {
    log.append(some_update(prng, seq));
    if (seq == 200) {
      acknowledged.insert(test::stream(1), {1, 190});
      log.acknowledged(acknowledged, {});
      BOOST_TEST(log.dropped_unacknowledged() > 100u);  // those before anybody had acknowledged
    }
    std::size_t bytes = 0;
    for (const auto& [name, file] : disk.files) bytes += file.size();
    BOOST_REQUIRE(bytes <= 20'000u + 3'000u);
  }
  BOOST_TEST(log.find(key(300)).has_value());
}

BOOST_AUTO_TEST_CASE(what_all_have_acknowledged_goes_when_it_is_old) {
  MemoryDisk disk;
  Prng prng(8);
  UpdateLog log(1 << 20);
  BOOST_REQUIRE(log.open(disk, test::some_run()).ok());
  for (std::uint64_t seq = 1; seq <= 10; ++seq) log.append(some_update(prng, seq), TimePoint{seq * 60s});
  gossip::HaveSet by_all;
  by_all.insert(test::stream(1), {1, 5});
  log.acknowledged(by_all, TimePoint{2min});
  BOOST_TEST(log.size() == 10u);
  log.acknowledged(by_all, TimePoint{3min} + UpdateLog::kept_at_least);
  BOOST_TEST(log.size() == 7u);
  log.acknowledged(by_all, TimePoint{60min});
  BOOST_TEST(log.size() == 5u);  // the others are not acknowledged, however old
  BOOST_TEST(log.dropped_unacknowledged() == 0u);
}

BOOST_AUTO_TEST_CASE(a_full_disk_costs_memory_of_the_caches_size_and_no_more) {
  MemoryDisk disk;
  Prng prng(9);
  UpdateLog log(1 << 20, 2'000);
  BOOST_REQUIRE(log.open(disk, test::some_run()).ok());
  log.append(some_update(prng, 1));
  disk.full = true;
  for (std::uint64_t seq = 2; seq <= 200; ++seq) log.append(some_update(prng, seq));
  BOOST_TEST(!log.trouble().empty());
  BOOST_TEST(log.size() < 100u);
  BOOST_TEST(log.find(key(200)).has_value());
  BOOST_TEST(log.dropped_unacknowledged() > 100u);
  disk.full = false;
  log.append(some_update(prng, 201));
  BOOST_TEST(log.trouble().empty());
  UpdateLog again(1 << 20);
  BOOST_REQUIRE(again.open(disk, test::some_run()).ok());
  BOOST_TEST(again.contains(key(1)));
  BOOST_TEST(again.contains(key(201)));
}

BOOST_AUTO_TEST_CASE(an_update_on_the_disk_takes_forty_bytes_of_memory) {
  MemoryDisk disk;
  UpdateLog log(1 << 30, 64 << 20);
  BOOST_REQUIRE(log.open(disk, test::some_run()).ok());
  gossip::StoredUpdate update{{}, std::make_shared<const Bytes>(300, std::uint8_t{7})};
  update.header.payload_hash = sha256(*update.payload);
  const std::uint64_t updates = rumor::test::shortened(100'000), streams = 5;
  for (std::uint64_t i = 0; i < updates; ++i) {
    update.header.key = {test::stream(static_cast<std::uint8_t>(1 + i % streams)), 1 + i / streams};
    log.append(update);
  }
  BOOST_REQUIRE(log.size() == updates);
  BOOST_TEST(log.memory_bytes() < UpdateLog::recent_bytes_max + 40 * updates);
  BOOST_TEST(log.memory_bytes() > UpdateLog::recent_bytes_max);
  const UpdateKey first{test::stream(1), 1};
  BOOST_REQUIRE(log.find(first).has_value());
  BOOST_TEST((*log.find(first)->payload == *update.payload));
  BOOST_REQUIRE(log.header(first).has_value());
  BOOST_TEST((log.header(first)->payload_hash == update.header.payload_hash));
  UpdateLog again(1 << 30, 64 << 20);
  BOOST_REQUIRE(again.open(disk, test::some_run()).ok());
  BOOST_TEST(again.memory_bytes() < 40 * updates);
}

BOOST_AUTO_TEST_CASE(an_update_that_is_damaged_on_the_disk_is_not_found_and_can_be_erased) {
  Prng prng(10);
  for (int round = 0; round < 200; ++round) {
    MemoryDisk disk;
    UpdateLog log(1 << 20, 0);  // the newest update alone is in memory
    BOOST_REQUIRE(log.open(disk, test::some_run()).ok());
    const std::size_t begin = [&] {
      log.append(some_update(prng, 1));
      return disk.files.begin()->second.size();
    }();
    log.append(some_update(prng, 2));
    const std::size_t end = disk.files.begin()->second.size();
    log.append(some_update(prng, 3));
    BOOST_REQUIRE(log.header(key(2)).has_value());
    disk.files.begin()->second[begin + prng.below(end - begin)] ^= static_cast<std::uint8_t>(1u << prng.below(8));
    BOOST_TEST(!log.find(key(2)).has_value());
    BOOST_TEST(log.find(key(1)).has_value());
    BOOST_TEST(log.find(key(3)).has_value());
    log.erase(key(2));
    BOOST_TEST(!log.contains(key(2)));
    BOOST_TEST(log.size() == 2u);
  }
}

BOOST_AUTO_TEST_CASE(updates_that_the_disk_did_not_take_are_served_from_memory) {
  MemoryDisk disk;
  Prng prng(11);
  UpdateLog log(1 << 20, 10'000);
  BOOST_REQUIRE(log.open(disk, test::some_run()).ok());
  disk.full = true;
  for (std::uint64_t seq = 1; seq <= 10; ++seq) log.append(some_update(prng, seq));
  disk.full = false;
  for (std::uint64_t seq = 11; seq <= 200; ++seq) log.append(some_update(prng, seq));
  for (std::uint64_t seq = 1; seq <= 200; ++seq) BOOST_TEST_REQUIRE(log.find(key(seq)).has_value());
  log.erase(key(5));
  BOOST_TEST(!log.find(key(5)).has_value());
  UpdateLog again(1 << 20);
  BOOST_REQUIRE(again.open(disk, test::some_run()).ok());
  BOOST_TEST(again.size() == 190u);
}
