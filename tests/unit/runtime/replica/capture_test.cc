#include <boost/test/unit_test.hpp>

#include "runtime/replica/capture.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

namespace {

Bytes sample(const ParamLayout& layout) {
  Bytes bytes = encode_capture_head({test::some_run(), layout, 22});
  for (std::uint8_t n = 1; n <= 3; ++n) {
    const Bytes record = encode_capture_record(Bytes(n * 10, n));
    bytes.insert(bytes.end(), record.begin(), record.end());
  }
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_capture_round_trips) {
  const ParamLayout layout = test::small_layout();
  const auto capture = decode_capture(sample(layout));
  BOOST_REQUIRE(capture.ok());
  BOOST_TEST((capture->form.layout.hash() == layout.hash()));
  BOOST_TEST((capture->form.run == test::some_run()));
  BOOST_TEST(capture->form.grid_bits == 22);
  BOOST_REQUIRE(capture->payloads.size() == 3u);
  BOOST_TEST(capture->payloads[1] == Bytes(20, 2), boost::test_tools::per_element());
  BOOST_TEST(!capture->cut_off);
}

BOOST_AUTO_TEST_CASE(a_capture_cut_off_in_its_last_record_keeps_the_others) {
  Bytes bytes = sample(test::small_layout());
  bytes.resize(bytes.size() - 5);
  const auto capture = decode_capture(bytes);
  BOOST_REQUIRE(capture.ok());
  BOOST_TEST(capture->payloads.size() == 2u);
  BOOST_TEST(capture->cut_off);
}

BOOST_AUTO_TEST_CASE(other_files_and_impossible_records_are_refused) {
  BOOST_TEST(!decode_capture(Bytes{1, 2, 3}).ok());
  Bytes bytes = sample(test::small_layout());
  for (int i = 0; i < 5; ++i) bytes.push_back(0xff);
  bytes.push_back(1);
  bytes.resize(bytes.size() + 100);
  const auto refused = decode_capture(bytes);
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST((refused.error().code == Errc::corrupt));
}
