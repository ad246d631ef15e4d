// Revocation: which updates it covers, and which forms are none.
#include "gossip/contract/revocation.h"

#include <boost/test/unit_test.hpp>

#include "gossip/contract/stream_name.h"

namespace rumor::gossip {

namespace {

NodeId node_of(std::uint8_t fill) {
  NodeId node;
  node.bytes.fill(fill);
  return node;
}

const NodeId revoked = node_of(5);
const StreamId first_stream = stream_of(revoked, 1), second_stream = stream_of(revoked, 2);
const StreamId foreign_stream = stream_of(node_of(6), 1);

Revocation decoded(const Revocation& from) {
  ByteWriter out;
  from.encode(out);
  ByteReader in(out.bytes());
  Revocation to = Revocation::decode(in);
  BOOST_TEST(in.done());
  return to;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(revocations)

BOOST_AUTO_TEST_CASE(the_owners_covers_a_range_or_a_node) {
  const Revocation some{revoked, first_stream, {3, 7}};
  BOOST_TEST(some.covers({first_stream, 3}));
  BOOST_TEST(!some.covers({first_stream, 8}));
  BOOST_TEST(!some.covers({second_stream, 3}));
  const Revocation all{revoked, {}};
  BOOST_TEST(all.covers({second_stream, seq_max}));
  BOOST_TEST(!all.covers({foreign_stream, 1}));
}

BOOST_AUTO_TEST_CASE(a_proof_covers_all_but_what_came_before) {
  const Revocation proof = Revocation::proof(revoked, {first_stream, 4}, {{second_stream, 9}});
  BOOST_TEST(proof.kept.size() == 2u);
  BOOST_TEST(!proof.covers({first_stream, 3}));
  BOOST_TEST(proof.covers({first_stream, 4}));
  BOOST_TEST(!proof.covers({second_stream, 9}));
  BOOST_TEST(proof.covers({second_stream, 10}));
  BOOST_TEST(proof.covers({stream_of(revoked, 3), 1}));
  BOOST_TEST(!proof.covers({foreign_stream, 1}));
  const Revocation from_the_start = Revocation::proof(revoked, {first_stream, 1}, {});
  BOOST_TEST(from_the_start.covers({first_stream, 1}));
  BOOST_TEST(from_the_start.kept.empty());
}

// The set is the same in whatever order they come, and the greatest stay.
BOOST_AUTO_TEST_CASE(a_proof_within_another_is_needless) {
  const Revocation early = Revocation::proof(revoked, {first_stream, 4}, {{second_stream, 9}});
  const Revocation later = Revocation::proof(revoked, {first_stream, 7}, {{second_stream, 9}});
  const Revocation other = Revocation::proof(revoked, {first_stream, 8}, {{second_stream, 5}});
  const Revocation owners{revoked, {}};
  BOOST_TEST((early.includes(later) && !later.includes(early) && early.includes(early)));
  BOOST_TEST((!early.includes(other) && !other.includes(early)));
  BOOST_TEST((owners.includes(early) && !early.includes(owners)));
  // Each names an update that the list of the other keeps all before.
  const Revocation here = Revocation::proof(revoked, {first_stream, 4}, {{second_stream, 8}});
  const Revocation there = Revocation::proof(revoked, {second_stream, 9}, {{first_stream, 3}});
  BOOST_TEST((here.includes(there) && there.includes(here)));
  const auto set_of = [](const std::vector<Revocation>& all) {
    std::set<Revocation> known;
    for (const Revocation& one : all)
      if (!is_needless(one, known)) add_revocation(one, known);
    return known;
  };
  BOOST_TEST((set_of({early, later, other}) == std::set<Revocation>{early, other}));
  BOOST_TEST((set_of({other, later, early}) == std::set<Revocation>{early, other}));
  BOOST_TEST((set_of({here, there}) == set_of({there, here})));
  BOOST_TEST(set_of({here, there}).size() == 1u);
  BOOST_TEST((set_of({later, owners}) == std::set<Revocation>{owners}));
  BOOST_TEST((set_of({owners, later}) == std::set<Revocation>{owners}));
}

BOOST_AUTO_TEST_CASE(bytes_give_it_back) {
  Revocation withdrawal = Revocation::withdrawal(revoked, {first_stream, 300});
  withdrawal.signature.bytes.fill(9);
  BOOST_TEST((decoded(withdrawal) == withdrawal));
  const Revocation proof = Revocation::proof(revoked, {first_stream, 4}, {{second_stream, 1'000}});
  BOOST_TEST((decoded(proof) == proof));
}

BOOST_AUTO_TEST_CASE(forms_that_are_none) {
  const Revocation good = Revocation::proof(revoked, {first_stream, 4}, {{second_stream, 9}});
  BOOST_TEST(!good.invalid());
  const auto broken = [&](const auto& change) {
    Revocation one = good;
    change(one);
    return one.invalid().has_value();
  };
  BOOST_TEST(broken([](Revocation& one) { one.false_update.stream = foreign_stream; }));
  BOOST_TEST(broken([](Revocation& one) { one.false_update.seq = 0; }));
  BOOST_TEST(broken([](Revocation& one) { one.false_update.seq = 6; }));  // keeps 3, not 5
  BOOST_TEST(broken([](Revocation& one) { one.kept.clear(); }));
  BOOST_TEST(broken([](Revocation& one) { std::swap(one.kept[0], one.kept[1]); }));
  BOOST_TEST(broken([](Revocation& one) { one.kept[1].seq = 0; }));
  BOOST_TEST(broken([](Revocation& one) { one.kept.push_back(one.kept[1]); }));
  BOOST_TEST(broken([](Revocation& one) { one.node = {}; }));
  BOOST_TEST(Revocation::withdrawal(revoked, {StreamId{}, 1}).invalid().has_value());
  BOOST_TEST(Revocation::withdrawal(revoked, {first_stream, 0}).invalid().has_value());
  // A list that is too long is not read to its end.
  ByteWriter out;
  out.u8(static_cast<std::uint8_t>(Revocation::Kind::proven));
  out.raw(revoked.view());
  out.raw(first_stream.view());
  out.varint(1);
  out.varint(100'000);
  out.raw(Bytes(100'000 * 17));
  ByteReader in(out.bytes());
  BOOST_TEST(Revocation::decode(in).invalid().has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip
