#include "runtime/base/bytes.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <limits>

namespace data = boost::unit_test::data;

namespace rumor {
namespace {

Bytes varint_bytes(std::uint64_t value) {
  ByteWriter out;
  out.varint(value);
  return out.take();
}

// A record with a field of every kind.
Bytes record() {
  ByteWriter out;
  out.u8(0x01);
  out.u16(0x0302);
  out.u32(0x07060504);
  out.u64(0x0f0e0d0c0b0a0908);
  out.varint(300);
  out.text("ab");
  out.raw(Bytes(StreamId::size, 0x11));
  return out.take();
}

void read_record(ByteReader& in) {
  in.u8();
  in.u16();
  in.u32();
  in.u64();
  in.varint();
  in.text(2);
  in.id<StreamId>();
}

BOOST_AUTO_TEST_SUITE(bytes)

BOOST_AUTO_TEST_CASE(numbers_are_little_endian) {
  const Bytes bytes = record();
  for (std::uint8_t i = 0; i < 15; ++i) BOOST_TEST(bytes[i] == i + 1);
  const Bytes tail(bytes.begin() + 15, bytes.begin() + 20);
  BOOST_TEST(tail == (Bytes{0xac, 0x02, 0x02, 'a', 'b'}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_record_reads_back) {
  const Bytes bytes = record();
  ByteReader in(bytes);
  BOOST_TEST(in.u8() == 0x01);
  BOOST_TEST(in.u16() == 0x0302);
  BOOST_TEST(in.u32() == 0x07060504u);
  BOOST_TEST(in.u64() == 0x0f0e0d0c0b0a0908u);
  BOOST_TEST(in.varint() == 300u);
  BOOST_TEST(in.text(2) == "ab");
  BOOST_TEST(in.remaining() == StreamId::size);
  BOOST_TEST(!in.done());
  BOOST_TEST(in.id<StreamId>().hex() == "11111111111111111111111111111111");
  BOOST_TEST(in.done());
  BOOST_TEST(in.position() == bytes.size());
}

BOOST_AUTO_TEST_CASE(every_truncation_fails) {
  const Bytes bytes = record();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    ByteReader in(cut);
    read_record(in);
    BOOST_TEST(in.failed(), "read " << size << " of " << bytes.size() << " bytes as a whole record");
    BOOST_TEST(!in.done());
  }
}

// A decoder tests once, at the end: what it reads after the first failure must be zero, whatever bytes are
// left.
BOOST_AUTO_TEST_CASE(a_failed_reader_stays_failed_and_returns_zero) {
  const Bytes bytes = {0x05, 0x06, 0x07};
  ByteReader in(bytes);
  BOOST_TEST(in.u32() == 0u);
  BOOST_TEST(in.failed());
  BOOST_TEST(in.u8() == 0);
  BOOST_TEST(in.varint() == 0u);
  BOOST_TEST(in.raw(1).empty());
  BOOST_TEST(in.sized(8).empty());
  BOOST_TEST(in.text(8).empty());
  BOOST_TEST(in.id<StreamId>().is_zero());
  BOOST_TEST(in.remaining() == 0u);
  BOOST_TEST(!in.done());
}

BOOST_DATA_TEST_CASE(varints_round_trip_in_the_least_bytes, data::xrange(64), bits) {
  const std::uint64_t power = std::uint64_t{1} << bits;
  for (const std::uint64_t value : {power - 1, power, power | 1, ~std::uint64_t{0} >> (63 - bits)}) {
    const Bytes bytes = varint_bytes(value);
    std::size_t expected = 1;
    for (std::uint64_t rest = value >> 7; rest != 0; rest >>= 7) ++expected;
    BOOST_TEST(bytes.size() == expected);
    ByteReader in(bytes);
    BOOST_TEST(in.varint() == value);
    BOOST_TEST(in.done());
  }
}

BOOST_AUTO_TEST_CASE(longer_varints_than_needed_are_malformed) {
  for (const Bytes& bytes : {Bytes{0x80, 0x00}, Bytes{0xff, 0x00}, Bytes{0x80, 0x80, 0x00},
                             Bytes{0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}}) {
    ByteReader in(bytes);
    BOOST_TEST(in.varint() == 0u);
    BOOST_TEST(in.failed(), to_hex(bytes) << " was taken");
  }
}

BOOST_AUTO_TEST_CASE(varints_beyond_64_bits_are_malformed) {
  Bytes most(9, 0xff);
  most.push_back(0x01);
  ByteReader fits(most);
  BOOST_TEST(fits.varint() == std::numeric_limits<std::uint64_t>::max());
  BOOST_TEST(fits.done());
  for (const std::uint8_t last : {0x02, 0x7f, 0x80, 0x81, 0xff}) {
    most.back() = last;
    most.push_back(0x00);
    ByteReader in(most);
    BOOST_TEST(in.varint() == 0u);
    BOOST_TEST(in.failed(), to_hex(most) << " was taken");
    most.pop_back();
  }
}

BOOST_AUTO_TEST_CASE(a_length_is_bounded_before_it_is_believed) {
  ByteWriter out;
  out.sized(Bytes(5, 0x22));
  ByteReader at_the_bound(out.bytes());
  BOOST_TEST(at_the_bound.sized(5).size() == 5u);
  BOOST_TEST(at_the_bound.done());
  ByteReader beyond(out.bytes());
  BOOST_TEST(beyond.sized(4).empty());
  BOOST_TEST(beyond.failed());

  const Bytes huge = varint_bytes(std::numeric_limits<std::uint64_t>::max());
  ByteReader in(huge);
  BOOST_TEST(in.sized(std::numeric_limits<std::size_t>::max()).empty());
  BOOST_TEST(in.failed());
}

BOOST_AUTO_TEST_CASE(nothing_reads_as_nothing) {
  ByteReader in(BytesView{});
  BOOST_TEST(in.done());
  BOOST_TEST(in.raw(0).empty());
  BOOST_TEST(in.done());
  BOOST_TEST(in.u8() == 0);
  BOOST_TEST(in.failed());
}

BOOST_AUTO_TEST_CASE(taking_the_bytes_of_a_writer_empties_it) {
  ByteWriter out;
  out.text("");
  BOOST_TEST(out.size() == 1u);
  BOOST_TEST(out.take() == Bytes{0x00}, boost::test_tools::per_element());
  BOOST_TEST(out.size() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace rumor
