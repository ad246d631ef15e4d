// Payloads with a record: split and joined, on links, and only in runs that ask for them.
#include <boost/test/unit_test.hpp>

#include "compress/payload/recorded.h"
#include "runtime/replica/held_updates.h"
#include "runtime/replica/payload_coder.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(recorded_payloads)

namespace {

const Bytes record = {1, 2, 3, 0, 255};

Bytes some_payload(std::uint64_t seed) {
  Prng prng(seed);
  return compress::encode(test::small_layout(), test::random_update(prng, test::small_layout().params(), 40));
}

struct Held final : HeldUpdates {
  explicit Held(bool recorded)
      : HeldUpdates({test::some_run(), test::small_layout(), 24, recorded},
                    LargeVector<std::int32_t>(test::small_layout().params()), 1 << 20, SIZE_MAX) {}
  Result<gossip::Accepted> accept(const gossip::StoredUpdate&) override { return gossip::Accepted::duplicate; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_joined_is_split) {
  const Bytes update = some_payload(1), joined = compress::with_record(record, update);
  BOOST_TEST(joined.size() <= record.size() + update.size() + compress::record_overhead);
  const auto parts = compress::split_record(joined);
  BOOST_REQUIRE(parts.has_value());
  BOOST_TEST(Bytes(parts->record.begin(), parts->record.end()) == record);
  BOOST_TEST(Bytes(parts->update.begin(), parts->update.end()) == update);
  BOOST_TEST(!compress::split_record(update).has_value());
  BOOST_TEST(compress::update_part(update).size() == update.size());
  for (std::size_t cut = 0; cut < 2 + record.size(); ++cut)
    BOOST_TEST(!compress::split_record(BytesView(joined).first(cut)).has_value());
}

BOOST_AUTO_TEST_CASE(on_a_link_the_update_is_coded_and_the_record_stays) {
  const ParamLayout layout = test::small_layout();
  PayloadCoder sender(layout), receiver(layout);
  for (const gossip::Coding coding : {gossip::Coding::adapt, gossip::Coding::link, gossip::Coding::link}) {
    const Bytes payload = compress::with_record(record, some_payload(2));
    const auto received = receiver.decode(coding, sender.encode(coding, payload));
    BOOST_REQUIRE(received.ok());
    BOOST_TEST(*received == payload);
  }
}

BOOST_AUTO_TEST_CASE(a_run_has_them_all_or_none) {
  const Bytes update = some_payload(3), joined = compress::with_record(record, update);
  BOOST_TEST(Held(false).decode(update).ok());
  BOOST_TEST(!Held(false).decode(joined).ok());
  BOOST_TEST(Held(true).decode(joined).ok());
  BOOST_TEST(!Held(true).decode(update).ok());
}

BOOST_AUTO_TEST_SUITE_END()
