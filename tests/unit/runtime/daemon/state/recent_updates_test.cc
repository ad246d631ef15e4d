// Whoever asks for the newest updates gets a capture of some, never of much.
#include "runtime/daemon/state/recent_updates.h"

#include <boost/test/unit_test.hpp>

#include "runtime/replica/capture.h"

namespace rumor::daemon {

BOOST_AUTO_TEST_SUITE(recent_updates)

namespace {

const Bytes head(10, 7);

std::shared_ptr<const Bytes> payload(std::size_t bytes) { return std::make_shared<const Bytes>(bytes, 1); }

// A capture of payloads of these sizes in bytes.
std::string capture(const std::vector<std::size_t>& sizes) {
  std::string text(head.begin(), head.end());
  for (const std::size_t size : sizes) {
    const Bytes record = encode_capture_record(*payload(size));
    text.append(record.begin(), record.end());
  }
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(they_are_bounded_by_number_and_by_bytes) {
  RecentUpdates recent;
  recent.open(head);
  BOOST_TEST((recent.capture()() == capture({})));
  for (std::size_t i = 0; i < 100; ++i) recent.add(payload(10 + i));
  std::vector<std::size_t> last;
  for (std::size_t i = 36; i < 100; ++i) last.push_back(10 + i);
  BOOST_TEST((recent.capture()() == capture(last)));
  recent.add(payload(1 << 20));
  recent.add(payload(1 << 20));
  BOOST_TEST((recent.capture()() == capture({1 << 20, 1 << 20})));
  recent.add(payload(8 << 20));
  BOOST_TEST((recent.capture()() == capture({8 << 20})));
}

BOOST_AUTO_TEST_CASE(a_capture_is_of_the_moment_it_was_taken) {
  RecentUpdates recent;
  recent.open(head);
  recent.add(payload(5));
  const auto before = recent.capture();
  recent.add(payload(6));
  BOOST_TEST((before() == capture({5})));
  BOOST_TEST((recent.capture()() == capture({5, 6})));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::daemon
