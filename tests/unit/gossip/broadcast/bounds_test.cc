// The most that one link may make a node keep and do (PROTOCOL.md, section 8): a link that goes beyond it is closed and
// named, and the other links do not notice.
#include <boost/test/unit_test.hpp>
#include <algorithm>

#include "runtime/base/limits.h"
#include "tests/unit/gossip/world.h"

namespace rumor::gossip::test {

namespace {

StreamId stream_number(std::uint32_t number) {
  StreamId stream;
  for (std::size_t i = 0; i < 4; ++i) stream.bytes[i] = static_cast<std::uint8_t>(number >> (24 - 8 * i));
  stream.bytes[15] = 1;
  return stream;
}

// Three linked nodes; 1 is made to send to 0 what no honest node sends.
struct Flooded {
  Flooded() : world(3) {
    world.start_all();
    world.run_for(2s);
    BOOST_REQUIRE(linked(1) && linked(2));
  }
  bool linked(std::size_t other) {
    const auto peers = world.nodes[0].protocol->peers();
    return std::any_of(peers.begin(), peers.end(),
                       [&](const PeerInfo& peer) { return peer.node == world.nodes[other].id; });
  }
  void say(const Bytes& frame) {
    world.inject(1, 0, frame);
    world.run_for(1ms);
    world.nodes[0].protocol->check_invariants();
  }
  bool put_off(const std::string& words) {
    const auto& notes = world.nodes[0].notes;
    return !linked(1) && std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return note.find(words) != std::string::npos && note.find("ten minutes") != std::string::npos;
    });
  }
  void others_go_on() {
    BOOST_TEST(linked(2));
    world.publish(2);
    world.run_for(2s);
    BOOST_TEST(world.nodes[0].store->have().contains({world.nodes[2].stream, 1}));
    world.run_for(60s);
    BOOST_TEST(!linked(1));  // nor does it come back by dialling
  }

