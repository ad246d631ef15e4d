// RICE kernels: every set writes the bytes of the portable one, accepts the same and reads the same back.
#include "compress/payload/rice_kernels.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "compress/payload/crc32c.h"
#include "compress/payload/rice.h"
#include "runtime/base/prng.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(rice)

namespace {

constexpr std::size_t slack = 64;

struct Sample {
  RicePart part;
  std::vector<std::uint32_t> index;
  std::vector<std::uint8_t> negative;
};

// `count` of `span` positions: evenly spread, or half of them gathered at one end.
Sample sample(Prng& prng, std::uint32_t span, std::uint32_t count, bool gathered) {
  const auto first = static_cast<std::uint32_t>(prng.below(0x7fff'ffffu - span + 1));
  const RiceCode code = rice_code(span, count);
  Sample made{{first, span, count, code.low_bits, code.thirds}, {}, {}};
  std::uint32_t needed = count;
  std::uint32_t position = 0;
  while (needed > 0) {
    const std::uint32_t room = span - position - needed;
    const bool jump = !gathered || needed * 2 < count || prng.chance(1, 50);
    const std::uint64_t gap = jump ? prng.below(2 * std::uint64_t{room} / needed + 1) : prng.below(3);
    position += static_cast<std::uint32_t>(gap < room ? gap : room);
    made.index.push_back(first + position++);
    made.negative.push_back(static_cast<std::uint8_t>(prng.below(2)));
    --needed;
  }
  return made;
}

Bytes encoded(const RiceKernels& kernels, const Sample& s, std::uint64_t at, std::uint64_t& end) {
  Bytes out((at + rice_bits_max(s.part.span, s.part.count)) / 8 + 1 + slack, 0xa5);
  for (std::uint64_t byte = 0; byte <= at / 8; ++byte) out[byte] = 0;
  if (at % 8 != 0) out[at / 8] = static_cast<std::uint8_t>((1u << (at % 8)) - 1);
  end = kernels.encode(s.part, s.index.data(), s.negative.data(), out.data(), at);
  BOOST_TEST_REQUIRE(end <= at + rice_bits_max(s.part.span, s.part.count));
  out.resize((end + 7) / 8);
  return out;
}

// Decoded with guards behind the arrays; the bit after the part, or 0.
std::uint64_t decoded(const RiceKernels& kernels, const RicePart& part, const Bytes& bytes, std::uint64_t at,
                      std::uint64_t end, std::vector<std::uint32_t>& index,
                      std::vector<std::uint8_t>& negative) {
  index.assign(part.count + 1, 0xdead'beef);
  negative.assign(part.count + 1, 0x5a);
  Bytes padded = bytes;
  padded.resize(bytes.size() + slack, 0xff);
  const std::uint64_t after = kernels.decode(part, padded.data(), at, end, index.data(), negative.data());
  BOOST_TEST_REQUIRE(index.back() == 0xdead'beef);
  BOOST_TEST_REQUIRE(unsigned{negative.back()} == 0x5au);
  index.pop_back();
  negative.pop_back();
  return after;
}

std::vector<const RiceKernels*> all_kernels() {
  std::vector<const RiceKernels*> sets{&rice_kernels_portable};
  if (rice_kernels_avx512() != nullptr) sets.push_back(rice_kernels_avx512());
  return sets;
}

void compare(Prng& prng, const Sample& s) {
  const std::uint64_t at = prng.below(20);
  std::uint64_t end = 0;
  const Bytes reference = encoded(rice_kernels_portable, s, at, end);
  for (const RiceKernels* kernels : all_kernels()) {
    std::uint64_t its_end = 0;
    BOOST_TEST_CONTEXT(kernels->name << ", " << s.part.count << " of " << s.part.span) {
      BOOST_TEST_REQUIRE((encoded(*kernels, s, at, its_end) == reference));
      BOOST_TEST_REQUIRE(its_end == end);
      std::vector<std::uint32_t> index;
      std::vector<std::uint8_t> negative;
      BOOST_TEST_REQUIRE(decoded(*kernels, s.part, reference, at, end, index, negative) == end);
      BOOST_TEST_REQUIRE((index == s.index));
      BOOST_TEST_REQUIRE((negative == s.negative));
      BOOST_TEST_REQUIRE(decoded(*kernels, s.part, reference, at, end - 1, index, negative) == 0u);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(checksums_of_known_bytes) {
  // RFC 3720, B.4.
  Bytes ascending(32);
  for (std::size_t i = 0; i < 32; ++i) ascending[i] = static_cast<std::uint8_t>(i);
  for (const auto crc : {crc32c, crc32c_portable}) {
    BOOST_TEST(crc(Bytes(32, 0)) == 0x8a91'36aau);
    BOOST_TEST(crc(Bytes(32, 0xff)) == 0x62a8'ab43u);
    BOOST_TEST(crc(ascending) == 0x46dd'794eu);
    BOOST_TEST(crc({}) == 0u);
  }
  Prng prng(3);
  for (std::size_t size = 0; size < 300; ++size) {
    Bytes bytes(size + 3);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(prng.next());
    const BytesView view = BytesView(bytes).subspan(size % 4);
    BOOST_TEST_REQUIRE(crc32c(view) == crc32c_portable(view));
  }
}

BOOST_AUTO_TEST_CASE(all_sets_write_and_read_the_same) {
  Prng prng(1);
  for (const std::uint32_t count :
       {1u, 2u, 15u, 16u, 17u, 63u, 64u, 65u, 127u, 128u, 129u, 1000u, 16383u, 16384u})
    for (const double times : {1.0, 1.3, 2.0, 3.1, 9.0, 40.0, 99.0, 100.0, 1234.0, 20'000.0, 100'000.0})
      for (const bool gathered : {false, true}) {
        const double wanted = static_cast<double>(count) * times;
        compare(prng,
                sample(prng, static_cast<std::uint32_t>(std::min(wanted, 2147483646.0)), count, gathered));
      }
}

BOOST_AUTO_TEST_CASE(all_sets_judge_damaged_bits_alike) {
  Prng prng(2);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    const auto count = static_cast<std::uint32_t>(1 + prng.below(round % 10 == 0 ? 3000 : 200));
    const auto span = static_cast<std::uint32_t>(count + prng.below(std::uint64_t{count} << prng.below(20)));
    const Sample s = sample(prng, span, count, prng.chance(1, 2));
    std::uint64_t end = 0;
    Bytes bytes = encoded(rice_kernels_portable, s, 0, end);
    for (std::uint64_t flips = prng.below(4); flips > 0; --flips)
      bytes[prng.below(bytes.size())] ^= static_cast<std::uint8_t>(1u << prng.below(8));
    if (prng.chance(1, 4))  // a stretch of zeros: long quotients
      for (std::uint64_t at = prng.below(bytes.size()), n = 20; n > 0 && at < bytes.size(); --n)
        bytes[at++] = 0;
    std::vector<std::uint32_t> index, its_index;
    std::vector<std::uint8_t> negative, its_negative;
    const std::uint64_t stop = 8 * bytes.size();
    const std::uint64_t after = decoded(rice_kernels_portable, s.part, bytes, 0, stop, index, negative);
    after != 0 ? ++accepted : ++refused;
    for (const RiceKernels* kernels : all_kernels()) {
      BOOST_TEST_REQUIRE(decoded(*kernels, s.part, bytes, 0, stop, its_index, its_negative) == after);
      if (after == 0) continue;
      BOOST_TEST_REQUIRE((its_index == index));
      BOOST_TEST_REQUIRE((its_negative == negative));
      BOOST_TEST_REQUIRE(index.back() - s.part.first < span);
    }
  }
  BOOST_TEST(accepted > 500);
  BOOST_TEST(refused > 500);
}

BOOST_AUTO_TEST_SUITE_END()
