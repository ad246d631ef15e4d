// MNIST-style data sets out of four IDX files.
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "models/data/data_sources.h"
#include "models/data/idx.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

struct Part {
  ByteExamples examples;
  std::uint32_t inputs = 0;
  std::uint32_t height = 0, width = 0;  // of pictures
  std::string label_file;
};

// The file itself or its gzip form.
Result<std::string> find_file(const std::string& directory, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    std::string path = str(directory, "/", name, ending);
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) return path;
  }
  return Error{Errc::not_found,
               str("no ", directory, "/", name, " or ", name, ".gz; for Fashion-MNIST run 'apt-get install ",
                   "dataset-fashion-mnist', or set data.path, or use data.kind = \"synthetic\"")};
}

// Keeps the elements only: the header is cut off in place.
Bytes elements_of(Bytes file, const IdxArray& array) {
  file.erase(file.begin(), file.begin() + (array.elements.data() - file.data()));
  return file;
}

Result<Part> load_part(const std::string& directory, const std::string& prefix) {
  Result<std::string> image_path = find_file(directory, prefix + "-images-idx3-ubyte");
  if (!image_path) return image_path.error();
  Result<std::string> label_path = find_file(directory, prefix + "-labels-idx1-ubyte");
  if (!label_path) return label_path.error();
  Result<Bytes> image_bytes = read_data_file(*image_path);
  if (!image_bytes) return image_bytes.error();
  Result<Bytes> label_bytes = read_data_file(*label_path);
  if (!label_bytes) return label_bytes.error();
  const Result<IdxArray> images = parse_idx(*image_bytes, *image_path);
  if (!images) return images.error();
  const Result<IdxArray> labels = parse_idx(*label_bytes, *label_path);
  if (!labels) return labels.error();
  if (images->shape.size() < 2)
    return damaged(*image_path, 3, "1 dimension, expected rows and what a row is made of");
  if (labels->shape.size() != 1)
    return damaged(*label_path, 3, str(labels->shape.size(), " dimensions, expected 1"));
  if (images->shape[0] != labels->shape[0])
    return damaged(*label_path, 4,
                   str(labels->shape[0], " labels for the ", images->shape[0], " rows of ", *image_path));
  Part part;
  part.examples.rows = images->shape[0];
  part.inputs = static_cast<std::uint32_t>(images->elements.size() / part.examples.rows);
  if (images->shape.size() == 3) {
    part.height = images->shape[1];
    part.width = images->shape[2];
  }
  part.label_file = *label_path;
  part.examples.label = elements_of(std::move(*label_bytes), *labels);
  part.examples.pixels = elements_of(std::move(*image_bytes), *images);
  return part;
}

}  // namespace

Result<std::shared_ptr<const DataSet>> load_idx_data(const std::string& directory) {
  Result<Part> train = load_part(directory, "train");
  if (!train) return train.error();
  Result<Part> test = load_part(directory, "t10k");
  if (!test) return test.error();
  if (train->inputs != test->inputs || train->height != test->height)
    return Error{Errc::corrupt, str(directory, ": training rows of ", train->inputs, " values, test rows of ",
                                    test->inputs, "; the files are of two data sets")};
  DataSet data;
  data.name = last_name(directory);
  data.inputs = train->inputs;
  data.channels = train->height > 0 ? 1 : 0;
  data.height = train->height;
  data.width = train->width;
  const std::vector<std::uint8_t>& labels = train->examples.label;
  data.classes = std::max(2u, *std::max_element(labels.begin(), labels.end()) + 1u);
  const std::vector<std::uint8_t>& test_labels = test->examples.label;
  const auto is_beyond = [&](std::uint8_t label) { return label >= data.classes; };
  const auto beyond = std::find_if(test_labels.begin(), test_labels.end(), is_beyond);
  if (beyond != test_labels.end())
    return damaged(test->label_file, static_cast<std::size_t>(8 + (beyond - test_labels.begin())),
                   str("label ", int{*beyond}, ", but the training set has ", data.classes, " classes only"));
  data.train = std::move(train->examples);
  return finish_data(std::move(data), std::move(test->examples));
}

}  // namespace rumor::models
