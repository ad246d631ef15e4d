// Payloads on the device against compress/payload/update.h: the same bytes, the same entries, the same errors; and the
// slots alone against compress/payload/rice_kernels.h, with guards and damaged bits.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "compress/payload/apply.h"
#include "compress/payload/crc32c.h"
#include "compress/payload/head.h"
#include "compress/payload/rice.h"
#include "compress/payload/rice_kernels.h"
#include "gpu/compress/codec.h"
#include "runtime/base/bytes.h"
#include "runtime/replica/fingerprint.h"
#include "tests/gpu/target.h"
#include "tests/unit/compress/generated.h"

using namespace rumor;
using namespace rumor::gpu;
using compress::SparseUpdate;

BOOST_AUTO_TEST_SUITE(gpu_codec)

namespace {

DeviceUpdate on_target(const Target& target, const ParamLayout& layout, const SparseUpdate& update) {
  DeviceUpdate moved;
  moved.make_room(*target.gpu, update.index.size()).ok();
  moved.index.write(update.index.data(), update.index.size());
  moved.negative.write(update.negative.data(), update.negative.size());
  moved.count = static_cast<std::uint32_t>(update.index.size());
  moved.step = update.step;
  moved.tensor_step = update.tensor_step;
  const TensorCounter counter = TensorCounter::create(*target.gpu, layout).value();
  BOOST_TEST_REQUIRE(counter.count(moved).ok());
  BOOST_TEST_REQUIRE(moved.set_steps(*target.gpu).ok());
  return moved;
}

SparseUpdate read_back(const DeviceUpdate& moved) {
  SparseUpdate update;
  update.index.resize(moved.count);
  update.negative.resize(moved.count);
  BOOST_TEST_REQUIRE(moved.index.read(update.index.data(), moved.count).ok());
  BOOST_TEST_REQUIRE(moved.negative.read(update.negative.data(), moved.count).ok());
  update.step = moved.step;
  update.tensor_step = moved.tensor_step;
  return update;
}

void check_round(std::uint64_t order, const ParamLayout& layout, const SparseUpdate& update) {
  const Target target(order);
  DeviceCodec codec(*target.gpu, layout);
  const Bytes expected = compress::encode(layout, update);
  const Result<Bytes> payload = codec.encode(on_target(target, layout, update));
  BOOST_TEST_REQUIRE(payload.ok());
  BOOST_TEST((*payload == expected));
  DeviceUpdate decoded;
  const Result<void> done = codec.decode(expected, decoded);
  BOOST_TEST_REQUIRE(done.ok());
  BOOST_TEST((read_back(decoded) == update));
}

// The GPU's answer to bytes that may be damaged is the CPU's, to the word.
bool check_answer(DeviceCodec& codec, const ParamLayout& layout, BytesView bytes) {
  const Result<SparseUpdate> expected = compress::decode(layout, bytes);
  DeviceUpdate decoded;
  const Result<void> got = codec.decode(bytes, decoded);
  BOOST_TEST_REQUIRE(got.ok() == expected.ok());
  if (expected)
    BOOST_TEST((read_back(decoded) == *expected));
  else
    BOOST_TEST(got.error().text == expected.error().text);
  return expected.ok();
}

Bytes damaged(Prng& prng, Bytes bytes) {
  const std::uint64_t kind = prng.below(4);
  if (kind == 0) bytes.resize(prng.below(bytes.size() + 1));
  if (kind == 1) bytes.push_back(static_cast<std::uint8_t>(prng.chance(1, 2) ? 0 : prng.below(256)));
  if (kind >= 2 && !bytes.empty())
    for (std::uint64_t flips = 1 + prng.below(3); flips > 0; --flips)
      bytes[prng.below(bytes.size())] ^= static_cast<std::uint8_t>(1u << prng.below(8));
  return bytes;
}

struct Sample {
  compress::RicePart part;
  std::vector<std::uint32_t> index;
  std::vector<std::uint8_t> negative;
};

Sample sample(Prng& prng) {
  const std::uint32_t counts[] = {1, 2, 31, 32, 33, 511, 512, 513, 4000, 16383, 16384};
  const std::uint32_t count =
      prng.chance(1, 2) ? counts[prng.below(11)] : static_cast<std::uint32_t>(1 + prng.below(16384));
  const std::uint64_t spread = std::uint64_t{1} << prng.below(32);
  const auto span =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(0x7fff'ffff, count + prng.below(count * spread + 1)));
  const auto first =
      static_cast<std::uint32_t>(prng.chance(1, 3) ? 0x7fff'ffffu - span : prng.below(0x7fff'ffffu - span + 1));
  const compress::RiceCode code = compress::rice_code(span, count);
  Sample made{{first, span, count, code.low_bits, code.thirds}, {}, {}};
  const bool gathered = prng.chance(1, 3);
  std::uint32_t position = 0;
  for (std::uint32_t needed = count; needed > 0; --needed) {
    const std::uint32_t room = span - position - needed;
    const bool jump = !gathered || needed * 2 < count || prng.chance(1, 50);
    const std::uint64_t gap = jump ? prng.below(2 * std::uint64_t{room} / needed + 1) : prng.below(3);
    position += static_cast<std::uint32_t>(std::min<std::uint64_t>(gap, room));
    made.index.push_back(first + position++);
    made.negative.push_back(static_cast<std::uint8_t>(prng.below(2)));
  }
  return made;
}

CodePart code_part(const compress::RicePart& part, bool must_fill) {
  return {part.first, part.span, part.count, part.low_bits, part.thirds ? 1u : 0u, must_fill ? 1u : 0u};
}

}  // namespace

