// IDX files, good and bad, in memory and on disk.
#include "models/data/idx.h"

#include <unistd.h>
#include <zlib.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "models/data/dataset.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

namespace fs = std::filesystem;

Bytes idx(std::vector<std::uint32_t> shape, Bytes elements) {
  Bytes bytes = {0, 0, 8, static_cast<std::uint8_t>(shape.size())};
  for (const std::uint32_t extent : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(extent >> shift));
  }
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

// The error of parse_idx for `bytes`; empty when it accepts them.
std::string complaint(const Bytes& bytes) {
  const Result<IdxArray> array = parse_idx(bytes, "f");
  if (array) return "";
  BOOST_TEST((array.error().code == Errc::corrupt));
  return array.error().text;
}

// A directory with a good small set (4 training rows, 2 test rows of 2 x 3), removed at the end.
struct Directory {
  fs::path path;

  Directory() {
    std::string name = (fs::temp_directory_path() / "rumor-idx-XXXXXX").string();
    path = mkdtemp(name.data());
    Bytes pixels(24);
    std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
    write("train-images-idx3-ubyte", idx({4, 2, 3}, pixels));
    write("train-labels-idx1-ubyte", idx({4}, {0, 2, 1, 2}));
    write_gz("t10k-images-idx3-ubyte.gz", idx({2, 2, 3}, {9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 11, 12}));
    write_gz("t10k-labels-idx1-ubyte.gz", idx({2}, {1, 0}));
  }
  ~Directory() { fs::remove_all(path); }

  void write(const std::string& name, const Bytes& bytes) const {
    std::ofstream(path / name, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()),
                                                       static_cast<std::streamsize>(bytes.size()));
  }
  void write_gz(const std::string& name, const Bytes& bytes) const {
    gzFile file = gzopen((path / name).c_str(), "wb");
    BOOST_REQUIRE(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) ==
                  static_cast<int>(bytes.size()));
    gzclose(file);
  }
  Result<std::shared_ptr<const DataSet>> load() const {
    return load_data({.kind = "idx", .path = path.string(), .seed = 1});
  }
  // The error of load(), with the directory's random name cut out.
  std::string complaint(Errc expected) const {
    const auto loaded = load();
    if (loaded) return "";
    BOOST_TEST((loaded.error().code == expected));
    std::string text = loaded.error().text;
    for (std::size_t at; (at = text.find(path.string() + "/")) != std::string::npos;)
      text.erase(at, path.string().size() + 1);
    return text;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(idx_files)

BOOST_AUTO_TEST_CASE(a_good_array_is_parsed) {
  const Bytes bytes = idx({2, 3}, {1, 2, 3, 4, 5, 6});
  const Result<IdxArray> array = parse_idx(bytes, "f");
  BOOST_REQUIRE(array.ok());
  BOOST_TEST((array->shape == std::vector<std::uint32_t>{2, 3}));
  BOOST_TEST(array->elements.size() == 6u);
  BOOST_TEST(array->elements.data() == bytes.data() + 12);
}

BOOST_AUTO_TEST_CASE(bad_arrays_are_refused_with_file_and_offset) {
  BOOST_TEST(complaint({}) == "f, offset 0: the file ends inside the 4-byte header; fetch the file again");
  Bytes other_type = idx({1}, {7});
  other_type[2] = 0x0d;
  BOOST_TEST(complaint(other_type) ==
             "f, offset 0: expected the IDX header 000008, found 00000d; fetch the file again");
  BOOST_TEST(complaint(idx({}, {})) == "f, offset 3: 0 dimensions, expected 1 to 4; fetch the file again");
  BOOST_TEST(complaint(idx({1, 1, 1, 1, 1}, {7})).find("5 dimensions") != std::string::npos);
  BOOST_TEST(complaint(idx({2, 0}, {})) == "f, offset 8: a dimension of size 0; fetch the file again");
  BOOST_TEST(complaint(idx({2, 2}, {1, 2, 3})) ==
             "f, offset 15: the file ends after 3 elements of at least 4; fetch the file again");
  BOOST_TEST(complaint(idx({2}, {1, 2, 3})) == "f, offset 10: 1 bytes too many; fetch the file again");
  // 2^32 - 1 four times over: the product must not wrap to something small.
  BOOST_TEST(complaint(idx({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {1})) != "");
  BOOST_TEST(complaint(idx({0x10000, 0x10000, 0x10000, 0x10000}, {})) != "");
}

BOOST_AUTO_TEST_CASE(every_cut_of_a_good_file_is_refused) {
  const Bytes good = idx({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  for (std::size_t size = 0; size < good.size(); ++size)
    BOOST_TEST(complaint(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))) != "",
               "cut to " << size);
  BOOST_TEST(complaint(good) == "");
}

BOOST_AUTO_TEST_CASE(a_directory_of_plain_and_gzip_files_loads) {
  const Directory directory;
  const auto loaded = directory.load();
  BOOST_REQUIRE(loaded.ok());
  const DataSet& data = **loaded;
  BOOST_TEST(data.name == directory.path.filename().string());
  BOOST_TEST(data.inputs == 6u);
  BOOST_TEST(data.classes == 3u);
  BOOST_TEST(data.train.rows == 4u);
  BOOST_TEST((data.train.label == Bytes{0, 2, 1, 2}));
  BOOST_TEST(data.train.pixels[23] == 23);
  BOOST_TEST(data.mean == 11.5f);
  BOOST_TEST(data.test.rows == 2u);
  BOOST_TEST((data.test.label == Bytes{1, 0}));
  BOOST_TEST(data.test.x[0] == (9 - 11.5f) * data.scale);
}

BOOST_AUTO_TEST_CASE(an_absent_file_names_the_package_that_brings_it) {
  const Directory directory;
  fs::remove(directory.path / "t10k-labels-idx1-ubyte.gz");
  const std::string text = directory.complaint(Errc::not_found);
  BOOST_TEST(text.find("no t10k-labels-idx1-ubyte or t10k-labels-idx1-ubyte.gz;") == 0u);
  BOOST_TEST(text.find("apt-get install dataset-fashion-mnist") != std::string::npos);
  const auto nowhere = load_data({.kind = "idx", .path = "/nonexistent/set", .seed = 1});
  BOOST_REQUIRE(!nowhere.ok());
  BOOST_TEST(nowhere.error().text.find("/nonexistent/set/train-images-idx3-ubyte") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(files_that_do_not_fit_together_are_refused) {
  const Directory directory;
  directory.write("train-labels-idx1-ubyte", idx({3}, {0, 2, 1}));
  BOOST_TEST(directory.complaint(Errc::corrupt) ==
             "train-labels-idx1-ubyte, offset 4: 3 labels for the 4 rows of train-images-idx3-ubyte");
  directory.write("train-labels-idx1-ubyte", idx({4, 1}, {0, 2, 1, 2}));
  BOOST_TEST(directory.complaint(Errc::corrupt) ==
             "train-labels-idx1-ubyte, offset 3: 2 dimensions, expected 1");
  directory.write("train-labels-idx1-ubyte", idx({4}, {0, 2, 1, 2}));
  directory.write_gz("t10k-labels-idx1-ubyte.gz", idx({2}, {1, 3}));
  BOOST_TEST(directory.complaint(Errc::corrupt) ==
             "t10k-labels-idx1-ubyte.gz, offset 9: label 3, but the training set has 3 classes only");
  directory.write_gz("t10k-labels-idx1-ubyte.gz", idx({2}, {1, 0}));
  directory.write_gz("t10k-images-idx3-ubyte.gz", idx({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  BOOST_TEST(directory.complaint(Errc::corrupt).find("training rows of 6 values, test rows of 4") !=
             std::string::npos);
  directory.write("train-images-idx3-ubyte", idx({4}, {1, 2, 3, 4}));
  BOOST_TEST(directory.complaint(Errc::corrupt).find("train-images-idx3-ubyte, offset 3: 1 dimension") == 0u);
}

BOOST_AUTO_TEST_CASE(damaged_gzip_is_refused) {
  const Directory directory;
  const fs::path file = directory.path / "t10k-images-idx3-ubyte.gz";
  const Result<Bytes> whole = read_data_file(file.string());
  BOOST_REQUIRE(whole.ok());
  BOOST_TEST(whole->size() == 16u + 12);
  const auto size = fs::file_size(file);
  std::ifstream stream(file, std::ios::binary);
  const Bytes good{std::istreambuf_iterator<char>(stream), {}};
  // From 4 on: below that the magic itself is cut and the bytes count as a plain file, which the parser
  // refuses.
  for (std::size_t cut = 4; cut < size; ++cut) {
    directory.write(file.filename().string(),
                    Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(cut)));
    BOOST_TEST(directory.complaint(Errc::corrupt).find("t10k-images-idx3-ubyte.gz, offset") == 0u,
               "cut to " << cut);
  }
  Bytes flipped = good;
  flipped[flipped.size() - 6] ^= 1;  // in the checksum
  directory.write(file.filename().string(), flipped);
  BOOST_TEST(directory.complaint(Errc::corrupt).find("damaged or cut short") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_unreadable_path_is_an_io_error) {
  const Result<Bytes> absent = read_data_file("/nonexistent/file");
  BOOST_REQUIRE(!absent.ok());
  BOOST_TEST((absent.error().code == Errc::io));
  BOOST_TEST(absent.error().text == "cannot open /nonexistent/file: No such file or directory");
}

// The real thing, where the package is installed.
BOOST_AUTO_TEST_CASE(fashion_mnist_loads, *boost::unit_test::precondition([](boost::unit_test::test_unit_id) {
                       boost::test_tools::assertion_result installed(fs::is_directory(fashion_mnist_path));
                       installed.message() << "package dataset-fashion-mnist is not installed";
                       return installed;
                     })) {
  const auto loaded = load_data({.kind = "idx", .path = "", .seed = 1});
  BOOST_REQUIRE(loaded.ok());
  const DataSet& data = **loaded;
  BOOST_TEST(data.name == "fashion-mnist");
  BOOST_TEST(data.inputs == 784u);
  BOOST_TEST(data.classes == 10u);
  BOOST_TEST(data.train.rows == 60'000u);
  BOOST_TEST(data.test.rows == 10'000u);
  BOOST_TEST(std::abs(data.mean / 255 - 0.2860) < 1e-4);         // the published mean and deviation
  BOOST_TEST(std::abs(1 / data.scale / 255 - 0.3530) < 1e-4);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
