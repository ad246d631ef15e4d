// The algebra of have-sets against std::set, and their bytes.
#include "gossip/contract/have_set.h"

#include <boost/test/unit_test.hpp>

#include <set>

#include "runtime/base/prng.h"

namespace rumor::gossip {

namespace {

StreamId stream_named(std::uint64_t number) {
  StreamId stream;
  stream.bytes[0] = static_cast<std::uint8_t>(number);
  return stream;
}

using Model = std::set<UpdateKey>;

struct Compared {
  HaveSet set;
  Model model;

  void insert(Prng& prng) {
    const StreamId stream = stream_named(prng.below(4));
    const std::uint64_t first = 1 + prng.below(60);
    if (prng.chance(1, 2)) {
      BOOST_TEST(set.insert({stream, first}) == model.insert({stream, first}).second);
      return;
    }
    const std::uint64_t last = first + prng.below(12);
    set.insert(stream, {first, last});
    for (std::uint64_t seq = first; seq <= last; ++seq) model.insert({stream, seq});
  }
  Model keys() const {
    Model all;
    for (const auto& [stream, ranges] : set.streams()) {
      for (const SeqRange& range : ranges) {
        for (std::uint64_t seq = range.first; seq <= range.last; ++seq) all.insert({stream, seq});
      }
    }
    return all;
  }
};

Bytes bytes_of(const HaveSet& set) {
  ByteWriter out;
  set.encode(out);
  return out.take();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(have_set)

BOOST_AUTO_TEST_CASE(agrees_with_a_set_of_keys) {
  Prng prng(1);
  for (int round = 0; round < 200; ++round) {
    Compared a, b;
    const std::uint64_t inserts = prng.below(40);
    for (std::uint64_t i = 0; i < inserts; ++i) a.insert(prng);
    for (std::uint64_t i = 0; i < 20; ++i) b.insert(prng);
    a.set.check_invariants();
    BOOST_TEST((a.keys() == a.model));
    BOOST_TEST(a.set.count() == a.model.size());
    for (std::uint64_t seq = 1; seq < 75; ++seq) {
      BOOST_TEST(a.set.contains({stream_named(1), seq}) == a.model.contains({stream_named(1), seq}));
    }
    Model lacking;
    for (const UpdateKey& key : b.model) {
      if (!a.model.contains(key)) lacking.insert(key);
    }
    const HaveSet missing = a.set.missing_from(b.set);
    missing.check_invariants();
    BOOST_TEST((Compared{missing, {}}.keys() == lacking));
    BOOST_TEST(a.set.includes(b.set) == lacking.empty());
    HaveSet both = a.set;
    both.merge(b.set);
    both.check_invariants();
    BOOST_TEST(both.count() == a.model.size() + lacking.size());
    BOOST_TEST((both.includes(a.set) && both.includes(b.set)));
    HaveSet other_way = b.set;
    other_way.merge(a.set);
    BOOST_TEST((other_way == both));
    BOOST_TEST(bytes_of(other_way) == bytes_of(both), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(head_is_the_highest) {
  HaveSet set;
  BOOST_TEST(set.head(stream_named(1)) == 0u);
  set.insert(stream_named(1), {5, 9});
  set.insert(UpdateKey{stream_named(1), 2});
  BOOST_TEST(set.head(stream_named(1)) == 9u);
}

BOOST_AUTO_TEST_CASE(bytes_round_trip_and_are_unique) {
  Prng prng(2);
  for (int round = 0; round < 100; ++round) {
    Compared a;
    for (int i = 0; i < 30; ++i) a.insert(prng);
    const Bytes bytes = bytes_of(a.set);
    ByteReader in(bytes);
    const Result<HaveSet> back = HaveSet::decode(in);
    BOOST_REQUIRE(back.ok());
    BOOST_TEST(in.done());
    BOOST_TEST((back.value() == a.set));
    BOOST_TEST(back.value().count() == a.set.count());
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
      ByteReader part(BytesView(bytes).first(cut));
      BOOST_TEST(!HaveSet::decode(part).ok());
    }
    // Whatever decodes after a flipped bit encodes to the flipped bytes: there is one encoding per set.
    Bytes flipped = bytes;
    flipped[prng.below(flipped.size())] ^= static_cast<std::uint8_t>(1u << prng.below(8));
    ByteReader damaged(flipped);
    const Result<HaveSet> other = HaveSet::decode(damaged);
    if (!other.ok()) continue;
    other.value().check_invariants();
    const Bytes again = bytes_of(other.value());
    BOOST_REQUIRE(again.size() <= flipped.size());
    BOOST_TEST(std::equal(again.begin(), again.end(), flipped.begin()));
  }
}

BOOST_AUTO_TEST_CASE(refuses_what_it_would_not_write) {
  const auto decode = [](const auto& write) {
    ByteWriter out;
    write(out);
    ByteReader in(out.bytes());
    return HaveSet::decode(in);
  };
  const auto stream = [](ByteWriter& out, std::uint64_t number) { out.raw(stream_named(number).view()); };
  const auto no_ranges = [&](ByteWriter& out) { out.varint(1), stream(out, 1), out.varint(0); };
  BOOST_TEST(!decode(no_ranges).ok());
  const auto beyond = [&](ByteWriter& out) {
    out.varint(1), stream(out, 1), out.varint(1), out.varint(seq_max), out.varint(0);
  };
  BOOST_TEST(!decode(beyond).ok());
  const auto unsorted = [&](ByteWriter& out) {
    out.varint(2);
    for (const std::uint64_t number : {2, 1})
      stream(out, number), out.varint(1), out.varint(0), out.varint(0);
  };
  BOOST_TEST(!decode(unsorted).ok());
  const auto too_many = decode([](ByteWriter& out) { out.varint(1'000'000); });
  BOOST_REQUIRE(!too_many.ok());
  BOOST_TEST(static_cast<int>(too_many.error().code) == static_cast<int>(Errc::limit));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip
