// Cuts: that a copy made while updates come is of one moment, that others make the same one, and that what is
// fetched survives a restart and believes nothing that it has not hashed.
#include <boost/test/unit_test.hpp>

#include <set>

#include "runtime/replica/snapshots.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

namespace {

constexpr std::uint32_t cut_params = 5'000'000;  // 20 MB: more than is copied at a time

ParamLayout large_layout() {
  return ParamLayout::create({{"a", {cut_params / 2}, 0, 0}, {"b", {cut_params / 2}, 0, 0}}).value();
}

// A replica with a log and its snapshots.
struct Holder {
  ParamLayout layout = large_layout();
  Replica replica{test::some_run(), layout, LargeVector<std::int32_t>(cut_params, 77)};
  UpdateLog log{64 << 20};
  std::size_t installed = 0;
  Snapshots snapshots{RunForm{test::some_run(), layout, 24}, replica, log, [this](ReplicaState state) {
                        ++installed;
                        return replica.restore(std::move(state));
                      }};

  void take(const gossip::StoredUpdate& update) {
    auto entries = compress::decode(layout, *update.payload);
    BOOST_REQUIRE(entries.ok());
    BOOST_REQUIRE(replica.apply(update.header, std::move(*entries)).ok());
    log.append(update);
  }
  std::shared_ptr<const gossip::Cut> make(const gossip::HaveSet* names) {
    if (!snapshots.begin_cut(names)) return nullptr;
    while (!snapshots.advance_cut()) continue;
    return snapshots.cut();
  }
};

gossip::StoredUpdate random_stored(const Holder& peer, Prng& prng, std::uint64_t seq) {
  compress::SparseUpdate update;
  std::set<std::uint32_t> positions;
  for (int e = 0; e < 3'000; ++e) positions.insert(static_cast<std::uint32_t>(prng.below(cut_params)));
  update.index.assign(positions.begin(), positions.end());
  for (std::size_t e = 0; e < update.index.size(); ++e)
    update.negative.push_back(static_cast<std::uint8_t>(prng.below(2)));
  update.step = static_cast<std::int32_t>(1 + prng.below(1 << 20));
  gossip::StoredUpdate stored = test::stored(peer.layout, update, test::stream(1), seq);
  stored.header.fingerprint = peer.replica.fingerprinter().of_update(peer.layout, update);
  return stored;
}

std::vector<std::int32_t> unpacked(const gossip::Cut& cut) {
  std::vector<std::int32_t> weights(cut_params);
  std::span<std::int32_t> left = weights;
  for (std::uint32_t n = 0; n < cut.manifest().chunks.size(); ++n) {
    const auto chunk = left.first(std::min<std::size_t>(left.size(), gossip::chunk_bytes_of(4 * cut_params) / 4));
    BOOST_REQUIRE(unpack_chunk(cut.chunk(n), chunk).ok());
    left = left.subspan(chunk.size());
  }
  BOOST_REQUIRE(left.empty());
  return weights;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_cut_is_of_one_moment_though_updates_come_meanwhile) {
  Holder peer;
  Prng prng(1);
  std::uint64_t seq = 0;
  for (; seq < 5; ++seq) peer.take(random_stored(peer, prng, seq + 1));
  const std::vector<std::int32_t> then(peer.replica.weights().begin(), peer.replica.weights().end());
  const gossip::HaveSet names = peer.replica.have();
  BOOST_REQUIRE(peer.snapshots.begin_cut(nullptr).ok());
  std::size_t steps = 0;
  do {
    peer.take(random_stored(peer, prng, ++seq));
    if (seq % 3 == 0) {  // also what is taken back meanwhile
      const auto update = peer.log.find({test::stream(1), seq});
      peer.replica.take_back(update->header, *compress::decode(peer.layout, *update->payload));
      peer.log.erase({test::stream(1), seq});
    }
    ++steps;
  } while (!peer.snapshots.advance_cut());
  BOOST_TEST(steps > 5u);
  const auto cut = peer.snapshots.cut();
  BOOST_REQUIRE(cut != nullptr);
  BOOST_TEST((cut->manifest().names == names));
  BOOST_TEST((unpacked(*cut) == then));
  BOOST_TEST(peer.replica.verify());
}

BOOST_AUTO_TEST_CASE(who_has_more_makes_the_same_cut_as_long_as_its_log_goes_back) {
  Holder one, other;
  Prng prng(2);
  std::vector<gossip::StoredUpdate> updates;
  for (std::uint64_t seq = 1; seq <= 12; ++seq) updates.push_back(random_stored(one, prng, seq));
  for (std::size_t u = 0; u < 7; ++u) one.take(updates[u]);
  for (std::size_t u = 12; u-- > 0;) other.take(updates[u]);
  const auto cut = one.make(nullptr);
  BOOST_REQUIRE(cut != nullptr);
  const gossip::HaveSet names = cut->manifest().names;
  const auto same = other.make(&names);
  BOOST_REQUIRE(same != nullptr);
  BOOST_TEST((same->hash() == cut->hash()));
  BOOST_TEST((same->encoded_manifest() == cut->encoded_manifest()));
  BOOST_TEST((unpacked(*same) == unpacked(*cut)));
  other.log.erase(updates[9].header.key);
  const auto refused = other.snapshots.begin_cut(&names);
  BOOST_TEST((!refused.ok() && refused.error().code == Errc::limit));
}

BOOST_AUTO_TEST_CASE(a_damaged_replica_is_given_to_nobody) {
  Holder peer;
  Prng prng(3);
  peer.take(random_stored(peer, prng, 1));
  const_cast<std::int32_t&>(peer.replica.weights()[4'000'000]) ^= 1 << 20;  // a bit of memory
  BOOST_TEST((peer.make(nullptr) == nullptr));
}

BOOST_AUTO_TEST_CASE(a_download_goes_on_after_a_restart_and_believes_only_hashes) {
  Holder donor;
  Prng prng(4);
  for (std::uint64_t seq = 1; seq <= 3; ++seq) donor.take(random_stored(donor, prng, seq));
  const auto earlier = donor.make(nullptr);
  donor.take(random_stored(donor, prng, 4));
  const auto cut = donor.make(nullptr);
  BOOST_REQUIRE((earlier && cut));
  const auto chunks = static_cast<std::uint32_t>(cut->manifest().chunks.size());
  BOOST_REQUIRE(chunks == 39u);
  MemoryDisk disk;
  {
    Holder joiner;
    joiner.snapshots.open(disk);
    BOOST_REQUIRE(joiner.snapshots.begin_intake(cut->manifest()).ok());
    for (std::uint32_t n = 0; n < chunks; n += 2)
      BOOST_REQUIRE(joiner.snapshots.take_chunk(n, cut->chunk(n)).ok());
    // A chunk of another cut, a damaged one, and none at all.
    for (Bytes wrong : {earlier->chunk(1), cut->chunk(3), Bytes{}}) {
      if (!wrong.empty() && wrong == cut->chunk(3)) wrong[wrong.size() / 2] ^= 1;
      const auto taken = joiner.snapshots.take_chunk(1, wrong);
      BOOST_TEST((!taken.ok() && taken.error().code == Errc::corrupt));
    }
    BOOST_TEST(!joiner.snapshots.holds_chunk(1));
  }
  disk.files["join.chunks"][4 * gossip::chunk_bytes_of(4 * cut_params) + 12] ^= 4;  // in chunk 4
  Holder joiner;
  joiner.snapshots.open(disk);
  BOOST_REQUIRE(joiner.snapshots.intake() != nullptr);
  BOOST_TEST((*joiner.snapshots.intake() == cut->manifest()));
  for (std::uint32_t n = 0; n < chunks; ++n) {
    BOOST_TEST(joiner.snapshots.holds_chunk(n) == (n % 2 == 0 && n != 4));
    if (!joiner.snapshots.holds_chunk(n)) BOOST_REQUIRE(joiner.snapshots.take_chunk(n, cut->chunk(n)).ok());
  }
  BOOST_REQUIRE(joiner.snapshots.install(cut->period()).ok());
  BOOST_TEST(joiner.installed == 1u);
  BOOST_TEST((joiner.replica.digest() == donor.replica.digest()));
  BOOST_TEST(joiner.replica.samples() == donor.replica.samples());
  BOOST_TEST(disk.files.empty());
}

BOOST_AUTO_TEST_CASE(manifests_of_others_are_refused) {
  Holder donor, joiner;
  Prng prng(5);
  donor.take(random_stored(donor, prng, 1));
  const auto cut = donor.make(nullptr);
  BOOST_REQUIRE(cut != nullptr);
  const Bytes& bytes = cut->encoded_manifest();
  const auto same = gossip::Manifest::decode(bytes);
  BOOST_REQUIRE(same.ok());
  BOOST_TEST((*same == cut->manifest()));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    BOOST_REQUIRE(!gossip::Manifest::decode(BytesView(bytes).first(size)).ok());
  for (int round = 0; round < 300; ++round) {
    Bytes flipped = bytes;
    flipped[prng.below(flipped.size())] ^= static_cast<std::uint8_t>(1u << prng.below(8));
    const auto read = gossip::Manifest::decode(flipped);
    if (read.ok()) BOOST_TEST((read->encode() == flipped));
  }
  gossip::Manifest other = cut->manifest();
  other.head[0] ^= 1;
  BOOST_TEST((joiner.snapshots.begin_intake(other).error().code == Errc::mismatch));
  other = cut->manifest();
  other.bytes -= 4;
  BOOST_TEST(!joiner.snapshots.begin_intake(other).ok());
}

BOOST_AUTO_TEST_CASE(packed_chunks_come_back_and_garbage_does_not) {
  Prng prng(6);
  for (const int bits : {1, 8, 20, 32}) {
    std::vector<std::int32_t> weights(10'000), back(10'000);
    for (auto& w : weights)
      w = static_cast<std::int32_t>(static_cast<std::uint32_t>(prng.next()) << (32 - bits)) >> (32 - bits);
    const Bytes packed = pack_chunk(weights);
    BOOST_TEST(packed.size() <= 4 * weights.size() + 1);
    if (bits == 20) BOOST_TEST(packed.size() < 3 * weights.size());
    BOOST_REQUIRE(unpack_chunk(packed, back).ok());
    BOOST_TEST((back == weights));
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, packed.size() - 1})
      BOOST_TEST(!unpack_chunk(BytesView(packed).first(size), back).ok());
    std::vector<std::int32_t> shorter(9'999);
    BOOST_TEST(!unpack_chunk(packed, shorter).ok());
  }
}
