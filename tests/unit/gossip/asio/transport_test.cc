// Transport over real loopback sockets: frames, order, back-pressure, closing, and what its events promise.
#include "gossip/asio/transport.h"

#include <boost/test/unit_test.hpp>

#include "runtime/base/limits.h"
#include "tests/unit/gossip/asio/harness.h"

namespace rumor::net::test {

using gossip::LinkId;

BOOST_AUTO_TEST_SUITE(transport)

BOOST_AUTO_TEST_CASE(both_ends_know_each_other) {
  Pair pair;
  BOOST_REQUIRE(pair.connect());
  BOOST_TEST((pair.client.ups[0].peer == pair.server.transport.id()));
  BOOST_TEST((pair.server.ups[0].peer == pair.client.transport.id()));
  BOOST_TEST(pair.client.ups[0].dialled_by_us);
  BOOST_TEST(!pair.server.ups[0].dialled_by_us);
  BOOST_TEST(pair.client.ups[0].remote_address == pair.address);
  BOOST_TEST(pair.server.ups[0].remote_address.starts_with("127.0.0.1:"));
  BOOST_TEST(pair.client.transport.links() == 1u);
}

BOOST_AUTO_TEST_CASE(frames_go_both_ways_in_order) {
  Pair pair;
  BOOST_REQUIRE(pair.connect());
  const std::size_t sizes[] = {1, 2, 3, 200, 16'383, 16'384, 16'385, 65'536, 100'000};
  std::vector<Bytes> sent;
  for (std::uint32_t i = 0; i < 9; ++i) {
    sent.push_back(patterned(i, sizes[i]));
    pair.client.transport.send(pair.client.link(), sent.back(), gossip::Lane::control);
    pair.server.transport.send(pair.server.link(), sent.back(), gossip::Lane::live);
  }
  BOOST_REQUIRE(
      pair.loop.until([&] { return pair.client.frame_count == 9 && pair.server.frame_count == 9; }));
  BOOST_TEST((pair.server.frames == sent));
  BOOST_TEST((pair.client.frames == sent));
}

BOOST_AUTO_TEST_CASE(the_largest_frame_passes) {
  Pair pair;
  BOOST_REQUIRE(pair.connect());
  const Bytes largest = patterned(7, limits::frame_bytes_max);
  for (int i = 0; i < 3; ++i) pair.client.transport.send(pair.client.link(), largest, gossip::Lane::live);
  BOOST_REQUIRE(pair.loop.until([&] { return pair.server.frame_count == 3; }));
  for (const Bytes& frame : pair.server.frames) BOOST_TEST((frame == largest));
}

BOOST_AUTO_TEST_CASE(ten_thousand_small_frames_share_socket_writes) {
  Pair pair;
  BOOST_REQUIRE(pair.connect());
  const std::uint64_t before = pair.client.transport.traffic().sent_bytes;
  constexpr std::uint32_t count = 10'000;
  constexpr std::size_t size = 200;
  for (std::uint32_t i = 0; i < count; ++i)
    pair.client.transport.send(pair.client.link(), patterned(i, size), gossip::Lane::live);
  BOOST_REQUIRE(pair.loop.until([&] { return pair.server.frame_count == count; }));
  for (std::uint32_t i = 0; i < count; ++i) BOOST_REQUIRE((pair.server.frames[i] == patterned(i, size)));
  // A TLS record of its own would cost each frame 22 bytes; together they cost less than one.
  const std::uint64_t wire = pair.client.transport.traffic().sent_bytes - before;
  BOOST_TEST(wire > count * (size + 4));
  BOOST_TEST(wire < count * (size + 5));
}

BOOST_AUTO_TEST_CASE(control_frames_overtake_data_frames) {
  Pair pair;
  BOOST_REQUIRE(pair.connect());
  for (std::uint32_t i = 0; i < 20; ++i)
    pair.client.transport.send(pair.client.link(), patterned(i, 50'000), gossip::Lane::live);
  pair.client.transport.send(pair.client.link(), patterned(100, 40), gossip::Lane::control);
  pair.client.transport.send(pair.client.link(), patterned(101, 40), gossip::Lane::control);
  BOOST_REQUIRE(pair.loop.until([&] { return pair.server.frame_count == 22; }));
  BOOST_TEST((pair.server.frames[0] == patterned(100, 40)));
  BOOST_TEST((pair.server.frames[1] == patterned(101, 40)));
  for (std::uint32_t i = 0; i < 20; ++i) BOOST_TEST((pair.server.frames[i + 2] == patterned(i, 50'000)));
}

BOOST_AUTO_TEST_CASE(backlog_is_told_once_each_way) {
  Pair pair;
  BOOST_REQUIRE(pair.connect());
  pair.server.keep_frames = false;
  constexpr std::uint32_t count = 100;
  constexpr std::size_t size = 100'000;
  for (std::uint32_t i = 0; i < count; ++i)
    pair.client.transport.send(pair.client.link(), Bytes(size, 1), gossip::Lane::live);
  BOOST_TEST(pair.client.backlogs.empty());  // never from within send()
  BOOST_TEST(pair.client.transport.queued_bytes(pair.client.link()) == count * (size + 4));
  BOOST_REQUIRE(pair.loop.until([&] { return pair.client.backlogs.size() == 1; }));
  BOOST_TEST(pair.client.backlogs[0]);
  BOOST_REQUIRE(pair.loop.until([&] { return pair.client.backlogs.size() == 2; }));
  BOOST_TEST(!pair.client.backlogs[1]);
  BOOST_TEST(pair.client.transport.queued_bytes(pair.client.link()) < limits::link_backlog_low);
  BOOST_REQUIRE(pair.loop.until([&] { return pair.server.frame_count == count; }));
  BOOST_TEST(pair.client.backlogs.size() == 2u);
}

BOOST_AUTO_TEST_CASE(close_flushes_what_is_queued) {
  Pair pair;
  BOOST_REQUIRE(pair.connect());
  for (std::uint32_t i = 0; i < 100; ++i)
    pair.client.transport.send(pair.client.link(), patterned(i, 30'000),
                               i % 2 == 0 ? gossip::Lane::control : gossip::Lane::live);
  pair.client.transport.close(pair.client.link(), "done here");
  pair.client.transport.send(pair.client.link(), patterned(100, 10),
                             gossip::Lane::control);                         // too late: ignored
  BOOST_TEST(pair.client.downs.empty());                                     // never from within close()
  BOOST_REQUIRE(pair.loop.until([&] { return !pair.client.downs.empty() && !pair.server.downs.empty(); }));
  BOOST_TEST(pair.server.frame_count == 100u);
  BOOST_TEST((pair.client.downs[pair.client.link()] == std::vector<std::string>{"done here"}));
  BOOST_TEST((pair.server.downs[pair.server.link()] == std::vector<std::string>{"closed by the other end"}));
  BOOST_TEST(pair.client.transport.links() == 0u);
}

BOOST_AUTO_TEST_CASE(both_may_close_at_once) {
  Pair pair;
  BOOST_REQUIRE(pair.connect());
  pair.client.transport.send(pair.client.link(), patterned(1, 10), gossip::Lane::control);
  pair.client.transport.close(pair.client.link(), "client leaves");
  pair.server.transport.close(pair.server.link(), "server leaves");
  BOOST_REQUIRE(pair.loop.until([&] { return !pair.client.downs.empty() && !pair.server.downs.empty(); }));
  BOOST_TEST(pair.client.downs[pair.client.link()].front() == "client leaves");
  BOOST_TEST(pair.server.downs[pair.server.link()].front() == "server leaves");
  BOOST_TEST(pair.server.frame_count == 0u);  // nothing is delivered from a link that was closed
}

BOOST_AUTO_TEST_CASE(no_frame_follows_a_close_from_within_an_event) {
  Pair pair;
  BOOST_REQUIRE(pair.connect());
  pair.server.on_each_frame = [&](LinkId link, BytesView) { pair.server.transport.close(link, "enough"); };
  for (std::uint32_t i = 0; i < 50; ++i)
    pair.client.transport.send(pair.client.link(), patterned(i, 100), gossip::Lane::live);
  BOOST_REQUIRE(pair.loop.until([&] { return !pair.client.downs.empty() && !pair.server.downs.empty(); }));
  BOOST_TEST(pair.server.frame_count == 1u);
  BOOST_TEST(pair.server.downs[pair.server.link()].size() == 1u);
}

BOOST_AUTO_TEST_CASE(stop_from_within_an_event_ends_everything) {
  Pair pair;
  BOOST_REQUIRE(pair.connect());
  pair.server.on_each_frame = [&](LinkId, BytesView) { pair.server.transport.stop(); };
  for (std::uint32_t i = 0; i < 50; ++i)
    pair.client.transport.send(pair.client.link(), patterned(i, 100), gossip::Lane::live);
  BOOST_REQUIRE(pair.loop.until([&] { return !pair.client.downs.empty(); }));
  BOOST_TEST(pair.server.frame_count == 1u);
  BOOST_TEST(pair.server.downs.empty());
  BOOST_TEST(pair.client.downs[pair.client.link()].front().starts_with("connection lost"));
}

BOOST_AUTO_TEST_CASE(a_link_can_come_again) {
  Pair pair;
  for (std::size_t round = 1; round <= 5; ++round) {
    BOOST_REQUIRE(pair.connect());
    pair.client.transport.send(pair.client.link(), patterned(1, 50), gossip::Lane::control);
    BOOST_REQUIRE(pair.loop.until([&] { return pair.server.frame_count == round; }));
    pair.server.transport.close(pair.server.link(), "again");
    BOOST_REQUIRE(pair.loop.until([&] { return pair.client.downs.size() == round; }));
  }
  BOOST_REQUIRE(pair.loop.until([&] { return pair.server.downs.size() == 5; }));  // five ids, each used once
  BOOST_TEST((pair.client.ups.back().link > pair.client.ups.front().link));
}

BOOST_AUTO_TEST_CASE(the_same_peer_comes_back_under_its_key) {
  Loop loop;
  End server(loop);
  const std::string address = server.listen();
  const Identity identity = Identity::ephemeral();
  for (std::size_t round = 1; round <= 2; ++round) {
    End client(loop, identity);
    client.transport.dial(address);
    BOOST_REQUIRE(loop.until([&] { return server.ups.size() == round; }));
    BOOST_TEST((server.ups.back().peer == identity.id()));
  }
  BOOST_REQUIRE(loop.until([&] { return server.downs.size() == 2; }));
}

BOOST_AUTO_TEST_CASE(sends_to_links_that_are_gone_are_ignored) {
  Pair pair;
  pair.client.transport.send(LinkId{77}, patterned(1, 10), gossip::Lane::control);
  pair.client.transport.close(LinkId{77}, "nobody");
  pair.loop.run_for();
  BOOST_TEST(pair.client.downs.empty());
  BOOST_TEST(pair.client.transport.queued_bytes(LinkId{77}) == 0u);
}

BOOST_AUTO_TEST_CASE(the_loop_runs_dry_after_stop) {
  Pair pair;
  BOOST_REQUIRE(pair.connect());
  pair.client.transport.send(pair.client.link(), patterned(1, 100'000), gossip::Lane::live);
  pair.client.transport.stop();
  pair.server.transport.stop();
  pair.loop.io.restart();
  pair.loop.io.run();  // returns: nothing is left to do
  BOOST_TEST(pair.client.downs.empty());
  BOOST_TEST(pair.server.frame_count == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::net::test
