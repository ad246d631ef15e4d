// CIFAR-10, binary version: records of a label and 3 x 32 x 32 bytes, planes red, green, blue, row by row.
// (Krizhevsky 2009, "Learning Multiple Layers of Features from Tiny Images".)
#include <cstring>
#include <utility>

#include "models/data/data_sources.h"
#include "models/data/mapped_file.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

constexpr std::uint32_t colours = 3, side = 32, pixels_each = colours * side * side, class_count = 10;
constexpr std::size_t record = 1 + pixels_each;
constexpr std::size_t file_bytes_max = std::size_t{1} << 30;
constexpr const char* again = "; fetch the file again";

Result<void> append_records(const std::string& path, ByteExamples& examples) {
  const auto file = MappedFile::open(path);
  if (!file) return file.error();
  const BytesView bytes = (*file)->bytes();
  if (bytes.size() > file_bytes_max)
    return Error{Errc::limit, str(path, " is over ", file_bytes_max, " bytes")};
  if (bytes.empty() || bytes.size() % record != 0)
    return damaged(path, bytes.size(), str("the file ends inside a record of ", record, " bytes", again));
  const std::size_t rows = bytes.size() / record;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint8_t label = bytes[row * record];
    if (label >= class_count) return damaged(path, row * record, str("label ", int{label}, ", expected 0 to 9", again));
    examples.label.push_back(label);
  }
  const std::size_t begin = examples.pixels.size();
  examples.pixels.resize(begin + rows * pixels_each);
  for (std::size_t row = 0; row < rows; ++row)
    std::memcpy(examples.pixels.data() + begin + row * pixels_each, bytes.data() + row * record + 1, pixels_each);
  examples.rows += static_cast<std::uint32_t>(rows);
  return {};
}

}  // namespace

Result<std::shared_ptr<const DataSet>> load_cifar10_data(const std::string& directory) {
  if (directory.empty())
    return Error{Errc::not_found,
                 "data.path is empty; set it to the folder cifar-10-batches-bin that "
                 "cifar-10-binary.tar.gz unpacks to"};
  DataSet data;
  ByteExamples test;
  for (int batch = 1; batch <= 6; ++batch) {
    const std::string name = batch <= 5 ? str("data_batch_", batch, ".bin") : "test_batch.bin";
    auto read = append_records(str(directory, "/", name), batch <= 5 ? data.train : test);
    if (!read && read.error().code == Errc::not_found)
      return Error{Errc::not_found, str("no ", directory, "/", name,
                                        "; unpack cifar-10-binary.tar.gz and set "
                                        "data.path to its folder cifar-10-batches-bin")};
    if (!read) return read.error();
  }
  data.name = last_name(directory);
  data.inputs = pixels_each;
  data.classes = class_count;
  data.channels = colours;
  data.height = data.width = side;
  return finish_data(std::move(data), std::move(test));
}

}  // namespace rumor::models