BOOST_AUTO_TEST_CASE(encode_and_decode_give_the_bytes_and_entries_of_the_cpu) {
  Prng prng(11);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const ParamLayout layout =
        prng.chance(1, 4) ? compress::large_layout(prng) : compress::random_layout(prng, 12, 3000);
    SparseUpdate update = compress::any_update(prng, layout);
    if (prng.chance(1, 3)) compress::give_own_steps(prng, layout, update);
    check_round(seed % 7, layout, update);
  }
}

// Many together: the entries of each, one behind the other; or, where one is damaged, its error.
BOOST_AUTO_TEST_CASE(payloads_are_decoded_together) {
  Prng prng(18);
  int damages = 0;
  for (std::uint64_t order = 0; order < 16; ++order) {
    const Target target(order);
    const ParamLayout layout =
        prng.chance(1, 4) ? compress::large_layout(prng) : compress::random_layout(prng, 12, 3000);
    DeviceCodec codec(*target.gpu, layout);
    DeviceUpdate decoded;
    for (const std::size_t count : {0u, 1u, 2u, 5u}) {
      std::vector<SparseUpdate> updates;
      std::vector<Bytes> payloads;
      for (std::size_t i = 0; i < count; ++i) {
        updates.push_back(compress::any_update(prng, layout));
        if (prng.chance(1, 3)) compress::give_own_steps(prng, layout, updates.back());
        payloads.push_back(compress::encode(layout, updates.back()));
      }
      std::vector<BytesView> views(payloads.begin(), payloads.end());
      const auto counts = codec.decode_all(views, decoded);
      BOOST_TEST_REQUIRE(counts.ok());
      BOOST_TEST_REQUIRE(counts->size() == count);
      SparseUpdate all, expected;
      for (const SparseUpdate& update : updates) {
        expected.index.insert(expected.index.end(), update.index.begin(), update.index.end());
        expected.negative.insert(expected.negative.end(), update.negative.begin(), update.negative.end());
        BOOST_TEST((*counts)[static_cast<std::size_t>(&update - updates.data())] == update.index.size());
      }
      BOOST_TEST((read_back(decoded) == expected));
      if (count == 0) continue;
      const std::size_t which = prng.below(count);
      const Bytes hurt = damaged(prng, payloads[which]);
      const auto error = compress::decode(layout, hurt);
      if (error) continue;
      views[which] = hurt;
      const auto refused = codec.decode_all(views, decoded);
      BOOST_TEST_REQUIRE(!refused.ok());
      BOOST_TEST(refused.error().text == error.error().text);
      BOOST_TEST(decoded.count == 0u);
      ++damages;
    }
  }
  BOOST_TEST(damages > 20);
}

