#include "runtime/training/update_encoder.h"

#include <boost/test/unit_test.hpp>

#include "runtime/base/limits.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(update_encoder)

namespace {

// Entries of a hundred bytes each, wherever they might be.
struct LargeEntries final : compress::ChosenEntries {
  explicit LargeEntries(std::uint64_t entries_chosen) : entries(entries_chosen) {}
  std::uint64_t count() const override { return entries; }
  Result<Bytes> encode() override {
    if (++encodings == fails_at) return Error{Errc::io, "the device is gone"};
    return Bytes(entries * 100);
  }
  Result<void> shrink(std::uint32_t fewer) override {
    BOOST_TEST_REQUIRE((fewer >= 1 && fewer < entries));
    entries = fewer;
    return {};
  }
  const std::vector<std::uint32_t>& left_out() const override { return waiting; }

  std::uint64_t entries;
  std::vector<std::uint32_t> waiting;
  int encodings = 0, fails_at = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(no_payload_is_larger_than_an_update_may_be) {
  UpdateEncoder encoder;
  LargeEntries few(10), many(limits::payload_bytes_max / 50);
  BOOST_TEST(encoder.encode(few).value().size() == 1000u);
  BOOST_TEST(few.entries == 10u);
  const auto payload = encoder.encode(many);
  BOOST_REQUIRE(payload.ok());
  BOOST_TEST(payload->size() <= limits::payload_bytes_max);
  BOOST_TEST(payload->size() > limits::payload_bytes_max * 9 / 10);
  BOOST_TEST(payload->size() == many.entries * 100);
}

BOOST_AUTO_TEST_CASE(one_entry_is_sent_whatever_it_costs) {
  RunConfig config;
  config.bytes_per_update = 20;
  UpdateEncoder encoder(config, 1000);
  compress::Compressor compressor(test::small_layout(), {});
  encoder.plan({}, compressor);
  LargeEntries entries(7);
  BOOST_TEST(encoder.encode(entries).value().size() == 100u);
  BOOST_TEST(entries.entries == 1u);
}

BOOST_AUTO_TEST_CASE(an_error_of_the_device_comes_out) {
  UpdateEncoder encoder;
  LargeEntries entries(limits::payload_bytes_max / 50);
  entries.fails_at = 2;
  const auto payload = encoder.encode(entries);
  BOOST_REQUIRE(!payload.ok());
  BOOST_TEST((payload.error().code == Errc::io));
}

BOOST_AUTO_TEST_CASE(a_budget_by_time_saves_up_over_steps_that_send_nothing) {
  RunConfig config;
  config.bytes_per_second = 1000;
  const auto entries_after = [&](bool held_between) {
    const ParamLayout layout = test::small_layout();
    compress::Compressor compressor(layout, {});
    UpdateEncoder encoder(config, layout.params());
    for (int step = 0; step < 4; ++step) {  // a known cost of an entry, and a mean interval
      encoder.plan({.seconds = 0.01}, compressor);
      LargeEntries sent(1);
      BOOST_TEST(encoder.encode(sent).ok());
    }
    if (held_between) encoder.plan({.seconds = 0.5, .hold = true}, compressor);
    encoder.plan({.seconds = 0.5}, compressor);
    return compressor.target_entries();
  };
  BOOST_TEST(entries_after(true) > entries_after(false));
}

BOOST_AUTO_TEST_SUITE_END()
