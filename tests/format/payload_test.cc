// The payload against its specification: the example of the text, the second decoder, and damaged bytes.
#include <boost/test/unit_test.hpp>

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
  bool equal =
      other.step == static_cast<std::uint64_t>(update.step) && other.entries.size() == update.index.size();
  for (std::size_t e = 0; equal && e < update.index.size(); ++e) {
    const TensorInfo& tensor = layout.tensors()[other.entries[e].tensor];
    equal = tensor.offset + other.entries[e].position == update.index[e] &&
            other.entries[e].minus == (update.negative[e] == 1);
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

}  // namespace

// compress/FORMAT.md, chapter 7. These bytes come from the text, not from the program.
BOOST_AUTO_TEST_CASE(worked_example) {
  const ParamLayout layout = layout_of({16, 4});
  const SparseUpdate update{.step = 100, .index = {3, 9, 18}, .negative = {0, 1, 0}};
  const Bytes golden{0x39, 0xa4, 0xb5, 0x16, 0x01};
  BOOST_TEST(to_hex(encode(layout, update)) == to_hex(golden));
  const Result<SparseUpdate> decoded = decode(layout, golden);
  BOOST_TEST_REQUIRE(decoded.ok());
  BOOST_TEST((*decoded == update));
  BOOST_TEST(judge(layout, golden));
}

BOOST_AUTO_TEST_CASE(empty_update) {
  const ParamLayout layout = layout_of({16, 4});
  BOOST_TEST(to_hex(encode(layout, {})) == "01");
  BOOST_TEST(judge(layout, {0x01}));
}

BOOST_AUTO_TEST_CASE(both_decoders_agree_on_generated_updates) {
  Prng prng(41);
  for (int i = 0; i < 5000; ++i) {
    const ParamLayout layout = random_layout(prng, 7, 300);
    const SparseUpdate update = any_update(prng, layout);
    const Bytes bytes = encode(layout, update);
    const auto slow = slow::decode(sizes_of(layout), bytes);
    BOOST_TEST_REQUIRE(slow.has_value());
    BOOST_TEST_REQUIRE(same(layout, update, *slow));
  }
}

BOOST_AUTO_TEST_CASE(encoding_twice_gives_the_same_bytes) {
  Prng prng(42);
  const ParamLayout layout = mlp_layout();
  const SparseUpdate update = random_update(prng, layout.params(), 1183, 77);
  BOOST_TEST((encode(layout, update) == encode(layout, update)));
}

BOOST_AUTO_TEST_CASE(every_flipped_bit_and_every_cut_is_judged_alike) {
  Prng prng(43);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 150; ++i) {
    const ParamLayout layout = random_layout(prng, 5, 60);
    const Bytes bytes = encode(layout, any_update(prng, layout));
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      Bytes flipped = bytes;
      flipped[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
      judge(layout, flipped) ? ++accepted : ++refused;
    }
    for (std::size_t size = 0; size < bytes.size(); ++size)
      BOOST_TEST_REQUIRE(
          !judge(layout, Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size))));
    Bytes longer = bytes;
    longer.push_back(0);
    BOOST_TEST_REQUIRE(!judge(layout, longer));
  }
  BOOST_TEST(accepted > 100);
  BOOST_TEST(refused > 100);
}

BOOST_AUTO_TEST_CASE(random_bytes_are_judged_alike) {
  Prng prng(44);
  int accepted = 0;
  for (int i = 0; i < 60'000; ++i) {
    const ParamLayout layout = random_layout(prng, 3, 40);
    Bytes bytes(1 + prng.below(12));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(prng.next());
    bytes[0] = static_cast<std::uint8_t>(1 | (prng.below(8) << 3));
    accepted += judge(layout, bytes);
  }
  BOOST_TEST(accepted > 50);
}

BOOST_AUTO_TEST_SUITE_END()