BOOST_AUTO_TEST_CASE(sizes_at_which_segments_begin) {
  Prng prng(12);
  for (const std::uint32_t count : {0u, 1u, 16383u, 16384u, 16385u, 32768u, 32769u, 49000u}) {
    const ParamLayout layout = compress::layout_of({1, 50000, 7, 3});
    check_round(count, layout, compress::random_update(prng, layout.params(), count, 77));
  }
  const ParamLayout one = compress::layout_of({1});
  check_round(1, one, compress::random_update(prng, 1, 1, 0x7fff'ffff));
}

BOOST_AUTO_TEST_CASE(positions_reach_the_end_of_31_bits) {
  Prng prng(13);
  const ParamLayout layout = compress::layout_of({5, 0x7fff'ffff - 5});
  for (std::uint64_t order = 0; order < 4; ++order) {
    SparseUpdate update{.step = 3, .index = {}, .negative = {}, .tensor_step = {}};
    for (std::uint32_t e = 0; e < 40000; ++e)
      update.index.push_back(e * 53000u + static_cast<std::uint32_t>(prng.below(53000)));
    update.index.push_back(0x7fff'fffd);
    update.index.push_back(0x7fff'fffe);
    std::sort(update.index.begin(), update.index.end());
    update.index.erase(std::unique(update.index.begin(), update.index.end()), update.index.end());
    for (std::size_t e = 0; e < update.index.size(); ++e)
      update.negative.push_back(static_cast<std::uint8_t>(prng.below(2)));
    check_round(order, layout, update);
  }
}

BOOST_AUTO_TEST_CASE(damaged_payloads_get_the_answer_of_the_cpu) {
  Prng prng(14);
  int accepted = 0, rejected = 0;
  for (int round = 0; round < 25; ++round) {
    const Target target(static_cast<std::uint64_t>(round));
    const ParamLayout layout = prng.chance(1, 8) ? compress::large_layout(prng) : compress::random_layout(prng, 6, 300);
    DeviceCodec codec(*target.gpu, layout);
    SparseUpdate update = compress::any_update(prng, layout);
    if (prng.chance(1, 4)) compress::give_own_steps(prng, layout, update);
    const Bytes payload = compress::encode(layout, update);
    for (int d = 0; d < 12; ++d) check_answer(codec, layout, damaged(prng, payload)) ? ++accepted : ++rejected;
  }
  BOOST_TEST(accepted > 0);
  BOOST_TEST(rejected > 60);
}

// Whoever makes a payload makes its checksums, too: right ones prove nothing about the entries.
BOOST_AUTO_TEST_CASE(damage_under_right_checksums_is_found_in_any_payload) {
  Prng prng(19);
  const ParamLayout layout = compress::layout_of({50'000, 7});
  int refusals = 0;
  for (std::uint64_t order = 0; order < 6; ++order) {
    const Bytes good = compress::encode(layout, compress::random_update(prng, layout.params(), 40'000, 9));
    compress::PayloadStart start = compress::open_payload(layout, good).value();
    compress::Segments segments = compress::cut_segments(layout, start.head.counts);
    compress::SegmentTable table =
        compress::take_table(start.in, good, layout, segments, compress::TableKind::canonical).value();
    Bytes bodies(good.begin() + static_cast<std::ptrdiff_t>(table.begin), good.end());
    compress::SegmentPlace& hurt = table.places[prng.below(table.places.size())];
    std::fill_n(bodies.begin() + static_cast<std::ptrdiff_t>(hurt.offset + hurt.bytes / 2), hurt.bytes / 4,
                order % 2 == 0 ? 0xff : 0);
    hurt.checksum = compress::crc32c(BytesView(bodies).subspan(hurt.offset, hurt.bytes));
    Bytes bad = compress::put_table(compress::begin_payload(start.head), segments, table.places,
                                    compress::TableKind::canonical);
    bad.insert(bad.end(), bodies.begin(), bodies.end());
    const Result<SparseUpdate> expected = compress::decode(layout, bad);
    const Target target(order);
    DeviceCodec codec(*target.gpu, layout);
    DeviceUpdate decoded;
    check_answer(codec, layout, bad);
    const BytesView views[] = {good, bad, good};
    const auto got = codec.decode_all(views, decoded);
    BOOST_TEST_REQUIRE(got.ok() == expected.ok());
    if (expected) continue;
    BOOST_TEST(got.error().text == expected.error().text);
    ++refusals;
  }
  BOOST_TEST(refusals > 1);
}

// Several parts with any bits before them, one segment each; nothing outside of their bits and entries is touched.
BOOST_AUTO_TEST_CASE(the_slots_write_and_read_any_part_anywhere) {
  Prng prng(15);
  for (std::uint64_t order = 0; order < 24; ++order) {
    const Target target(order);
    std::vector<CodePart> parts;
    std::vector<CodeSegment> segments;
    std::vector<std::uint32_t> index;
    std::vector<std::uint8_t> negative;
    Bytes expected;
    for (std::uint32_t s = 0; s < 3; ++s) {
      const std::size_t lead = prng.below(40);
      const std::uint64_t at = 8 * (expected.size() + lead) + prng.below(8);
      expected.resize(expected.size() + lead);
      const std::size_t from = expected.size();
      std::uint64_t end = at;
      segments.push_back({static_cast<std::uint32_t>(parts.size()), 0, index.size(), at, 0});
      for (std::uint32_t p = static_cast<std::uint32_t>(1 + prng.below(3)), left = 16384; p > 0; --p) {
        const Sample made = sample(prng);
        if (made.part.count > left) continue;
        left -= made.part.count;
        expected.resize(end / 8 + 1 + compress::rice_bits_max(made.part.span, made.part.count) / 8 + 72);
        std::fill(expected.begin() + static_cast<std::ptrdiff_t>(end == at ? from : (end + 7) / 8), expected.end(), 0);
        end = compress::rice_kernels_portable.encode(made.part, made.index.data(), made.negative.data(),
                                                     expected.data(), end);
        expected.resize((end + 7) / 8);
        parts.push_back(code_part(made.part, false));
        index.insert(index.end(), made.index.begin(), made.index.end());
        negative.insert(negative.end(), made.negative.begin(), made.negative.end());
        ++segments.back().parts;
      }
      if (end == at) expected.resize((at + 7) / 8);
      segments.back().end = 8 * expected.size();
    }
    expected.resize((expected.size() + 3) / 4 * 4 + 8);
    const auto count = static_cast<std::uint32_t>(segments.size());
    const Guarded<CodePart> code_parts(target, parts);
    const Guarded<CodeSegment> code_segments(target, segments);
    const Guarded<std::uint32_t> in_index(target, index, 1), out_index(target, index.size(), 3), sound(target, count);
    const Guarded<std::uint8_t> in_negative(target, negative, 1), out_negative(target, negative.size(), 5);
    const Guarded<std::uint8_t> bytes(target, Bytes(expected.size(), 0));
    const Guarded<std::uint64_t> ends(target, count);
    target.table().encode(target.device(), code_parts.data(), code_segments.data(), count, in_index.data(),
                          in_negative.data(), bytes.data(), ends.data());
    BOOST_TEST((bytes.read() == expected));
    const std::vector<std::uint64_t> got_ends = ends.read();
    for (std::uint32_t s = 0; s < count; ++s) BOOST_TEST((got_ends[s] + 7) / 8 * 8 == segments[s].end);
    target.table().decode(target.device(), code_parts.data(), code_segments.data(), count, bytes.data(),
                          out_index.data(), out_negative.data(), sound.data());
    for (const std::uint32_t s : sound.read()) BOOST_TEST(s == 1u);
    BOOST_TEST((out_index.read() == index));
    BOOST_TEST((out_negative.read() == negative));
  }
}

BOOST_AUTO_TEST_CASE(random_bits_are_read_as_the_portable_kernels_read_them) {
  Prng prng(16);
  std::uint32_t good = 0, bad = 0;
  for (std::uint64_t order = 0; order < 150; ++order) {
    const Target target(order);
    const Sample made = sample(prng);
    const std::uint64_t at = prng.below(64);
    Bytes bytes(at / 8 + 1 + compress::rice_bits_max(made.part.span, made.part.count) / 8 + 72, 0);
    std::uint64_t end =
        compress::rice_kernels_portable.encode(made.part, made.index.data(), made.negative.data(), bytes.data(), at);
    end = (end + 7) / 8 * 8;
    for (std::uint64_t flips = prng.below(4); flips > 0; --flips) {
      const std::uint64_t bit = at + prng.below(end - at);
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    }
    if (prng.chance(1, 6)) end += 8 * prng.below(3);  // a byte that belongs to nobody
    if (prng.chance(1, 4)) end -= 8 * prng.below(std::min<std::uint64_t>(end / 8 - at / 8, 5));
    std::vector<std::uint32_t> index(made.part.count);
    std::vector<std::uint8_t> negative(made.part.count);
    const bool must_fill = prng.chance(1, 4);
    const std::uint64_t after =
        compress::rice_kernels_portable.decode(made.part, bytes.data(), at, end, index.data(), negative.data());
    bool sound = after != 0 && end - after < 8 && (after == end || bytes[after / 8] >> (after % 8) == 0);
    // Whole bytes beyond the end are not of the segment.
    if (sound && must_fill) sound = index.back() == made.part.first + made.part.span - 1;
    const Guarded<CodePart> parts(target, std::vector<CodePart>{code_part(made.part, must_fill)});
    const Guarded<CodeSegment> segments(target, std::vector<CodeSegment>{{0, 1, 0, at, end}});
    const Guarded<std::uint8_t> in(target, bytes), got_negative(target, negative.size());
    const Guarded<std::uint32_t> got_index(target, index.size()), got_sound(target, 1);
    target.table().decode(target.device(), parts.data(), segments.data(), 1, in.data(), got_index.data(),
                          got_negative.data(), got_sound.data());
    BOOST_TEST_REQUIRE(got_sound.read()[0] == (sound ? 1u : 0u));
    ++(sound ? good : bad);
    const std::vector<std::uint32_t> got = got_index.read();
    const std::vector<std::uint8_t> signs = got_negative.read();
    if (sound) BOOST_TEST((got == index && signs == negative));
  }
  BOOST_TEST(good > 20u);
  BOOST_TEST(bad > 20u);
}

BOOST_AUTO_TEST_CASE(apply_moves_weights_view_and_fingerprint_as_the_cpu_does) {
  Prng prng(17);
  RunId run;
  for (std::uint8_t& byte : run.bytes) byte = static_cast<std::uint8_t>(prng.below(256));
  const Fingerprinter fingerprinter(run);
  const std::uint64_t seed = ByteReader(run.view()).u64();
  for (std::uint64_t order = 0; order < 40; ++order) {
    const Target target(order);
    const ParamLayout layout =
        prng.chance(1, 4) ? compress::large_layout(prng) : compress::random_layout(prng, 12, 3000);
    SparseUpdate update = compress::any_update(prng, layout);
    if (prng.chance(1, 2)) compress::give_own_steps(prng, layout, update);
    const DeviceUpdate moved = on_target(target, layout, update);
    const Entries entries = moved.entries();
    std::vector<std::int32_t> weights(layout.params());
    for (std::int32_t& weight : weights) weight = static_cast<std::int32_t>(prng.next());
    std::vector<float> view(weights.size(), -1.0f);
    const bool with_view = prng.chance(3, 4);
    const Guarded<std::int32_t> on_weights(target, weights, order % 4);
    const Guarded<float> on_view(target, view, order % 3);
    const Guarded<std::uint32_t> lanes(target, std::vector<std::uint32_t>{5, 7}),
        all(target, std::vector<std::uint32_t>{0, 0});
    target.table().apply(target.device(), &entries, on_weights.data(), with_view ? on_view.data() : nullptr, 0x1p-24f);
    target.table().fingerprint_entries(target.device(), &entries, seed, lanes.data());
    target.table().fingerprint_weights(target.device(), on_weights.data(), layout.params(), seed, all.data());
    const SparseUpdate* updates[] = {&update};
    if (with_view)
      compress::apply(layout, updates, weights, compress::FloatView{view, 0x1p-24f});
    else
      compress::apply(layout, updates, weights);
    BOOST_TEST((on_weights.read() == weights));
    BOOST_TEST((on_view.read() == view));
    const std::uint64_t expected =
        Fingerprinter::add(fingerprinter.of_update(layout, update), (std::uint64_t{7} << 32) | 5);
    const std::vector<std::uint32_t> got = lanes.read(), got_all = all.read();
    BOOST_TEST(((std::uint64_t{got[1]} << 32) | got[0]) == expected);
    BOOST_TEST(((std::uint64_t{got_all[1]} << 32) | got_all[0]) == fingerprinter.of_weights(weights));
  }
}

BOOST_AUTO_TEST_SUITE_END()
