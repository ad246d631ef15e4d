// Signatures against RFC 8032's vectors, and at the edges where implementations are known to differ: each
// case has one answer here, for ever, because two replicas must never disagree.
#include "runtime/base/ed25519.h"

#include <boost/test/unit_test.hpp>
#include <string_view>

namespace rumor {

namespace {

Bytes from_hex(std::string_view text) {
  const auto digit = [](char c) { return static_cast<std::uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  Bytes out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    out.push_back(static_cast<std::uint8_t>(digit(text[i]) << 4 | digit(text[i + 1])));
  return out;
}

NodeId key(std::string_view hex) {
  return NodeId::from(from_hex(hex));
}
Signature signature(std::string_view hex) {
  return Signature::from(from_hex(hex));
}

SigningKey signing_key(std::string_view hex) {
  SigningKey::Seed seed{};
  const Bytes bytes = from_hex(hex);
  std::copy(bytes.begin(), bytes.end(), seed.begin());
  return SigningKey(seed);
}

BytesView raw(std::string_view s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

constexpr const char* honest = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";

}  // namespace

BOOST_AUTO_TEST_SUITE(ed25519)

// RFC 8032, section 7.1, tests 1 to 3.
BOOST_AUTO_TEST_CASE(the_vectors_of_the_standard) {
  struct Vector {
    const char *seed, *id, *message, *signature;
  };
  for (const Vector& v : {
           Vector{"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                  "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
                  "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701c"
                  "f9b46"
                  "bd25bf5f0595bbe24655141438e7a100b"},
           Vector{"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                  "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
                  "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0"
                  "f11d8"
                  "c387b2eaeb4302aeeb00d291612bb0c00"},
           Vector{"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                  "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
                  "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f76098"
                  "4dc65"
                  "94a7c15e9716ed28dc027beceea1ec40a"},
       }) {
    const SigningKey signer = signing_key(v.seed);
    const Bytes message = from_hex(v.message);
    BOOST_TEST((signer.id() == key(v.id)));
    BOOST_TEST(signer.sign(message).hex() == v.signature);
    BOOST_TEST(verify(signer.id(), message, signature(v.signature)));
  }
}

BOOST_AUTO_TEST_CASE(every_changed_bit_is_refused) {
  const SigningKey signer = signing_key("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  BOOST_TEST((signer.id() == key(honest)));
  const Bytes message = from_hex("0011223344");
  const Signature good = signer.sign(message);
  BOOST_TEST(verify(signer.id(), message, good));
  for (std::size_t bit = 0; bit < 8 * Signature::size; bit += 5) {
    Signature bad = good;
    bad.bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    BOOST_TEST(!verify(signer.id(), message, bad));
  }
  Bytes other = message;
  other[2] ^= 1;
  BOOST_TEST(!verify(signer.id(), other, good));
  BOOST_TEST(!verify(signing_key(std::string(64, '7')).id(), message, good));
}

// S and S + L satisfy the same equation; only the smaller one is a signature (RFC 8032, 5.1.7).
BOOST_AUTO_TEST_CASE(a_second_form_of_a_signature_is_refused) {
  BOOST_TEST(!verify(
      key(honest), raw("rumor"),
      signature("68c5e4a39f1eeaf01afdb1da666f02694b062e652ec47fda8a0decd897be0080891609c35b005f0c7226d0d"
                "3aea0af57d72257e8005b492ac9c257db802bdc13")));
  const SigningKey signer = signing_key("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  BOOST_TEST(verify(key(honest), raw("rumor"), signer.sign(raw("rumor"))));
}

// Both satisfy the equation times eight and not the plain one; verifiers with cofactor would accept them.
BOOST_AUTO_TEST_CASE(the_equation_is_the_one_without_cofactor) {
  const std::string message("mixed\0", 6);
  BOOST_TEST(!verify(
      key("b154bd62188ae283dd187fefe8c31f5e276edf083b4cff11c9d5cff856c74440"), raw(message),
      signature("ef4f62f8479733ad879cfaced3c89a9c39dd4fc795ef2efa1c3eafe4d729a08110b3deb35e4eab0bcd8944a"
                "9523855985414bc2c3c870963adb37c5ed2739b01")));
  BOOST_TEST(!verify(
      key(honest), raw("small R"),
      signature("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05086a1bd6a60c58ecdbe288c"
                "7e27031bac1f122c675ca8b4e343673bf3457ed03")));
}

// All encodings of the eight points of small order, and y coordinates that are not reduced.
BOOST_AUTO_TEST_CASE(unsound_keys_are_refused) {
  const std::string zeros(62, '0'), ones = std::string(60, 'f') + "7f", ones_signed = std::string(62, 'f');
  std::vector<std::string> unsound = {
      "00" + zeros,
      "01" + zeros,
      "ec" + ones,
      "ed" + ones,  // 0 again
      "ee" + ones,  // 1 again
      "ef" + ones,  // 2, unreduced
      "ff" + ones,
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
      "ec" + ones_signed,
      "ed" + ones_signed,
      "ee" + ones_signed,
      "ff" + ones_signed,
      "00" + std::string(60, '0') + "80",
      "01" + std::string(60, '0') + "80",
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
  };
  for (const std::string& hex : unsound) {
    BOOST_TEST_CONTEXT(hex) {
      BOOST_TEST(!key_is_sound(key(hex)));
      // R = the key itself, S = 0: what a key of small order signs anything with.
      BOOST_TEST(!verify(key(hex), raw("anything"), signature(hex + std::string(64, '0'))));
      BOOST_TEST(!verify(key(hex), raw("anything"), signature("01" + zeros + std::string(64, '0'))));
    }
  }
  BOOST_TEST(key_is_sound(key(honest)));
  BOOST_TEST(key_is_sound(key("eb" + ones)));  // p - 2: reduced, and of no small order
  BOOST_TEST(key_is_sound(key("02" + zeros)));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor
