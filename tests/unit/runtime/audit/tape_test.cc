// Tapes: what is written is read; what no writer has written is refused.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <limits>

#include "runtime/audit/tape.h"
#include "runtime/base/prng.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(tapes)

namespace {

StreamId stream(std::uint8_t number) {
  StreamId id;
  id.bytes[0] = number;
  return id;
}

audit::StepRecord first_record() {
  return {.start = audit::TapeStart{.repeatable = true, .shard = 2, .shards = 5, .local_steps = true,
                                    .continues = UpdateKey{stream(9), 300}},
          .held = true, .period = 7, .peers = 4, .batches = 3, .brake = 0.25, .density = 0.001};
}

// Views that grow, get gaps and lose names, with records of all kinds.
std::vector<audit::TapeReader::Read> some_steps(std::size_t count) {
  Prng prng(5);
  gossip::HaveSet view;
  std::vector<audit::TapeReader::Read> steps;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::uint64_t more = prng.below(4); more > 0; --more)
      view.insert({stream(static_cast<std::uint8_t>(prng.below(6))), 1 + prng.below(40)});
    if (i % 10 == 9) view.erase(view.streams().begin()->first, {1, 5});
    audit::StepRecord record{.held = i % 3 == 0, .flush = i % 7 == 1, .drop_residual = i % 11 == 2,
                             .period = i + 1, .peers = 1 + i % 4, .batches = 1 + i % 2, .density = 0.01};
    if (i == 0) record.start = first_record().start;
    if (i % 2 == 1) record.in_flight = {{i, 2}, {i + 1, 1, i % 3 == 0 ? 0.25 : 0.5}};
    steps.push_back({std::move(record), view});
  }
  return steps;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
  const auto steps = some_steps(60);
  audit::TapeWriter writer;
  audit::TapeReader reader;
  for (std::size_t i = 0; i < steps.size(); i += 3) {
    for (std::size_t k = i; k < i + 3; ++k) writer.add(steps[k].record, steps[k].view);
    const auto read = reader.read(writer.take());
    BOOST_REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().text));
    BOOST_REQUIRE(read->size() == 3u);
    for (std::size_t k = 0; k < 3; ++k) {
      BOOST_TEST(((*read)[k].record == steps[i + k].record));
      BOOST_TEST(((*read)[k].view == steps[i + k].view));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_step_costs_a_few_bytes_a_stream) {
  gossip::HaveSet view;
  audit::TapeWriter writer;
  for (std::uint64_t seq = 1; seq <= 20; ++seq) {
    for (std::uint8_t number = 0; number < 16; ++number) view.insert({stream(number), seq});
    audit::StepRecord record{.period = seq, .peers = 16, .density = 0.001};
    if (seq == 1) record.start = first_record().start;
    writer.add(record, view);
    const std::size_t bytes = writer.take().size();
    if (seq > 2) BOOST_TEST(bytes <= 16 + 4 * 16u);
  }
}

BOOST_AUTO_TEST_CASE(one_that_nobody_can_repeat_ends_at_its_class) {
  audit::TapeWriter writer;
  writer.add({.start = audit::TapeStart{}}, {});
  const auto read = audit::TapeReader().read(writer.take());
  BOOST_REQUIRE(read.ok());
  BOOST_REQUIRE(read->size() == 1u);
  BOOST_TEST(!read->front().record.start->repeatable);
}

BOOST_AUTO_TEST_CASE(damaged_tapes_are_refused_or_mean_something_else) {
  const auto steps = some_steps(6);
  audit::TapeWriter writer;
  for (const auto& step : steps) writer.add(step.record, step.view);
  const Bytes tape = writer.take();
  for (std::size_t cut = 1; cut < tape.size(); ++cut) {
    const auto read = audit::TapeReader().read(BytesView(tape).first(cut));
    if (read) BOOST_TEST(read->size() < steps.size());  // cut between two records
  }
  Prng prng(3);
  for (int i = 0; i < 20'000; ++i) {
    Bytes damaged = tape;
    for (std::uint64_t hits = 1 + prng.below(3); hits > 0; --hits)
      damaged[prng.below(damaged.size())] = static_cast<std::uint8_t>(prng.next());
    (void)audit::TapeReader().read(damaged);  // whatever it says, it stays within its bounds
  }
}

