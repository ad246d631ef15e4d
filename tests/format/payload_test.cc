// The payload against its specification: the example of the text, the second decoder, and damaged bytes.
#include <boost/test/unit_test.hpp>

#include "compress/link/link_form.h"
#include "tests/format/slow_decoder.h"
#include "tests/unit/compress/generated.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(payload)

namespace {

std::vector<std::uint64_t> sizes_of(const ParamLayout& layout) {
  std::vector<std::uint64_t> sizes;
  for (const TensorInfo& tensor : layout.tensors()) sizes.push_back(tensor.size);
  return sizes;
}

bool same(const ParamLayout& layout, const SparseUpdate& update, const slow::Update& other) {
  bool equal = other.entries.size() == update.index.size();
  for (std::size_t e = 0; equal && e < update.index.size(); ++e) {
    const slow::Entry& entry = other.entries[e];
    const std::int32_t step = update.tensor_step.empty() ? update.step : update.tensor_step[entry.tensor];
    equal = layout.tensors()[entry.tensor].offset + entry.position == update.index[e] &&
            entry.minus == (update.negative[e] == 1) && entry.step == static_cast<std::uint64_t>(step);
  }
  return equal;
}

// Both decoders must agree, and what is accepted must be the one encoding. True when accepted.
bool judge(const ParamLayout& layout, const Bytes& bytes) {
  const Result<SparseUpdate> fast = decode(layout, bytes);
  const auto slow = slow::decode(sizes_of(layout), bytes);
  BOOST_TEST_REQUIRE(fast.ok() == slow.has_value());
  if (!fast.ok()) return false;
  BOOST_TEST_REQUIRE(same(layout, *fast, *slow));
  BOOST_TEST_REQUIRE((encode(layout, *fast) == bytes));
  return true;
}

// The same for a message of a link without history; nothing where the slow decoder knows a mode only by name.
std::optional<bool> judge_message(const ParamLayout& layout, const Bytes& bytes) {
  const Result<SparseUpdate> fast = decode_link_form(layout, bytes, nullptr);
  bool foreign = false;
  const auto slow = slow::decode_message(sizes_of(layout), bytes, foreign);
  if (foreign) return std::nullopt;
  BOOST_TEST_REQUIRE(fast.ok() == slow.has_value());
  if (fast.ok()) BOOST_TEST_REQUIRE(same(layout, *fast, *slow));
  return fast.ok();
}

struct Judged {
  int accepted = 0, refused = 0;
};

// Hands every copy with one bit flipped to flipped(bytes), which says whether it was accepted, if it can; and
// every copy that is cut off to cut(bytes).
template <typename Flipped, typename Cut>
void judge_damaged(const Bytes& bytes, Judged& judged, const Flipped& flipped, const Cut& cut) {
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    Bytes other = bytes;
    other[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    if (const std::optional<bool> accepted = flipped(other)) ++(*accepted ? judged.accepted : judged.refused);
  }
  for (std::size_t size = 0; size < bytes.size(); ++size)
    cut(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)));
}

constexpr SegmentMode described_modes[] = {SegmentMode::raw, SegmentMode::rice, SegmentMode::bitmap};

}  // namespace

// compress/FORMAT.md, chapter 8. These bytes come from the text, not from the program.
BOOST_AUTO_TEST_CASE(worked_example) {
  const ParamLayout layout = layout_of({16, 4});
  const SparseUpdate update{.step = 100, .index = {3, 9, 18}, .negative = {0, 1, 0}};
  const Bytes golden{0x3a, 0x24, 0xab, 0x77, 0x04};
  BOOST_TEST(to_hex(encode(layout, update)) == to_hex(golden));
  const Result<SparseUpdate> decoded = decode(layout, golden);
  BOOST_TEST_REQUIRE(decoded.ok());
  BOOST_TEST((*decoded == update));
  BOOST_TEST(judge(layout, golden));
}

BOOST_AUTO_TEST_CASE(empty_update) {
  const ParamLayout layout = layout_of({16, 4});
  BOOST_TEST(to_hex(encode(layout, {})) == "02");
  BOOST_TEST(judge(layout, {0x02}));
}

BOOST_AUTO_TEST_CASE(both_decoders_agree_on_generated_updates) {
  Prng prng(41);
  for (int i = 0; i < 5000; ++i) {
    const ParamLayout layout = random_layout(prng, 7, 300);
    SparseUpdate update = any_update(prng, layout);
    if (i % 2 == 1) give_own_steps(prng, layout, update);
    const Bytes bytes = encode(layout, update);
    const auto slow = slow::decode(sizes_of(layout), bytes);
    BOOST_TEST_REQUIRE(slow.has_value());
    BOOST_TEST_REQUIRE(same(layout, update, *slow));
  }
}

