// The identity of training data: equal rows have equal hashes, however they are stored.
#include "models/data/data_hash.h"

#include <boost/test/unit_test.hpp>
#include <memory>

namespace rumor::models {
namespace {

DataSet hashed_pictures() {
  DataSet data;
  data.inputs = 2;
  data.classes = 3;
  data.train = {.pixels = {1, 2, 3, 4}, .label = {0, 2}, .rows = 2};
  return data;
}

// Tokens of one number of bytes each, in two pieces.
DataSet hashed_text(const std::vector<std::uint32_t>& tokens, TokenArray::Width width) {
  DataSet data;
  data.vocabulary = 256;
  data.context = 2;
  for (const std::size_t half : {0u, 1u}) {
    auto bytes = std::make_shared<Bytes>();
    for (std::size_t i = half * tokens.size() / 2; i < (half + 1) * tokens.size() / 2; ++i)
      for (std::size_t byte = 0; byte < static_cast<std::size_t>(width); ++byte)
        bytes->push_back(static_cast<std::uint8_t>(tokens[i] >> (8 * byte)));
    data.train_tokens.append(bytes, *bytes, width);
  }
  return data;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hash_of_data)

BOOST_AUTO_TEST_CASE(every_training_row_counts_and_no_test_row) {
  const Hash256 hash = training_data_hash(hashed_pictures());
  DataSet other = hashed_pictures();
  other.test.x.assign(2, 1.0f);
  other.name = "another";
  BOOST_TEST((training_data_hash(other) == hash));
  other.train.pixels[3] ^= 1;
  BOOST_TEST((training_data_hash(other) != hash));
  other = hashed_pictures();
  other.train.label[0] = 1;
  BOOST_TEST((training_data_hash(other) != hash));
  other = hashed_pictures();
  other.classes = 4;
  BOOST_TEST((training_data_hash(other) != hash));
}

BOOST_AUTO_TEST_CASE(tokens_count_by_their_numbers) {
  const std::vector<std::uint32_t> tokens = {7, 250, 0, 1, 99};
  const Hash256 hash = training_data_hash(hashed_text(tokens, TokenArray::Width::byte));
  BOOST_TEST((training_data_hash(hashed_text(tokens, TokenArray::Width::word)) == hash));
  BOOST_TEST((training_data_hash(hashed_text(tokens, TokenArray::Width::wide)) == hash));
  BOOST_TEST((training_data_hash(hashed_text({7, 250, 0, 1, 98}, TokenArray::Width::byte)) != hash));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