BOOST_AUTO_TEST_CASE(plans_that_no_peer_makes_are_refused) {
  const auto refused = [](audit::StepRecord record) {
    record.start = first_record().start;
    audit::TapeWriter writer;
    writer.add(record, {});
    return !audit::TapeReader().read(writer.take()).ok();
  };
  BOOST_TEST(!refused({.density = 0.1}));
  BOOST_TEST(refused({.density = 0}));
  BOOST_TEST(refused({.brake = 1.5, .density = 0.1}));
  BOOST_TEST(refused({.brake = -1, .density = 0.1}));
  BOOST_TEST(refused({.brake = std::numeric_limits<double>::quiet_NaN(), .density = 0.1}));
  BOOST_TEST(refused({.peers = 0, .density = 0.1}));
  BOOST_TEST(refused({.batches = 0, .density = 0.1}));
  BOOST_TEST(refused({.density = 0.1, .in_flight = {{3, 1}, {3, 1}}}));
  BOOST_TEST(refused({.density = 0.1, .in_flight = {{3, 0}}}));
  BOOST_TEST(refused({.density = 0.1, .in_flight = {{3, 1, 1.5}}}));
}

namespace {

// The tapes of a stream's updates, each of one step; every `segment`-th begins a segment.
std::vector<Bytes> in_segments(const std::vector<audit::TapeReader::Read>& steps, std::uint64_t segment) {
  audit::TapeWriter writer;
  std::vector<Bytes> tapes;
  for (audit::TapeReader::Read step : steps) {
    if (tapes.size() % segment == 0) {
      step.record.start = first_record().start;
      step.record.segment = audit::SegmentStart{.root = {}, .bytes = 900, .pieces = tapes.size()};
    }
    writer.add(step.record, step.view);
    tapes.push_back(writer.take());
  }
  return tapes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_segment_is_read_without_the_stream_before_it) {
  const auto steps = some_steps(60);
  const std::vector<Bytes> tapes = in_segments(steps, 8);
  for (std::uint64_t first = 1; first <= tapes.size(); first += 8) {
    audit::TapeReader reader(8, first);
    for (std::uint64_t seq = first; seq <= tapes.size(); ++seq) {
      const auto read = reader.read(tapes[seq - 1]);
      BOOST_REQUIRE_MESSAGE(read.ok(), seq << ": " << (read.ok() ? "" : read.error().text));
      BOOST_TEST((read->front().view == steps[seq - 1].view));
      BOOST_TEST(read->front().record.segment.has_value() == ((seq - 1) % 8 == 0));
      if (read->front().record.segment) BOOST_TEST(read->front().record.segment->pieces == seq - 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(segments_begin_where_the_run_says_and_nowhere_else) {
  const std::vector<Bytes> tapes = in_segments(some_steps(20), 8);
  const auto all_are_read = [&](audit::TapeReader reader) {
    return std::all_of(tapes.begin(), tapes.end(), [&](const Bytes& tape) { return reader.read(tape).ok(); });
  };
  BOOST_TEST(all_are_read(audit::TapeReader(8)));
  BOOST_TEST(!all_are_read(audit::TapeReader()));
  BOOST_TEST(!all_are_read(audit::TapeReader(4)));
  BOOST_TEST(!all_are_read(audit::TapeReader(16)));
}

BOOST_AUTO_TEST_CASE(a_segment_with_another_start_than_its_stream_is_refused) {
  audit::TapeWriter writer;
  audit::TapeReader reader(1);
  audit::StepRecord record{.start = first_record().start, .segment = audit::SegmentStart{}, .density = 0.1};
  writer.add(record, {});
  BOOST_TEST(reader.read(writer.take()).ok());
  record.start->shard = 3;
  writer.add(record, {});
  BOOST_TEST(!reader.read(writer.take()).ok());
}

BOOST_AUTO_TEST_SUITE_END()