BOOST_AUTO_TEST_CASE(both_decoders_agree_on_many_segments) {
  Prng prng(45);
  for (int i = 0; i < 12; ++i) {
    const ParamLayout layout = large_layout(prng);
    const std::uint32_t count = 16'384 + static_cast<std::uint32_t>(prng.below(layout.params() - 16'384));
    SparseUpdate update = random_update(prng, layout.params(), i == 0 ? layout.params() : count, 4567);
    if (i % 2 == 1) give_own_steps(prng, layout, update);
    const Bytes bytes = encode(layout, update);
    const auto slow = slow::decode(sizes_of(layout), bytes);
    BOOST_TEST_REQUIRE(slow.has_value());
    BOOST_TEST_REQUIRE(same(layout, update, *slow));
  }
}

// Damage where a checksum does not hide it: in the table, with the checksums put right again.
BOOST_AUTO_TEST_CASE(tables_that_lie_are_judged_alike) {
  Prng prng(46);
  const ParamLayout layout = layout_of({60'000, 30});
  const SparseUpdate update = random_update(prng, layout.params(), 33'000, 1);
  const Bytes good = encode(layout, update);
  BOOST_TEST_REQUIRE(judge(layout, good));
  int refused = 0;
  const std::size_t head_bits = 8 * slow::head_bytes(sizes_of(layout), good);
  for (std::size_t bit = 8; bit < head_bits; ++bit) {
    Bytes flipped = good;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    slow::put_head_checksum(flipped, head_bits / 8);
    refused += judge(layout, flipped) ? 0 : 1;
  }
  BOOST_TEST(refused > 150);
}

BOOST_AUTO_TEST_CASE(both_decoders_agree_on_messages_in_every_mode_of_the_text) {
  Prng prng(47);
  for (int i = 0; i < 2000; ++i) {
    const ParamLayout layout = i % 100 == 0 ? large_layout(prng) : random_layout(prng, 7, 300);
    SparseUpdate update = any_update(prng, layout);
    if (update.index.empty()) continue;
    if (i % 2 == 1) give_own_steps(prng, layout, update);
    for (const SegmentMode mode : described_modes) {
      const Bytes message = encode_link_form_in(layout, update, mode, nullptr);
      bool foreign = false;
      const auto slow = slow::decode_message(sizes_of(layout), message, foreign);
      BOOST_TEST_REQUIRE(slow.has_value());
      BOOST_TEST_REQUIRE(same(layout, update, *slow));
      BOOST_TEST_REQUIRE((decode_link_form(layout, message, nullptr).value() == update));
    }
  }
}

BOOST_AUTO_TEST_CASE(damaged_messages_are_judged_alike) {
  Prng prng(48);
  Judged judged;
  for (int i = 0; i < 150; ++i) {
    const ParamLayout layout = random_layout(prng, 5, 60);
    const SparseUpdate update = any_update(prng, layout);
    if (update.index.empty()) continue;
    const auto both = [&](const Bytes& bytes) { return judge_message(layout, bytes); };
    judge_damaged(encode_link_form_in(layout, update, described_modes[i % 3], nullptr), judged, both, both);
  }
  BOOST_TEST(judged.accepted > 100);
  BOOST_TEST(judged.refused > 100);
}

BOOST_AUTO_TEST_CASE(encoding_twice_gives_the_same_bytes) {
  Prng prng(42);
  const ParamLayout layout = mlp_layout();
  const SparseUpdate update = random_update(prng, layout.params(), 1183, 77);
  BOOST_TEST((encode(layout, update) == encode(layout, update)));
}

BOOST_AUTO_TEST_CASE(every_flipped_bit_and_every_cut_is_judged_alike) {
  Prng prng(43);
  Judged judged;
  for (int i = 0; i < 150; ++i) {
    const ParamLayout layout = random_layout(prng, 5, 60);
    SparseUpdate update = any_update(prng, layout);
    if (i % 3 == 0) give_own_steps(prng, layout, update);
    Bytes bytes = encode(layout, update);
    judge_damaged(
        bytes, judged, [&](const Bytes& flipped) { return judge(layout, flipped); },
        [&](const Bytes& cut) { BOOST_TEST_REQUIRE(!judge(layout, cut)); });
    bytes.push_back(0);
    BOOST_TEST_REQUIRE(!judge(layout, bytes));
  }
  BOOST_TEST(judged.accepted > 100);
  BOOST_TEST(judged.refused > 100);
}

BOOST_AUTO_TEST_CASE(random_bytes_are_judged_alike) {
  Prng prng(44);
  int accepted = 0;
  for (int i = 0; i < 60'000; ++i) {
    const ParamLayout layout = random_layout(prng, 3, 40);
    Bytes bytes(1 + prng.below(12));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(prng.next());
    bytes[0] = static_cast<std::uint8_t>(2 | (prng.below(8) << 3));
    accepted += judge(layout, bytes);
  }
  BOOST_TEST(accepted > 50);
}

BOOST_AUTO_TEST_SUITE_END()
