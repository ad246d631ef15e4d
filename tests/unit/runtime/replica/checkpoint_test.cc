#include <boost/test/unit_test.hpp>

#include "runtime/replica/checkpoint.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

namespace {

struct Sample {
  ParamLayout layout = test::small_layout();
  RunForm form{test::some_run(), layout, 24};
  ReplicaState replica;
  LocalState local;
  Bytes bytes;

  Sample() {
    Prng prng(6);
    Replica r(test::some_run(), layout, LargeVector<std::int32_t>(layout.params(), 1000));
    local.node = test::node(9);
    for (std::uint64_t seq = 1; seq <= 5; ++seq) {
      const auto update = test::random_update(prng, layout.params(), 12);
      BOOST_REQUIRE(r.apply(test::header_for(update, test::stream(3), seq), update).ok());
    }
    r.mark({test::node(4), test::stream(8), {2, 6}, {}});
    r.mark({test::node(5), {}, {1, gossip::seq_max}, {}});
    replica = r.state();
    local.residual.assign(layout.params(), 0.25f);
    local.optimizer = {1, 2, 3};
    bytes = encode_checkpoint(form, replica, local);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_checkpoint_brings_everything_back) {
  const Sample s;
  const auto back = decode_checkpoint(s.form, s.bytes);
  BOOST_REQUIRE(back.ok());
  BOOST_TEST(back->replica.weights == s.replica.weights, boost::test_tools::per_element());
  BOOST_TEST((back->replica.have == s.replica.have));
  BOOST_TEST(back->replica.fingerprint == s.replica.fingerprint);
  BOOST_TEST(back->replica.samples == 80u);
  BOOST_TEST(back->replica.period == 5u);
  BOOST_TEST((back->replica.revocations == s.replica.revocations));
  BOOST_TEST(back->replica.revocations.size() == 2u);
  BOOST_TEST((back->local.node == test::node(9)));
  BOOST_TEST(back->local.residual == s.local.residual, boost::test_tools::per_element());
  BOOST_TEST(back->local.optimizer == s.local.optimizer, boost::test_tools::per_element());
  BOOST_TEST(encode_checkpoint(s.form, back->replica, back->local) == s.bytes,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_checkpoint_says_what_it_is_of) {
  const Sample s;
  const auto head = read_checkpoint_form(s.bytes);
  BOOST_REQUIRE(head.ok());
  BOOST_TEST((head->layout.hash() == s.layout.hash()));
  BOOST_TEST((head->run == test::some_run()));
}

BOOST_AUTO_TEST_CASE(revocations_have_one_order) {
  const Sample s;
  ByteWriter out;
  write_revocations(out, s.replica.revocations);
  const Bytes& bytes = out.bytes();
  const std::size_t half = (bytes.size() - 1) / 2;
  const auto reads = [&](std::size_t first, std::size_t second) {
    Bytes list{bytes[0]};
    for (const std::size_t which : {first, second})
      list.insert(list.end(), bytes.begin() + std::ptrdiff_t(1 + which * half),
                  bytes.begin() + std::ptrdiff_t(1 + (which + 1) * half));
    ByteReader in(list);
    std::set<gossip::Revocation> read;
    return read_revocations(in, read) && in.done() && read == s.replica.revocations;
  };
  BOOST_TEST(reads(0, 1));
  BOOST_TEST(!reads(1, 0));
  BOOST_TEST(!reads(0, 0));
  BOOST_TEST(!reads(1, 1));
}

BOOST_AUTO_TEST_CASE(revocations_of_other_kinds_come_behind_the_owners) {
  const Sample s;
  std::set<gossip::Revocation> all = s.replica.revocations;
  NodeId node;
  node.bytes.fill(7);
  const UpdateKey one{gossip::stream_of(node, 1), 5}, other{gossip::stream_of(node, 2), 9};
  all.insert(gossip::Revocation::withdrawal(node, one));
  all.insert(gossip::Revocation::proof(node, one, {other}));
  all.insert(gossip::Revocation::proof(node, other, {}));
  ByteWriter out;
  write_revocations(out, all);
  ByteReader in(out.bytes());
  std::set<gossip::Revocation> read;
  BOOST_TEST((read_revocations(in, read) && in.done() && read == all));
  for (std::size_t size = 0; size < out.size(); ++size) {
    ByteReader cut(BytesView(out.bytes()).first(size));
    BOOST_REQUIRE(!(read_revocations(cut, read) && cut.done()));
  }
}

BOOST_AUTO_TEST_CASE(every_truncation_is_refused) {
  const Sample s;
  for (std::size_t size = 0; size < s.bytes.size(); size += 7) {
    const auto cut = decode_checkpoint(s.form, BytesView(s.bytes).first(size));
    BOOST_REQUIRE(!cut.ok());
    BOOST_REQUIRE((cut.error().code == Errc::corrupt));
  }
}

BOOST_AUTO_TEST_CASE(every_flipped_bit_is_refused) {
  const Sample s;
  Prng prng(8);
  for (int round = 0; round < 400; ++round) {
    Bytes bytes = s.bytes;
    bytes[prng.below(bytes.size())] ^= static_cast<std::uint8_t>(1u << prng.below(8));
    BOOST_REQUIRE(!decode_checkpoint(s.form, bytes).ok());
  }
}

// Damage that the hash does not see, because whoever made it wrote a new one: each field still has to be
// right.
BOOST_AUTO_TEST_CASE(a_resealed_file_is_read_field_by_field) {
  const Sample s;
  Prng prng(8);
  std::size_t refused = 0;
  for (int round = 0; round < 400; ++round) {
    Bytes bytes(s.bytes.begin(), s.bytes.end() - 32);
    if (round % 2 == 0)
      bytes.resize(bytes.size() - 1 - prng.below(bytes.size() - 50));
    else
      bytes[prng.below(bytes.size())] ^= static_cast<std::uint8_t>(1u << prng.below(8));
    const Hash256 hash = sha256(bytes);
    bytes.insert(bytes.end(), hash.bytes.begin(), hash.bytes.end());
    const auto decoded = decode_checkpoint(s.form, bytes);
    if (!decoded.ok())
      ++refused;
    else if (Replica replica(test::some_run(), s.layout, LargeVector<std::int32_t>(s.layout.params()));
             !replica.restore(decoded->replica).ok())
      ++refused;
  }
  BOOST_TEST(refused >= 200u);  // every truncation, and every flip in weights, names or sizes
}

BOOST_AUTO_TEST_CASE(another_run_and_another_model_are_mismatches) {
  const Sample s;
  RunId other = test::some_run();
  other.bytes[0] ^= 1;
  const auto wrong_run = decode_checkpoint({other, s.layout, 24}, s.bytes);
  BOOST_REQUIRE(!wrong_run.ok());
  BOOST_TEST((wrong_run.error().code == Errc::mismatch));
  BOOST_TEST(wrong_run.error().text.find("--state") != std::string::npos);
  const auto wrong_model = decode_checkpoint({test::some_run(), test::small_layout(30, 20), 24}, s.bytes);
  BOOST_REQUIRE(!wrong_model.ok());
  BOOST_TEST((wrong_model.error().code == Errc::mismatch));
  const auto wrong_grid = decode_checkpoint({test::some_run(), s.layout, 20}, s.bytes);
  BOOST_REQUIRE(!wrong_grid.ok());
  BOOST_TEST((wrong_grid.error().code == Errc::mismatch));
}