  World world;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(bounds)

BOOST_AUTO_TEST_CASE(streams_that_nobody_has) {
  Flooded flooded;
  for (std::uint32_t i = 0; i <= limits::streams_per_link_max && flooded.linked(1); ++i)
    flooded.say(encode(StreamDef{i, stream_number(i), {}}));
  flooded.world.run_for(1s);
  BOOST_TEST(flooded.put_off("names more streams than a link may"));
  flooded.others_go_on();
}

// Sixteen lives of 4,096 streams would fill the table if they were not forgotten.
BOOST_AUTO_TEST_CASE(the_table_of_streams_cannot_be_filled_by_coming_again) {
  Flooded flooded;
  std::uint32_t number = 0;
  for (int life = 0; life < 18; ++life) {
    for (std::uint32_t i = 0; i < limits::streams_per_link_max; ++i)
      flooded.world.inject(1, 0, encode(StreamDef{i, stream_number(number++), {}}));
    flooded.world.run_for(11s);  // shorter lives would be dialled again later and later
    BOOST_REQUIRE(flooded.linked(1));
    flooded.world.cut_between(0, 1);
    flooded.world.run_for(5s);
    BOOST_REQUIRE(flooded.linked(1));
  }
  BOOST_TEST(number > limits::streams_max);
  flooded.world.publish(2);
  flooded.world.run_for(2s);
  BOOST_TEST(flooded.world.nodes[0].store->have().contains({flooded.world.nodes[2].stream, 1}));
}

BOOST_AUTO_TEST_CASE(vectors_that_name_too_many_ranges) {
  Flooded flooded;
  for (std::uint32_t part = 0; part < 16 && flooded.linked(1); ++part) {
    Vector vector{{}, true, false};
    for (std::uint64_t i = 0; i < limits::ranges_per_frame_max; ++i) {
      const std::uint64_t seq = (part * limits::ranges_per_frame_max + i) * 2 + 1;
      vector.part.insert(stream_number(1), {seq, seq});
    }
    flooded.say(encode(vector));
    flooded.world.run_for(1s);
  }
  BOOST_TEST(flooded.put_off("names more ranges than a vector may"));
  flooded.others_go_on();
}

BOOST_AUTO_TEST_CASE(announcements_that_are_not_kept) {
  Flooded flooded;
  flooded.say(encode(StreamDef{0, stream_number(1), {}}));
  std::uint64_t seq = 1;
  for (int round = 0; round < 4000 && flooded.linked(1); ++round) {  // node 1 itself answers NOT_AVAILABLE
    Have have;
    for (int i = 0; i < 64; ++i) have.keys.push_back({0, seq++});
    flooded.say(encode(have));
    flooded.world.run_for(100ms);
  }
  BOOST_TEST(flooded.put_off("announces what it does not have"));
  BOOST_TEST(seq < 3 * limits::broken_announcements_max);
  flooded.others_go_on();
}

// It lives, and is silent about what it has announced.
BOOST_AUTO_TEST_CASE(announcements_without_an_answer) {
  Flooded flooded;
  flooded.world.set_backlog(1, 0, true);  // so node 1 itself serves no WANT
  flooded.say(encode(StreamDef{0, stream_number(1), {}}));
  const TimePoint began = flooded.world.now;
  for (std::uint64_t seq = 1; seq < 20'000 && flooded.linked(1); seq += 64) {
    Have have;
    for (std::uint64_t i = 0; i < 64; ++i) have.keys.push_back({0, seq + i});
    flooded.say(encode(have));
    flooded.world.run_for(1s);
  }
  BOOST_TEST(flooded.put_off("announces and does not give"));
  const double seconds = to_seconds(flooded.world.now - began);
  BOOST_TEST(seconds > 60);
  BOOST_TEST(seconds < 100);
  flooded.others_go_on();
}

BOOST_AUTO_TEST_CASE(an_update_that_never_ends) {
  Flooded flooded;
  const WorldNode& liar = flooded.world.nodes[1];
  flooded.say(encode(StreamDef{0, liar.stream, liar.id}));
  const Bytes piece(1000, 7);
  Data begun{0, {}, piece, Coding::canonical};
  begun.header.key.seq = 1;
  begun.more = true;
  flooded.say(encode(begun));
  for (int i = 0; i < 4; ++i) {  // slow is no crime
    flooded.world.run_for(50s);
    BOOST_REQUIRE(flooded.linked(1));
    flooded.say(encode(DataMore{piece, true}));
  }
  flooded.world.run_for(61s);
  BOOST_TEST(flooded.put_off("begins an update and does not go on with it"));
  flooded.others_go_on();
}

BOOST_AUTO_TEST_CASE(wants_of_one_who_does_not_read) {
  Flooded flooded;
  flooded.world.set_backlog(0, 1, true);
  flooded.say(encode(StreamDef{0, stream_number(1), {}}));
  Want want;
  for (std::uint64_t seq = 1; seq <= limits::keys_per_frame_max; ++seq) want.ranges.push_back({0, {seq, seq}});
  for (int i = 0; i < 3; ++i) flooded.say(encode(want));
  flooded.world.run_for(1s);
  BOOST_TEST(flooded.put_off("asks for more than it may at a time"));
  flooded.others_go_on();
}

BOOST_AUTO_TEST_CASE(missing_keys_of_one_link_leave_room_for_others) {
  Flooded flooded;
  flooded.say(encode(StreamDef{0, stream_number(1), {}}));
  for (std::uint64_t seq = 1; seq < 8 * limits::missing_per_link_max && flooded.linked(1); seq += 512) {
    Have have;
    for (std::uint64_t i = 0; i < 512; ++i) have.keys.push_back({0, seq + i});
    flooded.world.inject(1, 0, encode(have));
  }
  flooded.world.run_for(5ms);
  flooded.world.nodes[0].protocol->check_invariants();
  flooded.world.publish(2);
  flooded.world.run_for(2s);
  BOOST_TEST(flooded.world.nodes[0].store->have().contains({flooded.world.nodes[2].stream, 1}));
}

BOOST_AUTO_TEST_CASE(control_frames_without_end) {
  Flooded flooded;
  std::uint64_t sent = 0;
  for (; sent < 2 * limits::control_burst && flooded.linked(1); ++sent)
    flooded.world.inject(1, 0, encode(Ping{sent})), flooded.world.run_for(Duration{10});
  BOOST_TEST(flooded.put_off("asks for more work than a link may"));
  BOOST_TEST(sent >= limits::control_burst);
  flooded.others_go_on();
}

// The worst that an honest peer does is let through: 400 frames a second, for a minute.
BOOST_AUTO_TEST_CASE(a_busy_link_is_not_put_off) {
  Flooded flooded;
  for (std::uint64_t i = 0; i < 24'000; ++i)
    flooded.world.inject(1, 0, encode(Ping{i})), flooded.world.run_for(Duration{2'500});
  BOOST_TEST(flooded.linked(1));
}

BOOST_AUTO_TEST_CASE(questions_for_vectors_are_answered_at_a_measured_pace) {
  Flooded flooded;
  flooded.world.publish(2);
  flooded.world.run_for(2s);
  const auto answers = [&] {
    const auto& sent = flooded.world.sent_to(1);
    return std::count(sent.begin(), sent.end(), static_cast<std::uint8_t>(FrameType::vector));
  };
  const auto before = answers();
  for (int i = 0; i < 2'000; ++i) {
    flooded.world.inject(1, 0, encode(Vector{{}, false, true}));
    flooded.world.run_for(Duration{500});
  }
  BOOST_TEST(answers() - before <= 21);  // in a second, each 50 ms
  BOOST_TEST(answers() - before >= 1);
}

// A vector names every stream: where there are many, they are not told over and over while updates flow.
BOOST_AUTO_TEST_CASE(vectors_of_many_streams_come_less_often) {
  const auto vectors_in_a_minute = [](std::uint32_t streams) {
    World world(2);
    for (std::uint32_t number = 0; number < streams; ++number) {
      const StoredUpdate update = world.nodes[0].store->make(stream_number(number), world.nodes[0].id, 1, 8);
      BOOST_REQUIRE(world.nodes[1].store->accept(update).ok());
    }
    world.start_all();
    world.run_for(2s);
    world.publish_all(60s, 50);
    world.run_for(60s);
    const std::vector<std::uint8_t>& sent = world.sent_to(1);
    return std::count(sent.begin(), sent.end(), static_cast<std::uint8_t>(FrameType::vector));
  };
  const auto few = vectors_in_a_minute(10), many = vectors_in_a_minute(1'000);
  BOOST_TEST(few >= 5);
  BOOST_TEST(many <= few / 2);
  BOOST_TEST(many >= 1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
