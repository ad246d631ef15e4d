// CIFAR-10's binary files, good and bad.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "models/data/dataset.h"
#include "runtime/base/text.h"
#include "tests/unit/models/scratch.h"

namespace rumor::models {
namespace {

// A record whose planes are red, green and blue throughout.
Bytes record(std::uint8_t label, std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  Bytes bytes{label};
  for (const std::uint8_t plane : {red, green, blue}) bytes.insert(bytes.end(), 1024, plane);
  return bytes;
}

struct Cifar : Scratch {
  Cifar() {
    for (std::uint8_t batch = 1; batch <= 5; ++batch)
      write(str("data_batch_", int{batch}, ".bin"), record(batch, batch, 100, 200));
    Bytes two = record(9, 1, 2, 3), more = record(0, 4, 5, 6);
    two.insert(two.end(), more.begin(), more.end());
    write("test_batch.bin", two);
  }
  Result<std::shared_ptr<const DataSet>> load() const {
    return load_data({.kind = "cifar10", .path = path.string(), .seed = 1});
  }
  std::string complaint(Errc expected) const {
    const auto loaded = load();
    if (loaded) return "";
    BOOST_TEST((loaded.error().code == expected));
    return cut(loaded.error().text);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cifar10)

BOOST_AUTO_TEST_CASE(records_become_rows_of_planes) {
  const auto data = Cifar().load().value();
  ModelConfig model;
  data->describe(model);
  BOOST_TEST((model.channels == 3 && model.height == 32 && model.width == 32));
  BOOST_TEST(model.inputs == 3072u);
  BOOST_TEST(model.classes == 10u);
  BOOST_TEST(data->train_rows() == 5u);
  BOOST_TEST(data->test_rows() == 2u);
  BOOST_TEST((data->train.label == Bytes{1, 2, 3, 4, 5}));
  BOOST_TEST(data->train.pixels[3072 * 2 + 1023] == 3);
  BOOST_TEST(data->train.pixels[3072 * 2 + 1024] == 100);
  BatchMemory memory;
  const Batch test = data->test_batch(1, 1, memory);
  BOOST_TEST(test.label[0] == 0);
  BOOST_TEST(std::lround(test.x[2048] / data->scale + data->mean) == 6);
}

BOOST_AUTO_TEST_CASE(damaged_files_are_named_with_the_offset) {
  const Cifar files;
  files.write("data_batch_3.bin", BytesView(record(1, 2, 3, 4)).first(3000));
  BOOST_TEST(
      files.complaint(Errc::corrupt) ==
      "data_batch_3.bin, offset 3000: the file ends inside a record of 3073 bytes; fetch the file again");
  files.write("data_batch_3.bin", Bytes{});
  BOOST_TEST(files.complaint(Errc::corrupt).find("data_batch_3.bin, offset 0: ") == 0u);
  files.write("data_batch_3.bin", record(1, 2, 3, 4));
  Bytes two = record(9, 1, 2, 3), beyond = record(10, 4, 5, 6);
  two.insert(two.end(), beyond.begin(), beyond.end());
  files.write("test_batch.bin", two);
  BOOST_TEST(files.complaint(Errc::corrupt) ==
             "test_batch.bin, offset 3073: label 10, expected 0 to 9; fetch the file again");
}

BOOST_AUTO_TEST_CASE(what_is_missing_is_named) {
  const Cifar files;
  std::filesystem::remove(files.path / "data_batch_5.bin");
  BOOST_TEST(files.complaint(Errc::not_found).find("no data_batch_5.bin; unpack cifar-10-binary.tar.gz") ==
             0u);
  BOOST_TEST(load_data({.kind = "cifar10", .path = "", .seed = 1}).error().text.find("data.path is empty") ==
             0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
