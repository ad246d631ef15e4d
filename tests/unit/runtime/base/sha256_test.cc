// Known answers: the examples of FIPS 180-4 (NIST), and the empty input.
#include "runtime/base/sha256.h"

#include <boost/test/unit_test.hpp>
#include <string_view>

namespace rumor {
namespace {

std::string hash_of(std::string_view text) {
  return sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}).hex();
}

BOOST_AUTO_TEST_SUITE(sha256_answers)

BOOST_AUTO_TEST_CASE(published_examples) {
  BOOST_TEST(hash_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  BOOST_TEST(hash_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  BOOST_TEST(hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
             "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  BOOST_TEST(hash_of(std::string(1'000'000, 'a')) ==
             "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace rumor
